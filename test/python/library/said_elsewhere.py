"""What an annotation, another function or another method says of a value, and numbers that stand for the iteration."""
from dataclasses import dataclass
from typing import List, Sequence

import numpy as np
import torch
import torch.nn as nn


@dataclass
class Config:
    devices: Sequence[str] = ("cuda:0", "cuda:1")
    device: str = "cuda:1"
    prior: Sequence[float] = (0.5, 0.5)
    window: int = 2

    def device_of(self, worker: int) -> torch.device:
        return torch.device(self.devices[worker % len(self.devices)])


class Worker:
    """Its device comes from a method of what the annotation names."""

    def __init__(self, config: Config, number: int):
        self.config = config
        self.device = config.device_of(number)
        self.weight = torch.ones(2, device=self.device)
        self.offset = torch.zeros(2)

    def shifted(self) -> torch.Tensor:
        return self.weight + self.offset  # raises

    def losses(self) -> torch.Tensor:
        return torch.stack([self.weight.sum() for _ in range(3)])


class Pool:
    def __init__(self, data: torch.Tensor):
        self.data = data
        self.open_rows = torch.arange(len(data))

    def batches_on(self, device):
        for rows in self.open_rows.split(1):
            yield self.data[rows].to(device)


def scores(pool, config: Config):
    """Only one class has what the pool is asked for."""
    total = torch.zeros(1, 2)
    for batch in pool.batches_on(config.device):
        total = total + batch  # raises
    return total


class Schedule:
    """Another method says that `steps` is a tensor, and that the table may be elsewhere."""

    def __init__(self, size: int):
        self.table = torch.linspace(1, 0, size)

    def noised(self, x, steps):
        return x * self.table.to(x.device)[steps.to(x.device)].unsqueeze(-1)

    def weight(self, steps):
        return self.table[steps]  # raises


class Scaled:
    def __init__(self, samples: torch.Tensor):
        self.mean, self.std = samples.mean(0), samples.std(0)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean.type_as(x)) / self.std.type_as(x)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.std + self.mean  # raises


class Bank(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, 2))
        self.build()

    def build(self):
        self.register_buffer("counts", torch.zeros(2))

    def clear(self):
        self.rows = torch.zeros(len(self.rows), 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.rows.t()  # raises

    def counted(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.counts


class Stages(nn.Module):
    """A stage on each GPU in turn."""

    def __init__(self, count: int):
        super().__init__()
        self.places = [f"cuda:{i}" for i in range(count)]
        self.stages = nn.ModuleList(nn.Linear(2, 2).to(place) for place in self.places)

    def outputs(self, x: torch.Tensor) -> List[torch.Tensor]:
        return [stage(x.to(place)) for stage, place in zip(self.stages, self.places)]

    def mean(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack(self.outputs(x)).mean(0)  # raises

    def changes(self, x: torch.Tensor) -> List[torch.Tensor]:
        found = self.outputs(x)
        return [after - before for before, after in zip(found, found[1:])]  # raises

    def mean_at_home(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([each.to(x.device) for each in self.outputs(x)]).mean(0)


class Reader:
    def rows(self, values: torch.Tensor) -> np.ndarray:
        return values.cpu().numpy()

    def order(self, values: torch.Tensor) -> np.ndarray:
        return np.argsort(-values)  # raises


def node_sum(x: torch.Tensor) -> torch.Tensor:
    nodes, weights = np.polynomial.legendre.leggauss(len(x))
    return torch.dot(x, torch.as_tensor(weights, dtype=x.dtype))  # raises


def windows(config: Config, x: torch.Tensor) -> torch.Tensor:
    """What a configuration says are numbers are numbers."""
    return x / config.window + torch.arange(config.window, device=x.device) / config.window


def brighter(image: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    factor = factor.to(image.device)
    return image + factor


def stronger(image: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    factor = factor.to(image.device, image.dtype)
    return image * factor


def clearer(image: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    return image - image.mean() * factor.to(image.device)


def sharper(image: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Those beside it move what they are given under that name."""
    return image.clamp(0, 1) * factor  # raises


def mixed(image: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return image + other


def _blended(image: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    return image * factor


def blended(image: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    return _blended(image, factor.to(image.device))
