"""Ways through functions on which no caller in the file sends them, and objects whose to() moves them in part."""

from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn


def framed(wave: Tensor, size: int, window: Optional[Tensor] = None) -> Tensor:
    if window is None:
        window = torch.hann_window(size)
    return wave.unfold(-1, size, size) * window  # raises


def with_loops(edges: Tensor, weight: Optional[Tensor] = None, count: int = 4):
    loops = torch.arange(count, device=edges.device).expand(2, -1)
    if weight is not None:
        weight = torch.cat([weight, torch.full((count,), 1.0, dtype=weight.dtype)])  # raises
    return torch.cat([edges, loops], dim=1), weight


def normalised(x: Tensor, like: Optional[Tensor] = None, centre: bool = False) -> Tensor:
    if centre:
        x = x - x.mean(0)
    if like is not None:
        x = x + torch.zeros(x.shape, device=x.device)
    return x / (x.norm() + torch.tensor(1e-6))


class Framed(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.hann_window(size))

    def forward(self, wave: Tensor) -> Tensor:
        return normalised(framed(wave, self.size, self.window))


class Looped(nn.Module):
    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        edges, _ = with_loops(edges)
        return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])


@dataclass
class Boxes:
    corners: Tensor
    scores: Tensor
    labels: Tensor

    def to(self, device) -> "Boxes":
        return Boxes(self.corners.to(device), self.scores.to(device), self.labels)

    def weighted(self) -> Tensor:
        return self.corners * self.scores[:, None]

    def of(self, label: int) -> Tensor:
        return (self.labels == label) & (self.scores > 0.5)  # raises


def offsets(boxes: Boxes) -> Tensor:
    return boxes.corners + 100.0 * boxes.labels[:, None]  # raises


def areas(boxes: Boxes) -> Tensor:
    size = boxes.corners[:, 2:] - boxes.corners[:, :2]
    return size.prod(1) * boxes.scores


class Sample(NamedTuple):
    x: Tensor
    y: Tensor
    group: Tensor

    def to(self, device):
        return self._replace(x=self.x.to(device), y=self.y.to(device))


class Pooled(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gate = nn.Linear(width, 1)

    def forward(self, sample: Sample) -> Tensor:
        score = self.gate(sample.x).sigmoid() * sample.x
        pooled = score.new_zeros(len(sample.y), score.size(1))
        return pooled.index_add(0, sample.group, score)  # raises


class Whole:
    def __init__(self, x: Tensor, y: Tensor):
        self.x, self.y = x, y

    def to(self, device):
        for name in ("x", "y"):
            setattr(self, name, getattr(self, name).to(device))
        return self

    def product(self) -> Tensor:
        return self.x * self.y
