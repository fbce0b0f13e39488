import torch

import graphlib as G

D = "cuda:0"


def graph(n=6):
    a = torch.arange(n)
    return torch.stack([torch.cat([a, (a + 1) % n]), torch.cat([(a + 1) % n, a])]).to(D)


X = lambda: torch.randn(6, 4, device=D)
TYPES = lambda: torch.randint(2, (12,), device=D)


def _memory():
    m = G.Memory(6, 4).to(D)
    nodes = torch.tensor([0, 2, 2], device=D)
    m.store(nodes, torch.tensor([1.0, 2.0, 3.0], device=D))
    return m.update(nodes)


CALLS = {
    "scatter_sum": lambda: G.scatter(X(), torch.arange(6, device=D) // 2),
    "scatter_mean": lambda: G.scatter(X(), torch.arange(6, device=D) // 2, reduce="mean"),
    "scatter_max": lambda: G.scatter(X(), torch.arange(6, device=D) // 2, reduce="max"),
    "softmax": lambda: G.softmax(X(), torch.arange(6, device=D) // 2),
    "degree": lambda: G.degree(graph()[0]),
    "self_loops": lambda: G.add_self_loops(graph(), torch.rand(12, device=D)),
    "isolated": lambda: G.remove_isolated(graph()),
    "subgraph": lambda: G.subgraph(torch.tensor([0, 1, 2], device=D), graph()),
    "dense": lambda: G.to_dense_batch(X(), torch.tensor([0, 0, 0, 1, 1, 1], device=D)),
    "dense_one": lambda: G.to_dense_batch(X()),
    "dropout_edge": lambda: G.dropout_edge(graph(), 0.3, True),
    "dropout_edge_eval": lambda: G.dropout_edge(graph(), training=False),
    "drop_and_weigh": lambda: G.drop_and_weigh(graph(), torch.rand(12, device=D)),
    "drop_and_weigh_eval": lambda: G.drop_and_weigh(graph(), torch.rand(12, device=D), training=False),
    "walk_pe": lambda: G.random_walk_pe(graph(), 6, 3),
    "laplacian_pe": lambda: G.laplacian_pe(graph(), 6, 2),
    "sage": lambda: G.SAGEConv(4, 3).to(D)(X(), graph()),
    "gat": lambda: G.GATConv(4, 3).to(D)(X(), graph()),
    "gat_types": lambda: G.GATConv(4, 3, edge_types=2).to(D)(X(), graph(), TYPES()),
    "rgcn": lambda: G.RelGraphConv(4, 3, 2).to(D)(X(), graph(), TYPES()),
    "topk": lambda: G.TopKPooling(4).to(D)(X(), graph()),
    "memory": _memory,
    "sampler": lambda: G.NeighborSampler(graph(), 6, 1).sample(torch.tensor([1, 2], device=D)),
}
