import math

import torch


def linear(steps, start=1e-3, end=0.2):
    return torch.linspace(start, end, steps)


def cosine(steps, s=0.008):
    t = torch.linspace(0, steps, steps + 1) / steps
    bar = torch.cos((t + s) / (1 + s) * math.pi / 2) ** 2
    return (1 - bar[1:] / bar[:-1]).clamp(max=0.999)


def get(name, steps):
    return {"linear": linear, "cosine": cosine}[name](steps)


def extract(table, t, shape):
    """Values of a schedule at the steps t, shaped for broadcasting."""
    out = table.to(t.device).gather(0, t)
    return out.view(-1, *([1] * (len(shape) - 1)))
