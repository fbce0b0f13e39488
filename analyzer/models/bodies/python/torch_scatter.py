"""torch_scatter: reductions over an index. Like scatter_add, they want all that they get on one device."""

import dt
import torch


@dt.models(
    "torch_scatter.scatter",
    "torch_scatter.scatter_sum",
    "torch_scatter.scatter_add",
    "torch_scatter.scatter_mul",
    "torch_scatter.scatter_mean",
    "torch_scatter.scatter_std",
)
def scatter(src, index, dim=-1, out=None, dim_size=None, *values, **options):
    return src.scatter_add(dim, index, src) if out is None else out.scatter_add_(dim, index, src)


@dt.models("torch_scatter.scatter_min", "torch_scatter.scatter_max")
def scatter_extreme(src, index, dim=-1, out=None, dim_size=None):
    return scatter(src, index, dim, out), torch.zeros_like(index)


@dt.models("torch_scatter.scatter_softmax", "torch_scatter.scatter_log_softmax", "torch_scatter.scatter_logsumexp")
def scatter_softmax(src, index, dim=-1, *values, **options):
    return scatter(src, index, dim)


@dt.models("torch_scatter.segment_coo", "torch_scatter.segment_csr")
def segment(src, index, out=None, *values, **options):
    return scatter(src, index, 0, out)


@dt.models("torch_scatter.gather_coo", "torch_scatter.gather_csr")
def gather(src, index, out=None):
    return src.gather(0, index)
