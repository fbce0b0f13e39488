"""Two views of each vector, made on the device of the batch."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def blobs(count=24, dim=12, classes=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(classes, dim, generator=g)
    labels = torch.randint(classes, (count,), generator=g)
    return TensorDataset(centres[labels] + 0.3 * torch.randn(count, dim, generator=g), labels, torch.arange(count))


def loader(batch_size=8, shuffle=True):
    return DataLoader(blobs(), batch_size=batch_size, shuffle=shuffle, drop_last=shuffle)


class Jitter:
    def __init__(self, strength=0.2):
        self.strength = strength

    def __call__(self, x):
        return x + self.strength * torch.randn_like(x)


class Erase:
    def __init__(self, rate=0.2):
        self.rate = rate

    def __call__(self, x):
        return x * (torch.rand(x.shape).to(x) > self.rate)


class TwoViews:
    def __init__(self, *steps):
        self.steps = steps

    def one(self, x):
        for step in self.steps:
            x = step(x)
        return x

    def __call__(self, x):
        return self.one(x), self.one(x)
