from __future__ import annotations

from typing import Iterator, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset


class Window(NamedTuple):
    past: Tensor
    future: Tensor
    hour: Tensor

    def to(self, device: torch.device) -> "Window":
        return Window(*(t.to(device) for t in self))


class SineSeries(Dataset):
    def __init__(self, n_series: int, context: int, horizon: int, length: int = 80) -> None:
        g = torch.Generator().manual_seed(11)
        phase = torch.rand(n_series, generator=g) * 6.28
        t = torch.arange(length, dtype=torch.float32)
        self.values = torch.sin(t[:, None] / 4 + phase) + 0.1 * torch.randn(length, n_series, generator=g)
        self.hours = torch.arange(length) % 24
        self.context, self.horizon = context, horizon

    def __len__(self) -> int:
        return len(self.values) - self.context - self.horizon

    def __getitem__(self, i: int) -> Window:
        mid = i + self.context
        return Window(self.values[i:mid], self.values[mid:mid + self.horizon], self.hours[i:mid])


class StandardScaler:
    """Statistics of the training part."""

    def __init__(self) -> None:
        self.mean = torch.zeros(1)
        self.std = torch.ones(1)

    def fit(self, values: Tensor) -> "StandardScaler":
        self.mean = values.mean(0)
        self.std = values.std(0).clamp_min(1e-4)
        return self

    def to(self, device: torch.device) -> "StandardScaler":
        self.mean = self.mean.to(device)
        self.std = self.std.to(device)
        return self

    def transform(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std

    def inverse(self, x: Tensor) -> Tensor:
        return x * self.std + self.mean


def device_batches(loader, device: torch.device) -> Iterator[Window]:
    for batch in loader:
        yield batch.to(device)
