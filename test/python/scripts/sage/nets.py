import torch
import torch.nn as nn
import torch.nn.functional as F


def scatter_mean(values, index, size):
    out = values.new_zeros(size, values.size(1))
    out.index_add_(0, index, values)
    count = values.new_zeros(size).index_add_(0, index, torch.ones_like(index, dtype=values.dtype))
    return out / count.clamp(min=1).unsqueeze(1)


def scatter_max(values, index, size):
    out = torch.zeros(size, values.size(1))
    index = index.unsqueeze(1).expand_as(values)
    return out.scatter_reduce(0, index, values, reduce='amax', include_self=False)  # raises


AGGREGATORS = {'mean': scatter_mean, 'max': scatter_max}


class SageConv(nn.Module):
    def __init__(self, d_in, d_out, aggr):
        super().__init__()
        self.self_lin = nn.Linear(d_in, d_out)
        self.nbr_lin = nn.Linear(d_in, d_out, bias=False)
        self.aggr = AGGREGATORS[aggr]

    def forward(self, h, layer):
        nbr = self.aggr(h[layer.src], layer.dst, layer.num_dst)
        return self.self_lin(h[:layer.num_dst]) + self.nbr_lin(nbr)


class Sage(nn.Module):
    def __init__(self, d_in, hidden, classes, depth, aggr='mean', residual=False):
        super().__init__()
        dims = [d_in] + [hidden] * (depth - 1) + [classes]
        self.convs = nn.ModuleList(SageConv(a, b, aggr) for a, b in zip(dims, dims[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for d in dims[1:-1])
        self.residual = residual
        if residual:
            self.shortcuts = [nn.Linear(a, b) for a, b in zip(dims, dims[1:])]

    def forward(self, h, layers):
        for i, (conv, layer) in enumerate(zip(self.convs, layers)):
            z = conv(h, layer)
            if self.residual:
                z = z + self.shortcuts[i](h[:layer.num_dst])  # raises
            if i < len(self.norms):
                z = F.relu(self.norms[i](z))
            h = z
        return h


class LabelPropagation(nn.Module):
    """Without parameters: smooths predictions over the edges a few times."""

    def __init__(self, rounds, alpha=0.8):
        super().__init__()
        self.rounds, self.alpha = rounds, alpha

    @torch.no_grad()
    def forward(self, probs, indptr, indices):
        dst = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr[1:] - indptr[:-1])
        out = probs
        for _ in range(self.rounds):
            out = self.alpha * scatter_mean(out[indices], dst, len(probs)) + (1 - self.alpha) * probs
        return out
