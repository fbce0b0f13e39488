"""Graph pooling and normalisation layers, pyg habits: `batch` maps nodes to graphs."""
from typing import Callable, Optional, Tuple, Union

import torch
import torch.nn as nn
from torch import Tensor


def maybe_num_graphs(batch: Optional[Tensor], size: Optional[int] = None) -> int:
    if size is not None:
        return size
    return 1 if batch is None or batch.numel() == 0 else int(batch.max()) + 1


# clean
def scatter_mean(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = src.new_zeros(dim_size, src.size(-1))
    out.index_add_(0, index, src)
    cnt = torch.bincount(index, minlength=dim_size).clamp_(min=1)
    return out / cnt.unsqueeze(-1)


# broken
def to_dense_adj(edge_index: Tensor, batch: Optional[Tensor] = None, edge_attr: Optional[Tensor] = None) -> Tensor:
    n = int(edge_index.max()) + 1 if edge_index.numel() else 0
    if batch is None:
        batch = edge_index.new_zeros(n)
    b = maybe_num_graphs(batch)
    one = batch.new_ones(batch.size(0))
    num = batch.new_zeros(b).scatter_add_(0, batch, one)
    cum = torch.cat([torch.zeros(1, dtype=torch.long), num.cumsum(0)])  # raises
    g = batch[edge_index[0]]
    r, c = edge_index[0] - cum[g], edge_index[1] - cum[g]
    m = int(num.max())
    val = torch.ones(edge_index.size(1), device=edge_index.device) if edge_attr is None else edge_attr
    adj = torch.zeros(b, m, m, dtype=val.dtype, device=edge_index.device)
    return adj.index_put_((g, r, c), val, accumulate=True)


# broken
class TopKPooling(nn.Module):
    def __init__(self, channels: int, ratio: float = .5, nonlinearity: Callable = torch.tanh):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, channels))
        self.ratio, self.act = ratio, nonlinearity

    def _topk(self, score: Tensor, batch: Tensor) -> Tensor:
        keep = []
        for g in range(maybe_num_graphs(batch)):
            idx = (batch == g).nonzero().view(-1)
            k = max(1, int(self.ratio * idx.numel()))
            keep.append(idx[score[idx].topk(k).indices])
        return torch.cat(keep)

    def _filter(self, edge_index: Tensor, perm: Tensor, num_nodes: int) -> Tensor:
        mask = perm.new_full((num_nodes,), -1)
        mask[perm] = torch.arange(perm.size(0))  # raises
        row, col = mask[edge_index[0]], mask[edge_index[1]]
        ok = (row >= 0) & (col >= 0)
        return torch.stack([row[ok], col[ok]])

    def forward(self, x: Tensor, edge_index: Tensor, batch: Optional[Tensor] = None):
        if batch is None:
            batch = edge_index.new_zeros(x.size(0))
        score = self.act((x * self.weight).sum(-1) / self.weight.norm(p=2, dim=-1))
        perm = self._topk(score, batch)
        return x[perm] * score[perm].view(-1, 1), self._filter(edge_index, perm, x.size(0)), batch[perm]


# clean
class GraphNorm(nn.Module):
    def __init__(self, in_channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias, self.mean_scale = (nn.Parameter(torch.empty(in_channels)) for _ in range(3))
        self.reset_parameters()

    def reset_parameters(self):
        for p, v in ((self.weight, 1.), (self.bias, 0.), (self.mean_scale, 1.)):
            p.data = torch.full_like(p, v)

    def forward(self, x: Tensor, batch: Optional[Tensor] = None) -> Tensor:
        if batch is None:
            batch = torch.zeros(x.size(0), dtype=torch.long).to(x.device)
        b = maybe_num_graphs(batch)
        out = x - scatter_mean(x, batch, b)[batch] * self.mean_scale
        std = (scatter_mean(out.pow(2), batch, b) + self.eps).sqrt()
        return self.weight * out / std[batch] + self.bias


# broken
class PairNorm(nn.Module):
    def __init__(self, scale: float = 1.0, scale_individually: bool = False):
        super().__init__()
        self.scale, self.ind = scale, scale_individually

    def forward(self, x: Tensor, batch: Optional[Tensor] = None) -> Tensor:
        if batch is None:
            x = x - x.mean(0, keepdim=True)
            if self.ind:
                return self.scale * x / (1e-5 + x.norm(2, -1, keepdim=True))
            return self.scale * x / (1e-5 + x.pow(2).sum(-1).mean()).sqrt()
        b = maybe_num_graphs(batch)
        x = x - scatter_mean(x, batch, b)[batch]
        sq = torch.zeros(b, 1)
        sq.index_add_(0, batch, x.pow(2).sum(-1, keepdim=True))  # raises
        return self.scale * x / (1e-5 + sq[batch]).sqrt()


# clean
def dropout_edge(edge_index: Tensor, p: float = .5, force_undirected: bool = False,
                 training: bool = True) -> Tuple[Tensor, Union[Tensor, slice]]:
    if not training or p == 0.:
        return edge_index, slice(None)
    row, col = edge_index
    keep = torch.rand(row.numel()) >= p            # decided on the host, used as a mask
    if force_undirected:
        keep[(row > col).cpu()] = False
    out = edge_index[:, keep]
    if force_undirected:
        out = torch.cat([out, out.flip(0)], 1)
    return out, keep.nonzero().view(-1)
