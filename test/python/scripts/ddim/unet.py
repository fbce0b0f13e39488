import math

import torch
from torch import nn
from torch.nn import functional as F


def timestep_features(t, dim, max_period=1000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half).to(t.device)
    angles = t[:, None].float() * freqs[None]
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class Block(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.norm = nn.GroupNorm(2, cin)
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.film = nn.Linear(emb, 2 * cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.conv(F.silu(self.norm(x)))
        scale, shift = self.film(e)[..., None, None].chunk(2, dim=1)
        return self.skip(x) + h * (1 + scale) + shift


class TinyUNet(nn.Module):
    def __init__(self, ch=8, emb=16, classes=0):
        super().__init__()
        self.emb = emb
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(classes + 1, emb) if classes else None
        self.null_label = classes
        self.stem = nn.Conv2d(1, ch, 3, padding=1)
        self.down = nn.ModuleList([Block(ch, ch, emb), Block(ch, 2 * ch, emb)])
        self.mid = Block(2 * ch, 2 * ch, emb)
        self.up = nn.ModuleList([Block(4 * ch, ch, emb), Block(2 * ch, ch, emb)])
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t, y=None):
        e = self.time(timestep_features(t, self.emb))
        if self.label is not None:
            if y is None:
                y = torch.full((len(x),), self.null_label, device=x.device)
            e = e + self.label(y)
        h, stack = self.stem(x), []
        for block in self.down:
            h = block(h, e)
            stack.append(h)
            h = F.avg_pool2d(h, 2)
        h = self.mid(h, e)
        for block in self.up:
            h = F.interpolate(h, scale_factor=2)
            h = block(torch.cat([h, stack.pop()], dim=1), e)
        return self.out(h)
