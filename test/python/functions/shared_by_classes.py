"""What classes hold for all their objects, functions with a gradient of their own, and endless iterators."""

import itertools
import random

import torch


class _Masks:
    kept = {}
    device = "cpu"
    table = None

    @classmethod
    def of(cls, length, device):
        if length not in cls.kept:
            cls.kept[length] = torch.ones(length, length, device=device)
        return cls.kept[length]

    @classmethod
    def sized(cls, size, device):
        if size not in cls.kept:
            cls.kept[size] = torch.ones(size, device=device)
        return cls.kept[size]

    @classmethod
    def shared(cls, x):
        if cls.table is None:
            cls.table = torch.ones(3, device=x.device)
        return cls.table


class _Fine(_Masks):
    table = None


def case_kept_by_length():
    first, second = torch.zeros(4, 4, device="cuda:1"), torch.zeros(4, 4, device="cuda:2")
    first = first + _Masks.of(first.shape[1], first.device)
    return second + _Masks.of(second.shape[1], second.device)  # raises


def case_kept_by_size():
    first, second = torch.zeros(5, device="cuda:1"), torch.zeros(5, device="cuda:2")
    return first + _Masks.sized((3, 5), first.device), second + _Masks.sized((2, 5), second.device)


def case_table_of_class():
    _Masks.shared(torch.zeros(3, device="cuda:1"))
    return _Masks.shared(torch.zeros(3, device="cuda:2")) + torch.zeros(3, device="cuda:2")  # raises


def case_table_of_derived():
    _Masks.shared(torch.zeros(3, device="cuda:1"))
    _Fine.table = None
    return _Fine.shared(torch.zeros(3, device="cuda:2")) + torch.zeros(3, device="cuda:2")


def case_device_of_class():
    _Masks.device = "cuda:3"
    return torch.zeros(3, device=_Masks.device) + torch.ones(3, device="cuda:3")


class _Settings:
    device = "cpu"


def case_assigned_for_objects():
    settings, own = _Settings(), _Settings()
    own.device = "cuda:1"
    _Settings.device = "cuda:0"
    first = torch.zeros(3, device=settings.device) + torch.ones(3, device="cuda:0")
    second = torch.zeros(3, device=own.device) + torch.ones(3, device="cuda:1")
    return first, second


class _Damped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.ramp = torch.linspace(0, 1, 3)
        ctx.save_for_backward(x)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        near = grad * x
        return near * ctx.ramp  # raises


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        steps = x / scale  # raises
        return steps.round() * scale

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def case_damped():
    x = torch.zeros(3, device="cuda:1", requires_grad=True)
    _Damped.apply(x).sum().backward()
    return x.grad


def case_rounded():
    return _Rounded.apply(torch.zeros(3, device="cuda:1"), torch.ones(3))


def case_endless():
    total = torch.zeros(3, device="cuda:0")
    for _, device in zip(range(2), itertools.repeat("cuda:1")):
        total = total + torch.ones(3, device=device)  # raises
    return total


def case_drawn_of_several():
    rng = random.Random(0)
    parts = [torch.zeros(3, device=f"cuda:{i}") for i in range(2)]
    return torch.stack(rng.sample(parts, 2))  # raises


def case_drawn_of_one_gpu():
    rng = random.Random(0)
    parts = [torch.zeros(3, device="cuda:1") for _ in range(3)]
    return torch.stack(rng.sample(parts, 2)) + rng.choice(parts)
