import copy

import torch


class Graph:
    def __init__(self, **tensors):
        self.__dict__.update(tensors)

    def __iter__(self):
        return iter(self.__dict__.items())

    @property
    def n(self):
        return self.x.shape[0]

    def apply(self, fn):
        for k, v in list(self):
            if torch.is_tensor(v):
                self.__dict__[k] = fn(v)
        return self

    def to(self, device):
        return self.apply(lambda t: t.to(device))

    def clone(self):
        return copy.copy(self)


def karate_like(n=16, p=0.25, seed=0):
    g = torch.Generator().manual_seed(seed)
    upper = torch.triu(torch.rand(n, n, generator=g) < p, diagonal=1)
    edges = upper.nonzero().t()
    return Graph(x=torch.eye(n), edge_index=edges)


def split_edges(graph, val=0.2, generator=None):
    m = graph.edge_index.size(1)
    perm = torch.randperm(m, generator=generator)
    cut = int(m * val)
    held, kept = perm[:cut], perm[cut:]
    train = graph.clone()
    train.pos = graph.edge_index[:, kept]
    train.edge_index = torch.cat([train.pos, train.pos.flip(0)], 1)
    return train, graph.edge_index[:, held]
