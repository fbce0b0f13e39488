import math

import torch
import torch.nn as nn


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half, device=t.device) * -(math.log(10000) / (half - 1)))
        args = t[:, None] * freqs[None]
        return self.mlp(torch.cat((args.sin(), args.cos()), dim=-1))


class Denoiser(nn.Module):
    def __init__(self, channels=1, width=8):
        super().__init__()
        self.time = TimeEmbedding(width)
        self.inp = nn.Conv2d(channels * 2, width, 3, padding=1)
        self.blocks = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(2)])
        self.out = nn.Conv2d(width, channels, 1)

    def forward(self, x, cond, t):
        h = self.inp(torch.cat([x, cond], 1)) + self.time(t)[:, :, None, None]
        for block in self.blocks:
            h = h + block(torch.nn.functional.silu(h))
        return self.out(h)
