import torch

from ..registry import register
from .graph import Graph


def _finish(x, adj, y, seed):
    g = torch.Generator().manual_seed(seed)
    edge_index = adj.nonzero().t().contiguous()
    order = torch.randperm(len(y), generator=g)
    train = torch.zeros(len(y), dtype=torch.bool)
    train[order[:len(y) // 2]] = True
    return Graph(x, edge_index, y, train, ~train)


@register('dataset', 'sbm')
def stochastic_block_model(n=48, classes=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    same = y[:, None] == y[None]
    p = torch.where(same, torch.tensor(0.3), torch.tensor(0.03))
    upper = torch.triu(torch.rand(n, n, generator=g) < p, diagonal=1)
    x = torch.eye(classes)[y] + 0.5 * torch.randn(n, classes, generator=g)
    return _finish(x, upper | upper.t(), y, seed)


@register('dataset', 'ring')
def ring(n=30, classes=2, seed=1):
    i = torch.arange(n)
    adj = torch.zeros(n, n, dtype=torch.bool)
    adj[i, (i + 1) % n] = True
    y = (i >= n // 2).long()
    angle = i.float() / n * 6.2832
    x = torch.stack([angle.sin(), angle.cos(), angle / 6.2832], dim=1)
    return _finish(x, adj | adj.t(), y, seed)
