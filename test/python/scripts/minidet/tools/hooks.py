import os

import numpy as np
import torch

from det.boxes import pairwise_iou


class Hook:
    engine = None

    def every_n(self, n):
        return n > 0 and self.engine.iteration % n == 0


class LRHook(Hook):
    def __init__(self, warmup):
        self.warmup = warmup

    def before_step(self):
        for group in self.engine.optimizer.param_groups:
            base = group.setdefault("base_lr", group["lr"])
            group["lr"] = base * min(1.0, (self.engine.iteration + 1) / self.warmup)


class ProfileHook(Hook):
    def before_train(self):
        self.smooth = {}

    def after_step(self):
        for name, value in self.engine.outputs.items():
            old = self.smooth.get(name, torch.tensor(0.0))
            self.smooth[name] = 0.9 * old + 0.1 * value

    def after_train(self):
        print(" ".join(f"{k} {v:.3f}" for k, v in self.smooth.items()))


class CheckpointHook(Hook):
    def __init__(self, path, every):
        self.path, self.every = path, every

    def after_step(self):
        if self.every_n(self.every):
            state = {"model": self.engine.model.state_dict(), "optimizer": self.engine.optimizer.state_dict()}
            torch.save(state, self.path)


class WarmStartHook(Hook):
    """Goes on half-way between what was saved and what there is."""

    def __init__(self, path, at):
        self.path, self.at = path, at

    def before_step(self):
        if self.engine.iteration != self.at or not os.path.exists(self.path):
            return
        saved = torch.load(self.path, map_location="cpu")["model"]
        current = self.engine.model.state_dict()
        for name, value in current.items():
            if value.is_floating_point():
                current[name] = (value + saved[name].to(value.device)) / 2
        self.engine.model.load_state_dict(current)


class EvalHook(Hook):
    def __init__(self, loader, every, loss, vis):
        self.loader, self.every, self.loss, self.vis = loader, every, loss, vis

    def after_step(self):
        if self.every_n(self.every):
            self.evaluate()

    @torch.no_grad()
    def evaluate(self):
        model, device = self.engine.model.eval(), self.engine.device
        recalls, losses = [], []
        for images, targets in self.loader:
            images = images.to(device)
            if self.loss:
                losses.append(sum(model(images, targets).values()).item())
            for found, target in zip(model(images), targets):
                boxes = found["boxes"].cpu()
                if len(boxes):
                    recalls.append((pairwise_iou(target["boxes"], boxes).amax(dim=1) > 0.3).float().mean())
                if self.vis:
                    self.draw(images, found)
        recall = torch.stack(recalls).mean().item() if recalls else 0.0
        print(f"recall {recall:.3f} loss {np.mean(losses) if losses else 0:.3f}")

    def draw(self, images, found):
        canvas = images[0].mean(0).cpu().numpy()
        corners = found["boxes"].round().int().numpy()  # raises
        for x0, y0, x1, y1 in corners.clip(0, canvas.shape[0] - 1):
            canvas[y0:y1, [x0, x1]] = 1.0
        np.save("vis.npy", canvas)
