import torch


def f(n):
    return torch.zeros(n) + torch.ones(n, device="cuda")


def g(n):
    return torch.zeros(n) + torch.ones(n, device="cpu")
