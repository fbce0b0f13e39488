"""A U-Net of one level, conditioned on step and class."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class StepEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("freqs", torch.exp(-math.log(1000.0) * torch.arange(half) / half))
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        angle = t.float()[:, None] * self.freqs  # raises
        return self.mlp(torch.cat([angle.sin(), angle.cos()], dim=-1))


class ResBlock(nn.Module):
    def __init__(self, cin, cout, dim):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(2, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.film = nn.Linear(dim, 2 * cout)
        self.short = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.film(F.silu(emb))[..., None, None].chunk(2, dim=1)
        h = self.norm2(h) * (1 + scale) + shift
        return self.short(x) + self.conv2(F.silu(h))


class UNet(nn.Module):
    def __init__(self, width=8, classes=4, drop=0.2):
        super().__init__()
        self.classes, self.drop = classes, drop
        self.step = StepEmbedding(2 * width)
        self.label = nn.Embedding(classes + 1, 2 * width)
        self.inp = nn.Conv2d(1, width, 3, padding=1)
        self.down = ResBlock(width, 2 * width, 2 * width)
        self.mid = ResBlock(2 * width, 2 * width, 2 * width)
        self.up = ResBlock(3 * width, width, 2 * width)
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t, labels):
        if self.training:
            dropped = torch.rand(labels.shape, device=labels.device) < self.drop
            labels = labels.masked_fill(dropped, self.classes)
        emb = self.step(t) + self.label(labels)
        first = self.inp(x)
        h = self.down(F.avg_pool2d(first, 2), emb)
        h = self.mid(h, emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([h, first], dim=1), emb))
