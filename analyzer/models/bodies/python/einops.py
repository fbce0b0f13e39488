"""einops gives other shapes of what it gets, where that is."""

import dt
import torch


@dt.models("einops.rearrange", "einops.reduce", "einops.repeat")
def rearrange(tensor, pattern, *reduction, **axes):
    """A list of tensors is stacked first. How many axes there are afterwards the pattern says."""
    whole = torch.stack(tensor) if isinstance(tensor, (list, tuple)) else tensor
    return whole.reshape(dt.unknown()) if torch.is_tensor(whole) else dt.unknown()


@dt.models("einops.einsum")
def einsum(first, second, *others):
    """The pattern comes last."""
    dt.together(first, second, *others)
    return rearrange(first, "")


@dt.models("einops.pack")
def pack(tensors, pattern):
    return torch.cat(tensors), dt.unknown()


@dt.models("einops.unpack")
def unpack(tensor, packed_shapes, pattern):
    return list(torch.split(tensor, dt.unknown()))


@dt.models("einops.layers.torch.Rearrange", "einops.layers.torch.Reduce")
class Rearrange(torch.nn.Module):
    def __init__(self, pattern, *reduction, **axes):
        super().__init__()

    def forward(self, tensor):
        return rearrange(tensor, "")


@dt.models("einops.layers.torch.EinMix")
class EinMix(torch.nn.Module):
    def __init__(self, pattern, weight_shape, bias_shape=None, **axes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(1, 1))

    def forward(self, tensor):
        return torch.nn.functional.linear(tensor, self.weight)
