"""A citation-like graph and functions on its edges."""
from collections import namedtuple

import torch

Graph = namedtuple("Graph", "x y edge_index train_mask val_mask test_mask")


def random_graph(nodes, features, classes, edges, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    x = torch.randn(nodes, features, generator=generator)
    x[torch.arange(nodes), y] += 2.0
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    order = torch.randperm(nodes, generator=generator)
    masks = []
    for part in order.split([nodes // 2, nodes // 4, nodes - nodes // 2 - nodes // 4]):
        mask = torch.zeros(nodes, dtype=torch.bool)
        mask[part] = True
        masks.append(mask)
    return Graph(x, y, edge_index, *masks)


def to_device(graph, device, only=None):
    moved = {
        name: value.to(device)
        for name, value in graph._asdict().items()
        if only is None or name in only
    }
    return graph._replace(**moved)


def add_self_loops(edge_index, nodes):
    loops = torch.arange(nodes, device=edge_index.device)
    return torch.cat([edge_index, loops.expand(2, -1)], dim=1)


def degree(index, nodes):
    ones = torch.ones(index.numel(), device=index.device)
    return torch.zeros(nodes, device=index.device).scatter_add_(0, index, ones)


def gcn_weights(edge_index, nodes):
    inverse = degree(edge_index[1], nodes).clamp(min=1).pow(-0.5)
    return inverse[edge_index[0]] * inverse[edge_index[1]]


def walk_weights(edge_index, nodes):
    counts = torch.zeros(nodes)
    counts.index_add_(0, edge_index[0].cpu(), torch.ones(edge_index.size(1)))
    return 1.0 / counts[edge_index[0]]  # raises


def sparse_adjacency(edge_index, weights, nodes):
    return torch.sparse_coo_tensor(edge_index, weights, (nodes, nodes)).coalesce()


def drop_edges(edge_index, rate):
    keep = torch.rand(edge_index.size(1)) >= rate
    return edge_index[:, keep]


def drop_features(x, rate):
    keep = torch.bernoulli(torch.full((1, x.size(1)), 1 - rate))
    return x * keep / (1 - rate)  # raises
