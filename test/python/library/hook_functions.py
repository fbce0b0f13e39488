"""What hooks compute with: a library calls them with what a layer, or a gradient, is."""
from functools import partial

import torch
from torch import nn


def shift_outputs(layer, size, by=1.0):
    shift = torch.full((size,), by)

    def add(module, inputs, output):
        return output + shift  # raises

    return layer.register_forward_hook(add)


def shift_outputs_there(layer, size):
    shift = torch.ones(size)

    def add(module, inputs, output):
        return output + shift.to(output.device)

    return layer.register_forward_hook(add)


class FrozenRows:
    """Rows that must not learn; hooks are called whatever their names say."""

    def __init__(self, embedding, rows):
        self.mask = torch.ones(embedding.num_embeddings, 1)
        self.mask[rows] = 0.0
        embedding.weight.register_hook(self._masked)

    def _masked(self, grad):
        return grad * self.mask  # raises


class FrozenRowsThere:
    def __init__(self, embedding, rows):
        self.mask = torch.ones(embedding.num_embeddings, 1, device=embedding.weight.device)
        self.mask[rows] = 0.0
        embedding.weight.register_hook(self._masked)

    def _masked(self, grad):
        return grad * self.mask


class Recorder:
    """Hooks that another function makes, for each layer its own."""

    def __init__(self, layers, size):
        self.sums = torch.zeros(size)
        self.kept = {}
        for name, layer in layers.items():
            layer.register_forward_hook(self.make(name))

    def make(self, name):
        def record(module, inputs, output):
            self.kept[name] = (output - self.sums).mean()  # raises

        return record


def scaled(by, module, inputs, output):
    return output * (by * torch.ones(3))  # raises


def scale(layer, by):
    return layer.register_forward_hook(partial(scaled, by))


def scale_after(layer, size):
    factors = torch.ones(size)
    return layer.register_forward_hook(lambda module, inputs, output: output * factors)  # raises


def first_of(module, inputs, output):
    """One that asks what it is given takes more than tensors."""
    return output[0] if isinstance(output, tuple) else output


def keep_first(layer):
    return layer.register_forward_hook(first_of)


def module_of(layer):
    return next(layer.parameters()).device
