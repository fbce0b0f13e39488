from __future__ import annotations

from functools import partial
from typing import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


def pinball(pred: Tensor, target: Tensor, quantiles: Sequence[float]) -> Tensor:
    q = torch.tensor(quantiles).to(pred)
    err = target.unsqueeze(-1) - pred
    return torch.maximum(q * err, (q - 1) * err).mean()


def decayed_mse(pred: Tensor, target: Tensor, rate: float) -> Tensor:
    weight = torch.pow(torch.tensor(rate), torch.arange(pred.size(1), dtype=pred.dtype, device=pred.device))
    return (weight.view(1, -1, 1) * (pred - target) ** 2).mean()


def make_objective(name: str, quantiles: Sequence[float]) -> Callable[[Tensor, Tensor], Tensor]:
    return {
        "mse": F.mse_loss,
        "decay": partial(decayed_mse, rate=0.9),
        "quantile": partial(pinball, quantiles=quantiles),
    }[name]


class ForecastMetric:
    """Collects absolute errors per horizon step."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.errors: list[Tensor] = []

    def update(self, pred: Tensor, target: Tensor) -> None:
        self.errors.append((pred - target).abs().mean((0, 2)))

    def compute(self) -> np.ndarray:
        stacked = torch.stack(self.errors)
        if self.kind == "mae":
            return stacked.mean(0).cpu().numpy()
        return np.sqrt((stacked ** 2).mean(0))  # raises
