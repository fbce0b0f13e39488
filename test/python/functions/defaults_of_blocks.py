"""Defaults are what the block around says when the function is made."""

import torch
from torch import nn


def spread(devices):
    stages = nn.ModuleList(nn.Linear(2, 2).to(device) for device in devices)
    for device, stage in zip(devices, stages):
        stage.register_forward_pre_hook(lambda module, args, device=device: tuple(a.to(device) for a in args))
    return stages


def case_hooks():
    x = torch.zeros(3, 2, device="cuda:0")
    for stage in spread(["cuda:0", "cuda:1"]):
        x = stage(x)


def case_lambda():
    device = "cuda:1"
    move = lambda x, device=device: x.to(device)
    device = "cuda:0"
    move(torch.zeros(2)) + torch.zeros(2, device="cuda:1")
    move(torch.zeros(2)) + torch.zeros(2, device=device)  # raises


def case_nested():
    scale = torch.ones(2, device="cuda:0")

    def scaled(x, scale=scale, by=scale * 2):
        return x * scale * by

    scaled(torch.zeros(2, device="cuda:0"))


def case_table():
    weights = torch.full((3,), 0.5)
    total = sum(w * x for w, x in zip(weights, [torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:0")]))
    total + torch.ones(2, device="cuda:0")
    first, second = torch.tensor([1.0, 2.0])
    torch.ones(2, device="cuda:0") * first * second
