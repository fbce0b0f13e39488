import torch

__all__ = ["helper"]


def helper():
    return torch.ones(3)


def other():
    return torch.ones(3)
