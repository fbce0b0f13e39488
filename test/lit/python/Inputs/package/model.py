import torch


def noise(x):
    return x + torch.ones(3)
