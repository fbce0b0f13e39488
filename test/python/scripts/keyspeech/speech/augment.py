import random

import torch
from torch import nn


def length_mask(lengths, size):
    return torch.arange(size, device=lengths.device)[None] < lengths[:, None]


class UtteranceNorm(nn.Module):
    def forward(self, x, lengths):
        mask = length_mask(lengths, x.size(1)).to(x.device)[..., None]
        n = lengths.to(x).view(-1, 1, 1)
        mean = (x * mask).sum(1, keepdim=True) / n
        return (x - mean) * mask


class GlobalNorm(nn.Module):
    """Means over all that was heard in training."""

    def __init__(self, dim, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.running = {'mean': torch.zeros(dim), 'var': torch.ones(dim)}

    def forward(self, x, lengths):
        if self.training:
            flat = x.detach().flatten(0, 1)
            stats = {'mean': flat.mean(0), 'var': flat.var(0)}
            for key, value in stats.items():
                self.running[key].lerp_(value.cpu(), self.momentum)
        mean, var = self.running['mean'], self.running['var']
        return (x - mean) / (var + 1e-5).sqrt()  # raises


class SpecAugment(nn.Module):
    def __init__(self, how, width=3):
        super().__init__()
        self.how, self.width = how, width

    def forward(self, x, lengths):
        if not self.training or self.how == 'off':
            return x
        return getattr(self, '_' + self.how)(x, lengths)

    def _freq(self, x, lengths):
        start = random.randrange(x.size(2) - self.width)
        x = x.clone()
        x[:, :, start:start + self.width] = torch.tensor(0.0)
        return x

    def _time(self, x, lengths):
        starts = (torch.rand(x.size(0), device=x.device) * (lengths.to(x.device) - self.width).clamp(min=1)).long()
        steps = torch.arange(x.size(1))[None]
        hidden = (steps >= starts[:, None]) & (steps < starts[:, None] + self.width)  # raises
        return x.masked_fill(hidden[..., None], 0.0)

    def _swap(self, x, lengths):
        order = torch.randperm(x.size(2))
        order = torch.where(torch.rand(x.size(2)) < 0.1, order, torch.arange(x.size(2)))
        return x[:, :, order]
