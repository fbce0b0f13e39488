from dataclasses import dataclass
from typing import Tuple

import torch


def default_devices():
    count = torch.cuda.device_count()
    if count == 0:
        return ("cpu", "cpu")
    return ("cuda:0", f"cuda:{min(1, count - 1)}")


@dataclass
class Config:
    vocab: int = 16
    dim: int = 16
    heads: int = 2
    layers: int = 2
    length: int = 12
    dropout: float = 0.0
    tie: bool = False
    aux: float = 0.0
    devices: Tuple[str, str] = ()

    def __post_init__(self):
        self.devices = tuple(map(torch.device, self.devices or default_devices()))
        if len(self.devices) != 2:
            raise ValueError("two devices are needed")

    @property
    def first(self):
        return self.devices[0]

    @property
    def last(self):
        return self.devices[1]
