from dataclasses import dataclass, field
from typing import Tuple

import torch


@dataclass
class OptimConfig:
    lr: float = 3e-3
    weight_decay: float = 1e-4
    warmup: int = 2


@dataclass
class Config:
    classes: int = 3
    size: int = 16
    batch: int = 4
    epochs: int = 2
    widths: Tuple[int, ...] = (4, 8)
    boundary_from: int = 1
    seed: int = 0
    optim: OptimConfig = field(default_factory=OptimConfig)

    @property
    def device(self):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
