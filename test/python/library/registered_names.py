"""What modules have registered, by their dictionaries."""

import torch
from torch import nn


class Tables(nn.Module):
    def __init__(self, tables):
        super().__init__()
        for number, table in enumerate(tables):
            self.register_buffer(str(number), table)

    def __iter__(self):
        return iter(self._buffers.values())


class Lookup(nn.Module):
    def __init__(self, sizes=(2, 3)):
        super().__init__()
        self.tables = Tables(torch.ones(size, 4) for size in sizes)
        self.linear = nn.Linear(4, 4)
        self.register_parameter("bias", None)

    def forward(self, features):
        return [feature + table[0] for feature, table in zip(features, self.tables)]

    def shifted(self, features):
        shift = torch.arange(4.0)
        return [feature * 2 + (table + shift) for feature, table in zip(features, self.tables)]  # raises

    def weighted(self, x):
        weight = self.linear._parameters["weight"]
        return (x.to(weight.device) @ weight) + torch.ones(4)  # raises

    def biased(self, x):
        return x if self._parameters["bias"] is None else x + self._parameters["bias"]
