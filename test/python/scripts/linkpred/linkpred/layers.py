import torch
from torch import nn


class Propagate(nn.Module):
    def __init__(self):
        super().__init__()
        self._cached = None

    def norm(self, edge_index, n):
        if self._cached is None or self._cached.device != edge_index.device:
            a = torch.zeros(n, n)
            a[edge_index[0].cpu(), edge_index[1].cpu()] = 1.0
            a = a + torch.eye(n)
            d = a.sum(1).rsqrt()
            self._cached = (d[:, None] * a * d[None]).to(edge_index.device)
        return self._cached

    def forward(self, x, edge_index):
        return self.norm(edge_index, x.size(0)) @ x


class GCN(nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.prop = Propagate()
        self.lins = nn.ModuleList([nn.Linear(i, h), nn.Linear(h, o)])

    def forward(self, graph):
        x = self.prop(self.lins[0](graph.x), graph.edge_index).relu()
        return self.prop(self.lins[1](x), graph.edge_index)


class EdgeDecoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rel = nn.Parameter(torch.ones(dim))

    def forward(self, z, edges):
        return (z[edges[0]] * self.rel * z[edges[1]]).sum(-1)
