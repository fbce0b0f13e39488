import math

import torch
from torch import nn


class SinusoidalTime(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half, device=t.device) * (-math.log(1e4) / (half - 1)))
        args = t.float()[:, None] * freqs[None]
        return torch.cat([args.sin(), args.cos()], dim=-1)


class FourierTime(nn.Module):
    def __init__(self, dim, scale=4.0):
        super().__init__()
        self.w = torch.randn(dim // 2) * scale * math.pi

    def forward(self, t):
        args = t.float()[:, None] * self.w.to(t.device)[None]
        return torch.cat([args.sin(), args.cos()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.net = nn.ModuleDict(dict(
            first=nn.Sequential(nn.GroupNorm(1, cin), nn.SiLU(), nn.Conv2d(cin, cout, 3, padding=1)),
            second=nn.Sequential(nn.GroupNorm(1, cout), nn.SiLU(), nn.Conv2d(cout, cout, 3, padding=1)),
            emb=nn.Linear(emb, cout),
            skip=nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()))

    def forward(self, x, e):
        h = self.net['first'](x) + self.net['emb'](e)[:, :, None, None]
        return self.net['skip'](x) + self.net['second'](h)


class TinyUNet(nn.Module):
    def __init__(self, channels, width, classes, positions='sin'):
        super().__init__()
        self.null_class = classes
        self.time = nn.Sequential({'sin': SinusoidalTime, 'fourier': FourierTime}[positions](width), nn.Linear(width, width))
        self.label = nn.Embedding(classes + 1, width)
        self.stem = nn.Conv2d(channels, width, 3, padding=1)
        self.down = ResBlock(width, 2 * width, width)
        self.mid = ResBlock(2 * width, 2 * width, width)
        self.up = ResBlock(3 * width, width, width)
        self.out = nn.Conv2d(width, channels, 3, padding=1)
        self.pool, self.unpool = nn.AvgPool2d(2), nn.Upsample(scale_factor=2)

    def forward(self, x, t, y):
        e = self.time(t) + self.label(y)
        a = self.stem(x)
        b = self.mid(self.down(self.pool(a), e), e)
        return self.out(self.up(torch.cat([a, self.unpool(b)], dim=1), e))
