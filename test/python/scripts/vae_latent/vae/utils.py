import os

import numpy as np
import torch


class Average:
    def __init__(self):
        self.sum, self.count = None, 0

    def add(self, values):
        total = values.detach().double().sum()
        self.sum = total if self.sum is None else self.sum + total
        self.count += values.numel()

    def __float__(self):
        return float("nan") if self.sum is None else self.sum.item() / self.count


class Annealing:
    def __init__(self, steps, top=1.0):
        self.steps, self.top = max(steps, 1), top
        self.table = torch.linspace(0, top, self.steps)

    def __call__(self, step):
        return self.table[min(step, self.steps - 1)]


class Snapshot:
    """The model, optimizer and averaged weights in one file."""

    def __init__(self, path, model, optimizer):
        self.path, self.model, self.optimizer = path, model, optimizer
        self.average = {k: v.detach().clone() for k, v in model.state_dict().items()}

    def follow(self, decay=0.9):
        for name, value in self.model.state_dict().items():
            self.average[name].lerp_(value.to(self.average[name]), 1 - decay)

    def save(self, step):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        average = {k: v.cpu() for k, v in self.average.items()}
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "average": average, "step": step}, self.path)

    def restore(self):
        saved = torch.load(self.path, map_location=self.model.device)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.average.update(saved["average"])
        return saved["step"]


def picture(images, side):
    """The images as text."""
    array = images.detach().cpu().numpy().reshape(-1, side, side)
    rows = np.where(np.concatenate(list(array), axis=1) > 0.5, "#", ".")
    return "\n".join("".join(row) for row in rows)
