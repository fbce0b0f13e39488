import math

import torch

from .torch import Layer


def shifted(x: torch.Tensor, layer: Layer):
    return layer(x) + torch.ones(math.ceil(3.5))


def counted(x: torch.Tensor):
    return x + torch.ones(3)
