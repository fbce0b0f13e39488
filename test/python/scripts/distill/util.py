from collections import defaultdict
from functools import singledispatch

import torch


@singledispatch
def to_device(x, device):
    return x


@to_device.register
def _(x: torch.Tensor, device):
    return x.to(device, non_blocking=True)


@to_device.register(dict)
def _(x, device):
    return {k: to_device(v, device) for k, v in x.items()}


@to_device.register(list)
@to_device.register(tuple)
def _(x, device):
    return type(x)(to_device(v, device) for v in x)


def infinite(loader):
    while True:
        yield from loader


class AverageDict:
    def __init__(self):
        self.sums, self.n = defaultdict(lambda: torch.zeros(())), 0

    def update(self, **kw):
        self.n += 1
        for k, v in kw.items():
            self.sums[k] = self.sums[k].to(v.device) + v

    def averages(self):
        return {k: (v / self.n).item() for k, v in self.sums.items()}
