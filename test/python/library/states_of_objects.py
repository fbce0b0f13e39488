"""What objects keep: set by a method, by their class, or by the constructor that annotations stand for."""
from dataclasses import dataclass
from typing import NamedTuple

import torch


class SetLater:
    def __init__(self, dim):
        self.w = torch.zeros(dim, 2)

    def begin(self, latent):
        self.latent = latent.relu()

    def actions(self):
        return self.latent @ self.w  # raises

    def actions_there(self):
        return self.latent @ self.w.to(self.latent.device)


class OfTheClass:
    strides = torch.tensor([1.0, 97.0, 9409.0])

    def key(self, positions):
        return positions.relu() @ self.strides  # raises


class OfTheClassBehind(OfTheClass):
    cutoff = 2.0

    def __init__(self, scale):
        self.scale = scale

    def bins(self, positions):
        return positions.relu() + self.strides * self.scale  # raises


@dataclass
class System:
    positions: torch.Tensor
    scale: float = 1.0

    def inertia(self):
        return self.positions @ torch.eye(3)  # raises

    def inertia_there(self):
        return self.positions @ torch.eye(3, device=self.positions.device) * self.scale


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor

    def weighted(self):
        return self.a * torch.tensor([1.0, 2.0, 3.0])  # raises

    def difference(self):
        return self.a - self.b


REGISTRY = {}


def register(cls):
    REGISTRY[cls.__name__] = cls
    return cls


@register
class Coder:
    def __init__(self, bins):
        self.project = torch.arange(float(bins))

    def expectation(self, logits):
        return logits.softmax(-1) @ self.project  # raises


def degrees(index, count):
    return torch.zeros(count).index_add_(0, index, torch.ones(len(index)))  # raises


def chosen(table, index):
    return table.index_select(0, index.to(table.device))
