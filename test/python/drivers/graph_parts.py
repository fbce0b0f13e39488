import torch

import graph_parts as G

DEV = "cuda:0"


def graph(n=5, **extra):
    low = torch.arange(n, device=DEV)
    edges = torch.stack([torch.cat([low, low.flip(0)]), torch.cat([low.roll(1), low.roll(2)])])
    return G.Graph(torch.rand(n, 4, device=DEV), edges, extra=extra)


def joined():
    return G.GraphBatch.join([graph(5), graph(4)])


def run(layer, *args, **options):
    return layer.to(DEV)(*args, **options)


def kinds(n=10):
    return torch.arange(n, device=DEV) % 3


def running():
    layer = G.RunningNorm(4, 3).to(DEV)
    for _ in range(2):
        layer(torch.rand(10, 4, device=DEV), kinds())
    return layer


def twice(layer):
    layer = layer.to(DEV)
    return layer(graph()), layer(graph())


CALLS = {
    "split": lambda: joined().split(),
    "first": lambda: joined().first(),
    "local_edges": lambda: joined().local_edges(),
    "dense": lambda: joined().dense(),
    "mapped": lambda: graph().map(lambda t: t.clone()),
    "gcn": lambda: run(G.GCNLayer(4, 3), graph()),
    "gcn_cached": lambda: twice(G.GCNLayer(4, 3, cached=True)),
    "gcn_symmetric": lambda: run(G.SymmetricGCNLayer(4, 3), graph()),
    "attention": lambda: run(G.AttentionLayer(4, 3), graph()),
    "attention_decay": lambda: run(G.DecayAttentionLayer(4, 3), graph()),
    "relational": lambda: run(G.RelationalLayer(4, 3, 3), graph(kind=kinds())),
    "relational_frozen": lambda: run(G.FrozenRelationalLayer(4, 3, 3), graph(kind=kinds())),
    "radial": lambda: run(G.RadialBasis(), torch.rand(6, device=DEV)),
    "bessel": lambda: run(G.BesselBasis(), torch.rand(6, device=DEV)),
    "graph_norm": lambda: run(G.GraphNorm(4), joined().x, joined().batch),
    "graph_norm_single": lambda: run(G.GraphNorm(4), graph().x),
    "pair_norm": lambda: run(G.PairNorm(4), graph().x),
    "running_norm": running,
    "running_confidence": lambda: running().confidence(kinds()),
    "topk_pool": lambda: run(G.TopKPool(4), joined()),
    "edge_drop_pool": lambda: run(G.EdgeDropPool(4), joined()),
    "cluster_pool": lambda: run(G.ClusterPool(4, 2), graph()),
    "cluster_penalty": lambda: run(G.ClusterPool(4, 2), graph(), penalty=True),
    "sort_readout": lambda: run(G.SortReadout(5), joined().x, joined().starts.tolist()),
    "chebyshev": lambda: run(G.ChebyshevLayer(4, 3), graph()),
    "positioned": lambda: run(G.PositionedLayer(4, 3), graph()),
}
