"""Modules that move members of their own, and those that forget to."""
import copy
from typing import Callable, Dict, List

import torch
import torch.nn as nn


class ByTo(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.table = torch.zeros(size)
        self.kept = [torch.zeros(size)]

    def to(self, *args, **kwargs):
        self.table = self.table.to(*args, **kwargs)
        return super().to(*args, **kwargs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table

    def forgotten(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.kept[0]  # raises


class ByApply(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.tables: Dict[str, torch.Tensor] = {"a": torch.zeros(size)}
        self.kept = torch.zeros(size)

    def _apply(self, fn: Callable):
        super()._apply(fn)
        self.tables = {name: fn(table) for name, table in self.tables.items()}
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.tables["a"]

    def forgotten(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.kept  # raises


class ByPlace(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.layers: List[nn.Module] = [nn.Linear(size, size)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[0](x)

    def place(self, device):
        for layer in self.layers:
            layer.to(device)
        return self


class Teacher(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.student = nn.Linear(size, size)
        self._slow = [copy.deepcopy(self.student).requires_grad_(False)]

    @property
    def slow(self) -> nn.Module:
        return self._slow[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.student(x) + self.slow(x)  # raises


class Cache(nn.Module):
    """Grids are kept by their size alone."""

    def __init__(self):
        super().__init__()
        self.grids: Dict[int, torch.Tensor] = {}

    def grid(self, size: int, device: torch.device) -> torch.Tensor:
        if size not in self.grids:
            self.grids[size] = torch.zeros(size, device=device)
        return self.grids[size]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.grid(x.shape[0], x.device) + x  # raises


def weighted(losses: Dict[str, torch.Tensor], weights=(1.0, 2.0)) -> Dict[str, torch.Tensor]:
    scale = torch.tensor(weights)
    return {name: loss * scale for name, loss in losses.items()}  # raises
