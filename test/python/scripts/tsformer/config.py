from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields
from typing import Tuple

import torch


@dataclass
class ModelConfig:
    n_series: int = 4
    d_model: int = 16
    heads: int = 2
    layers: int = 2
    context: int = 24
    horizon: int = 6
    positions: str = "sine"
    calendar: bool = False


@dataclass
class TrainConfig:
    epochs: int = 2
    batch_size: int = 8
    lr: float = 1e-3
    warmup: int = 4
    quantiles: Tuple[float, ...] = (0.1, 0.5, 0.9)
    loss: str = "mse"
    device: str = "auto"
    metric: str = "mae"
    model: ModelConfig = field(default_factory=ModelConfig)

    def resolve_device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)


def parse_config() -> TrainConfig:
    parser = argparse.ArgumentParser()
    for cls in (TrainConfig, ModelConfig):
        for f in fields(cls):
            if f.name in ("model", "quantiles"):
                continue
            if isinstance(f.default, bool):
                parser.add_argument(f"--{f.name}", action="store_true")
            else:
                parser.add_argument(f"--{f.name}", type=type(f.default), default=f.default)
    values = vars(parser.parse_args())
    model = ModelConfig(**{f.name: values.pop(f.name) for f in fields(ModelConfig)})
    return TrainConfig(model=model, **values)
