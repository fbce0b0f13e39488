import math

import torch
import torch.nn as nn


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.half = dim // 2
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        freqs = torch.exp(-math.log(1000) * torch.arange(self.half, device=t.device) / self.half)
        angles = t.float()[:, None] * freqs[None]
        return self.mlp(torch.cat([angles.sin(), angles.cos()], dim=-1))  # raises


class Denoiser(nn.Module):
    """1-d signals with a time embedding and optional class labels."""

    def __init__(self, channels=2, width=8, classes=0, drop_label=0.0):
        super().__init__()
        self.time = TimeEmbedding(width)
        self.classes = classes
        self.drop_label = drop_label
        if classes:
            self.label = nn.Embedding(classes + 1, width)
        self.inward = nn.Conv1d(channels, width, 3, padding=1)
        self.middle = nn.ModuleList([nn.Conv1d(width, width, 3, padding=1) for _ in range(2)])
        self.outward = nn.Conv1d(width, channels, 3, padding=1)

    def condition(self, t, labels):
        code = self.time(t)
        if self.classes:
            if labels is None:
                labels = torch.full_like(t, self.classes)
            elif self.training and self.drop_label:
                null = torch.tensor([self.classes])
                drop = torch.rand(labels.shape, device=labels.device) < self.drop_label
                labels = torch.where(drop, null.expand_as(labels), labels)  # raises
            code = code + self.label(labels)
        return code

    def forward(self, x, t, labels=None):
        code = self.condition(t, labels)
        h = self.inward(x)
        for layer in self.middle:
            h = h + layer(torch.relu(h + code[..., None]))
        return self.outward(h)


class Guided:
    """Classifier-free guidance around a model."""

    def __init__(self, model, scale):
        self.model, self.scale = model, scale

    def __call__(self, x, t, labels):
        free = self.model(x, t, None)
        return free + self.scale * (self.model(x, t, labels) - free)
