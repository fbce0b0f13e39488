from abc import ABC, abstractmethod

import torch
from torch import nn
from torch.nn import functional as F


class Stage(nn.Module, ABC):
    """A part of the network with a device of its own."""

    def __init__(self, device):
        super().__init__()
        self.home = device

    @abstractmethod
    def compute(self, x):
        ...

    def settle(self):
        return self.to(self.home)

    def forward(self, x):
        return self.compute(x.to(self.home))


class Stem(Stage):
    def __init__(self, device, width):
        super().__init__(device)
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.register_buffer('mean', torch.full((1, 1, 1, 1), 0.1))

    def compute(self, x):
        return F.max_pool2d(self.body(x - self.mean), 2)


class Residual(nn.Module):
    def __init__(self, width, drop_path):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.drop_path = drop_path

    def forward(self, x):
        y = F.relu(self.conv(x))
        if self.training and self.drop_path:
            keep = torch.rand(len(x), 1, 1, 1).to(y.device) >= self.drop_path
            y = y * keep / (1 - self.drop_path)
        return x + y


class Head(Stage):
    def __init__(self, device, width, classes, depth=2, drop_path=0.0):
        super().__init__(device)
        self.blocks = nn.Sequential(*[Residual(width, drop_path) for _ in range(depth)])
        self.fc = nn.Linear(width, classes)

    def compute(self, x):
        return self.fc(self.blocks(x).mean((2, 3)))


class AuxHead(nn.Module):
    """A second classifier on what the stem gives, used while training only."""

    def __init__(self, width, classes):
        super().__init__()
        self.fc = nn.Linear(width, classes)

    def forward(self, h):
        return self.fc(h.flatten(2).mean(2))


class Pipeline(nn.Module):
    def __init__(self, devices, width=8, classes=4, aux=False, drop_path=0.0):
        super().__init__()
        first, last = devices
        self.stem = Stem(first, width).settle()
        self.head = Head(last, width, classes, drop_path=drop_path).settle()
        self.aux = AuxHead(width, classes).to(first) if aux else None

    @property
    def input_device(self):
        return self.stem.home

    @property
    def output_device(self):
        return self.head.home

    def forward(self, x, chunks=1):
        outs, auxs = [], []
        for part in x.chunk(chunks):
            h = self.stem(part)
            outs.append(self.head(h))
            if self.aux is not None and self.training:
                auxs.append(self.aux(h))
        return torch.cat(outs), torch.cat(auxs) if auxs else None
