"""LightGCN, and a variant with the items' popularity as a bias."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

_LAYER_WEIGHTS = {}


def layer_weights(layers, like):
    """1 / (k + 1) for each layer, kept by number and device."""
    key = layers, like.device, like.dtype
    if key not in _LAYER_WEIGHTS:
        table = torch.tensor([1.0 / (k + 1) for k in range(layers + 1)])
        _LAYER_WEIGHTS[key] = (table / table.sum()).to(like)
    return _LAYER_WEIGHTS[key]


class LightGCN(nn.Module):
    def __init__(self, users, items, dim=8, layers=2):
        super().__init__()
        self.users, self.items, self.layers = users, items, layers
        weight = torch.empty(users + items, dim)
        nn.init.normal_(weight, std=0.1)
        self.weight = nn.Parameter(weight)
        self.temperature = torch.tensor(1.0 / math.sqrt(dim))
        self._cached = None

    def propagate(self, graph):
        x, source, target = self.weight, graph.edges[0], graph.edges[1]
        outputs = [x]
        for _ in range(self.layers):
            messages = x[source] * graph.norm[:, None]
            x = torch.zeros_like(x).index_add(0, target, messages)
            outputs.append(x)
        mix = layer_weights(self.layers, x)
        return (torch.stack(outputs, dim=-1) * mix).sum(-1)

    def train(self, mode=True):
        self._cached = None
        return super().train(mode)

    def embeddings(self, graph):
        if self.training:
            return self.propagate(graph)
        if self._cached is None:
            self._cached = self.propagate(graph).detach()
        return self._cached

    def bias(self, items):
        return torch.zeros((), dtype=self.weight.dtype)

    def forward(self, graph, users, items):
        table = self.embeddings(graph)
        u, i = table[users], table[items + self.users]
        return (u * i).sum(-1) * self.temperature + self.bias(items)

    def all_scores(self, graph, users):
        table = self.embeddings(graph)
        everything = torch.arange(self.items)
        scores = table[users] @ table[self.users + everything].t()
        return scores * self.temperature + self.bias(everything)


class PopularityLightGCN(LightGCN):
    def __init__(self, users, items, popularity, **kwargs):
        super().__init__(users, items, **kwargs)
        self.register_buffer("popularity", popularity.log1p())
        self.strength = nn.Parameter(torch.zeros(()))

    def bias(self, items):
        return self.strength * self.popularity[items]


def bpr(positive, negative):
    return F.softplus(negative - positive).mean()


def contrast(first, second, nodes, temperature=0.2):
    """InfoNCE between two views of the same nodes (SGL)."""
    a, b = F.normalize(first[nodes], dim=1), F.normalize(second[nodes], dim=1)
    target = torch.arange(len(nodes)).type_as(nodes)
    return F.cross_entropy(a @ b.t() / temperature, target)
