import torch
import torch.nn as nn
import torch.nn.functional as F

from gnn.graph import add_self_loops, gcn_weights, walk_weights


def segment_softmax(scores, index, nodes):
    shifted = (scores - scores.max()).exp()
    total = shifted.new_zeros(nodes).index_add_(0, index, shifted)
    return shifted / total[index].clamp(min=1e-9)


class GCNConv(nn.Module):
    def __init__(self, inputs, outputs, norm="sym", cached=False):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = norm
        self.cached = cached
        self._cache = None

    def weights(self, edge_index, nodes):
        if self.cached and self._cache is not None:
            return self._cache
        edges = add_self_loops(edge_index, nodes)
        weights = gcn_weights(edges, nodes) if self.norm == "sym" else walk_weights(edges, nodes)
        if self.cached:
            self._cache = edges, weights
        return edges, weights

    def forward(self, x, edge_index):
        edges, weights = self.weights(edge_index, x.size(0))
        messages = self.linear(x)[edges[0]] * weights.unsqueeze(1)
        out = torch.zeros(x.size(0), messages.size(1)).to(messages)
        return out.index_add(0, edges[1], messages)


class GATConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.attend = nn.Parameter(torch.randn(2, outputs) * 0.1)

    def forward(self, x, edge_index):
        edges = add_self_loops(edge_index, x.size(0))
        h = self.linear(x)
        source, target = edges
        scores = (h[source] * self.attend[0] + h[target] * self.attend[1]).sum(1)
        alpha = segment_softmax(F.leaky_relu(scores, 0.2), target, x.size(0))
        return torch.zeros_like(h).index_add(0, target, alpha[:, None] * h[source])


class SAGEConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbours = nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        source, target = edge_index
        total = x.new_zeros(x.shape).index_add_(0, target, x[source])
        count = torch.bincount(target, minlength=x.size(0)).clamp(min=1)
        return self.own(x) + self.neighbours(total / count[:, None])


class Net(nn.Module):
    def __init__(self, conv, inputs, hidden, classes, **options):
        super().__init__()
        self.first = conv(inputs, hidden, **options)
        self.second = conv(hidden, classes, **options)

    def forward(self, x, edge_index):
        return self.second(F.relu(self.first(x, edge_index)), edge_index)
