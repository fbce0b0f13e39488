import torch
from torch import nn
from torch.nn import functional as F


class TinyUNet(nn.Module):
    def __init__(self, ch=6, classes=4):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, ch), nn.SiLU(), nn.Linear(ch, ch))
        self.label = nn.Embedding(classes + 1, ch)
        self.null = classes
        self.inp, self.mid, self.out = nn.Conv2d(1, ch, 3, padding=1), nn.Conv2d(ch, ch, 3, padding=1), nn.Conv2d(2 * ch, 1, 3, padding=1)

    @staticmethod
    def embed(t, dim=16):
        freq = torch.pow(1e4, -torch.arange(dim // 2) / (dim // 2)).to(t.device)
        ang = t[:, None] * freq
        return torch.cat([ang.sin(), ang.cos()], 1)

    def forward(self, x, t, y=None, drop=0.0):
        if y is None:
            y = torch.full_like(t, self.null)
        elif drop:
            y = torch.where(torch.rand(y.shape, device=y.device) < drop, torch.full_like(y, self.null), y)
        h = self.inp(x)
        c = self.time(self.embed(t)) + self.label(y)
        m = F.silu(self.mid(F.avg_pool2d(h, 2)) + c[..., None, None])
        return self.out(torch.cat([h, F.interpolate(m, scale_factor=2)], 1))
