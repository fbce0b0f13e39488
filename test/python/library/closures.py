"""Functions that hand out functions."""
from typing import Callable, List

import torch
from torch import Tensor, nn


def positions(x: Tensor) -> Tensor:
    return torch.arange(x.size(1), device=x.device)


def weighted_loss(classes: int) -> Callable[[Tensor, Tensor], Tensor]:
    weight = torch.linspace(1, 2, classes)

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return (logits.log_softmax(-1) * weight).gather(1, target[:, None]).mean()  # raises

    return loss


def weighted_loss_beside(classes: int) -> Callable[[Tensor, Tensor], Tensor]:
    weight = torch.linspace(1, 2, classes)

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return (logits.log_softmax(-1) * weight.to(logits)).gather(1, target[:, None]).mean()

    return loss


def counted(limit: int):
    seen = torch.zeros(1)

    def add(x: Tensor) -> Tensor:
        nonlocal seen
        seen = seen.to(x.device) + x.sum().view(1)
        return seen.clamp(max=limit)

    return add


def pipeline(steps: List[Callable[[Tensor], Tensor]], scale: float):
    def run(x: Tensor) -> Tensor:
        for step in steps:
            x = step(x)
        return x * scale

    return run


class Schedule:
    def __init__(self, steps: int):
        self.table = torch.linspace(1, 0, steps)

    def at(self, index: int):
        level = self.table[index:index + 1]

        def mix(x: Tensor, noise: Tensor) -> Tensor:
            return x * (1 - level) + noise * level  # raises

        return mix
