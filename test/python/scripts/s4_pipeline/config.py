from dataclasses import dataclass, field
from typing import List

import torch


@dataclass
class Config:
    gpus: List[int] = field(default_factory=lambda: list(range(max(torch.cuda.device_count(), 1))))
    dim: int = 8
    layers: int = 6
    classes: int = 5
    lr: float = 0.05

    def device(self, i: int) -> torch.device:
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", self.gpus[i])

    @property
    def first(self):
        return self.device(0)

    @property
    def last(self):
        return self.device(len(self.gpus) - 1)

    def stage_of(self, layer: int) -> int:
        return layer * len(self.gpus) // self.layers
