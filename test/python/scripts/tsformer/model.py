from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from config import ModelConfig


def sine_table(length: int, dim: int) -> Tensor:
    position = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(10000.0) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class SinePositions(nn.Module):
    def __init__(self, dim: int, max_len: int = 64) -> None:
        super().__init__()
        self.register_buffer("table", sine_table(max_len, dim), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.size(1)]


class ScaledPositions(nn.Module):
    """Sine table with a learned gain."""

    def __init__(self, dim: int, max_len: int = 64) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((1,), 0.5))
        self.table = sine_table(max_len, dim).unsqueeze(0)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gain * self.table[:, : x.size(1)]  # raises


class LearnedPositions(nn.Module):
    def __init__(self, dim: int, max_len: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(max_len, dim)

    def forward(self, x: Tensor) -> Tensor:
        index = torch.arange(x.size(1)).type_as(x).long()
        return x + self.embed(index)


POSITIONS = {"sine": SinePositions, "scaled": ScaledPositions, "learned": LearnedPositions}


@lru_cache(maxsize=16)
def causal_mask(size: int, device: torch.device) -> Tensor:
    return torch.triu(torch.full((size, size), float("-inf"), device=device), diagonal=1)


class Forecaster(nn.Module):
    def __init__(self, cfg: ModelConfig, outputs: int = 1) -> None:
        super().__init__()
        self.cfg = cfg
        self.outputs = outputs
        self.inp = nn.Linear(cfg.n_series, cfg.d_model)
        self.positions = POSITIONS[cfg.positions](cfg.d_model)
        self.hours = nn.Embedding(24, cfg.d_model) if cfg.calendar else None
        layer = nn.TransformerEncoderLayer(cfg.d_model, cfg.heads, 2 * cfg.d_model, batch_first=True)
        self.body = nn.TransformerEncoder(layer, cfg.layers)
        self.out = nn.Linear(cfg.d_model, cfg.horizon * cfg.n_series * outputs)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, past: Tensor, hour: Tensor) -> Tensor:
        x = self.positions(self.inp(past))
        if self.hours is not None:
            x = x + self.hours(hour)
        x = self.body(x, mask=causal_mask(x.size(1), x.device))
        y = self.out(x[:, -1]).view(-1, self.cfg.horizon, self.cfg.n_series, self.outputs)
        return y.squeeze(-1) if self.outputs == 1 else y
