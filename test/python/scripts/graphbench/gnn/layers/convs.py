import torch
from torch import nn

from ..registry import register
from ..scatter import AGGREGATORS, scatter_sum


class MessagePassing(nn.Module):
    aggregate = staticmethod(scatter_sum)

    def message(self, x_j, weight):
        if weight is None:
            return x_j
        return x_j * weight.unsqueeze(-1)  # raises

    def propagate(self, x, graph):
        source, target = graph.edge_index
        return self.aggregate(self.message(x[source], graph.edge_weight), target, x.size(0))


@register('conv', 'gcn')
class GCNConv(MessagePassing):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout)

    def forward(self, x, graph):
        h = self.lin(x)
        return h + self.propagate(h, graph)


@register('conv', 'sage')
class SAGEConv(MessagePassing):
    def __init__(self, cin, cout, aggr='max'):
        super().__init__()
        self.aggregate = AGGREGATORS[aggr]
        self.own, self.other = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)

    def forward(self, x, graph):
        return self.own(x) + self.other(self.propagate(x, graph))


@register('conv', 'gin')
class GINConv(MessagePassing):
    def __init__(self, cin, cout, learn_eps=False):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(cin, cout), nn.ReLU(), nn.Linear(cout, cout))
        self.eps = nn.Parameter(torch.zeros(1)) if learn_eps else torch.tensor(0.1)

    def forward(self, x, graph):
        return self.mlp((1 + self.eps) * x + self.propagate(x, graph))
