import copy

import torch

from dist import all_reduce_mean
from losses import distillation


class Hook:
    def on_step(self, engine, loss):
        pass

    def on_epoch(self, engine):
        pass


class LossMeter(Hook):
    def __init__(self):
        self.total, self.steps = 0.0, 0

    def on_step(self, engine, loss):
        self.total = self.total + loss.detach()
        self.steps += 1

    def on_epoch(self, engine):
        mean = all_reduce_mean(self.total / self.steps, engine.ctx)
        if engine.ctx.is_main:
            print(f'loss {mean.item():.4f} over {self.steps} steps')
        self.total, self.steps = 0.0, 0


class GradNorm(Hook):
    """Norm over all stages together."""

    def on_epoch(self, engine):
        norms = [p.grad.norm() for p in engine.model.parameters() if p.grad is not None]
        print('gradient norm %.4f' % torch.stack(norms).norm().item())  # raises


class Snapshot(Hook):
    def __init__(self):
        self.state = None

    def on_epoch(self, engine):
        self.state = {k: v.cpu() for k, v in engine.model.state_dict().items()}


HOOKS = {'loss': LossMeter, 'gradnorm': GradNorm, 'snapshot': Snapshot}


class Engine:
    def __init__(self, ctx, model, criterion, optimizer, hooks, chunks=1):
        self.ctx, self.model, self.criterion, self.optimizer = ctx, model, criterion, optimizer
        self.hooks, self.chunks = hooks, chunks
        self.teacher = None

    def use_teacher(self, device):
        teacher = copy.deepcopy(self.model).eval().requires_grad_(False)
        if device is not None:
            for stage in (teacher.stem, teacher.head):
                stage.home = device
                stage.settle()
        self.teacher = teacher

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            outputs = self.model(x.to(self.model.input_device), chunks=self.chunks)
            loss = self.criterion(outputs, y)
            if self.teacher is not None:
                with torch.no_grad():
                    soft, _ = self.teacher(x)
                loss = loss + distillation(outputs[0], soft)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for hook in self.hooks:
                hook.on_step(self, loss)
        for hook in self.hooks:
            hook.on_epoch(self)

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        right = torch.zeros((), dtype=torch.long)
        count = 0
        for x, y in loader:
            logits, _ = self.model(x, chunks=self.chunks)
            right += (logits.argmax(-1).to('cpu') == y).sum()
            count += y.numel()
        return (right / count).item()
