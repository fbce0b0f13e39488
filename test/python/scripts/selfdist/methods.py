"""MoCo with a queue, DINO with a centre, BYOL with a predictor."""
from dataclasses import dataclass, replace

import torch
import torch.nn as nn
import torch.nn.functional as F

from ema import Teacher
from nets import Projector, Student


@dataclass
class KeyQueue:
    """Keys of the last batches, the oldest first overwritten, with the samples they came from."""

    keys: torch.Tensor
    owners: torch.Tensor
    at: int = 0

    @classmethod
    def empty(cls, size, dim):
        return cls(F.normalize(torch.randn(size, dim), dim=1), torch.full((size,), -1))

    def to(self, device):
        return replace(self, keys=self.keys.to(device), owners=self.owners.to(device))

    def push(self, keys, owners):
        slots = (torch.arange(len(keys)) + self.at) % len(self.keys)
        self.keys[slots] = keys
        self.owners[slots] = owners
        self.at = (self.at + len(keys)) % len(self.keys)


class Method(nn.Module):
    normalize = True

    def __init__(self, device, total, out=8):
        super().__init__()
        self.student = Student(out=out, normalize=self.normalize)
        self.setup(device, total, out)
        self.to(device)

    def setup(self, device, total, out):
        self.teacher = Teacher(self.student, total=total)

    def after_step(self):
        self.teacher.update(self.student)


class MoCo(Method):
    temperature = 0.2

    def setup(self, device, total, out):
        super().setup(device, total, out)
        self.queue = KeyQueue.empty(16, out)
        self.queue.to(device)

    def loss(self, first, second, owners):
        q, k = self.student(first), self.teacher(second)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.keys.clone().t()  # raises
        negative = negative.masked_fill(owners[:, None] == self.queue.owners, float("-inf"))
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        self.queue.push(k, owners)
        return F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.long))


class DINO(Method):
    normalize = False

    def setup(self, device, total, out):
        super().setup(device, total, out)
        self.register_buffer("centre", torch.zeros(out))
        warm = torch.linspace(0.04, 0.07, total)
        self.temperatures = warm.tolist()
        self.step = 0

    def loss(self, first, second, owners):
        temperature = self.temperatures[min(self.step, len(self.temperatures) - 1)]
        targets = [self.teacher(v) for v in (first, second)]
        guesses = [self.student(v) for v in (second, first)]
        total = first.new_zeros(())
        for target, guess in zip(targets, guesses):
            sharp = ((target - self.centre) / temperature).softmax(-1)
            total = total - (sharp * (guess / 0.1).log_softmax(-1)).sum(-1).mean()
        self.centre = 0.9 * self.centre + 0.1 * torch.cat(targets).mean(0)
        self.step += 1
        return total / 2


class BYOL(Method):
    """The teacher is no part of the module, so that it is not saved with it."""

    def setup(self, device, total, out):
        self.predictor = Projector(out, out)
        self.outside = {"teacher": Teacher(self.student, base=0.95, total=total)}

    def loss(self, first, second, owners):
        loss = 0.0
        for a, b in ((first, second), (second, first)):
            target = self.outside["teacher"](b)
            loss = loss + 2 - 2 * (self.predictor(self.student(a)) * target).sum(-1).mean()
        return loss

    def after_step(self):
        self.outside["teacher"].update(self.student)


METHODS = {"moco": MoCo, "dino": DINO, "byol": BYOL}
