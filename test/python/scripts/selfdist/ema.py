"""Teachers: averages of a student."""
import copy
import math

import torch
import torch.nn as nn


class Teacher(nn.Module):
    """The student's copy, moved towards it by a momentum that grows to 1."""

    def __init__(self, student, base=0.9, total=10):
        super().__init__()
        self.net = copy.deepcopy(student)
        for p in self.net.parameters():
            p.requires_grad_(False)
        self.base, self.total = base, total
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    @property
    def momentum(self):
        done = self.step.item() / self.total
        return 1 - (1 - self.base) * (math.cos(math.pi * min(1.0, done)) + 1) / 2

    @torch.no_grad()
    def update(self, student):
        m = self.momentum
        for mine, theirs in zip(self.net.parameters(), student.parameters()):
            mine.mul_(m).add_(theirs.detach(), alpha=1 - m)
        for mine, theirs in zip(self.net.buffers(), student.buffers()):
            mine.copy_(theirs)
        self.step += 1

    @torch.no_grad()
    def forward(self, x):
        return self.net(x)
