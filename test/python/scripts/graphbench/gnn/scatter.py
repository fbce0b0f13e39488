"""The few scatter operations that convolutions need."""
import torch


def scatter_sum(src, index, size):
    out = src.new_zeros((size,) + tuple(src.shape[1:]))
    return out.index_add_(0, index, src)


def degree(index, size):
    out = torch.zeros(size)
    return out.scatter_add_(0, index, torch.ones(index.numel()))  # raises


def scatter_mean(src, index, size):
    count = degree(index, size).clamp(min=1)
    return scatter_sum(src, index, size) / count.view(-1, *([1] * (src.dim() - 1)))


def scatter_max(src, index, size):
    out = torch.full((size,) + tuple(src.shape[1:]), float('-inf'), device=src.device)
    where = index.view(-1, *([1] * (src.dim() - 1))).expand_as(src)
    out = out.scatter_reduce(0, where, src, reduce='amax')
    return torch.where(torch.isinf(out), torch.zeros_like(out), out)


def scatter_softmax(src, index, size):
    peak = scatter_max(src.detach(), index, size)[index]
    e = (src - peak).exp()
    return e / (scatter_sum(e, index, size)[index] + 1e-12)


AGGREGATORS = {'sum': scatter_sum, 'mean': scatter_mean, 'max': scatter_max}
