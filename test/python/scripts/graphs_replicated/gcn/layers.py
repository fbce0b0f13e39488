import torch
import torch.nn as nn
import torch.nn.functional as F

_cache = {}


def normalised(edges, nodes):
    """The normalised adjacency with self-loops, as a sparse matrix."""
    loops = torch.arange(nodes, device=edges.device).expand(2, -1)
    index = torch.cat([edges, loops], dim=1)
    degree = torch.zeros(nodes, device=edges.device).scatter_add_(0, index[0], torch.ones_like(index[0], dtype=torch.float))
    value = degree.rsqrt()[index].prod(dim=0)
    return torch.sparse_coo_tensor(index, value, (nodes, nodes)).coalesce()


def adjacency(graph):
    key = (graph.nodes, graph.edges.size(1), str(graph.device))
    if key not in _cache:
        _cache[key] = normalised(graph.edges, graph.nodes)
    return _cache[key]


def drop_edges(edges, rate):
    keep = torch.rand(edges.size(1)) >= rate
    return edges[:, keep]


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs)))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, matrix):
        return torch.sparse.mm(matrix, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, inputs, hidden, classes, depth=2, edge_dropout=0.0):
        super().__init__()
        sizes = [inputs, *[hidden] * (depth - 1), classes]
        self.layers = nn.ModuleList(map(Convolution, sizes, sizes[1:]))
        self.edge_dropout = edge_dropout

    def forward(self, graph):
        if self.training and self.edge_dropout:
            matrix = normalised(drop_edges(graph.edges, self.edge_dropout), graph.nodes)
        else:
            matrix = adjacency(graph)
        x = graph.features
        for layer in self.layers[:-1]:
            x = F.dropout(layer(x, matrix).relu(), 0.2, self.training)
        return self.layers[-1](x, matrix)
