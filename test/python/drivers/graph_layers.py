import torch

import graph_layers as G

DEVICE = "cuda:0"
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]], device=DEVICE)
NAMES = ["binds", "near", "near", "part", "binds", "part"]


def x(n=5, dim=6):
    return torch.randn(n, dim, device=DEVICE)


def data(n=5):
    return G.Data(torch.randn(n, 6), EDGES.cpu(), pos=torch.randn(n, 3)).to(DEVICE)


def batch():
    return G.Batch([data(5), data(7)])


def applied(module, *args):
    return module.to(DEVICE)(*args)


CALLS = {
    "reversed": lambda: G.with_reversed(EDGES, torch.rand(6, 2, device=DEVICE)),
    "reversed_tag": lambda: G.with_reversed(EDGES, torch.rand(6, 2, device=DEVICE), tag=True),
    "sum_pool": lambda: batch().sum_pool(),
    "first_nodes": lambda: batch().first_nodes(),
    "masked_mean": lambda: batch().masked_mean(),
    "padded_rows": lambda: batch().padded_rows(),
    "per_graph": lambda: batch().per_graph(),
    "edges_per_graph": lambda: batch().edges_per_graph(),
    "gcn": lambda: applied(G.GCNConv(6, 4, cached=True), x(), EDGES),
    "sage": lambda: applied(G.SAGEConv(6, 4), x(), EDGES),
    "sage_max": lambda: applied(G.SAGEConv(6, 4, "max"), x(), EDGES),
    "gat": lambda: applied(G.GATConv(6), x(), EDGES),
    "gat_drop": lambda: applied(G.GATConv(6, drop=0.5), x(), EDGES),
    "relational": lambda: applied(G.RelationalConv(6, sorted(set(NAMES))), x(), EDGES, NAMES),
    "relation_embedding": lambda: applied(G.RelationEmbedding(4, set(NAMES)), NAMES),
    "relation_rows": lambda: G.RelationEmbedding(4, set(NAMES)).to(DEVICE).rows(NAMES),
    "filter": lambda: applied(G.ContinuousFilter(6), data()),
    "filter_bessel": lambda: applied(G.ContinuousFilter(6, G.BesselBasis), data()),
    "topk": lambda: applied(G.TopKPooling(6), x(), EDGES),
    "cluster": lambda: applied(G.ClusterPooling(), x(), EDGES),
    "cluster_edges": lambda: G.ClusterPooling().to(DEVICE).coarse_edges(EDGES, 5),
    "pair_norm": lambda: applied(G.PairNorm(), x()),
    "laplacian": lambda: G.laplacian(EDGES, 5),
    "walks": lambda: G.random_walk_encoding(EDGES),
    "negatives": lambda: G.negative_edges(EDGES, 5, 3),
    "structured": lambda: G.structured_negatives(EDGES, 5),
    "drop_edge": lambda: applied(G.DropEdge(), EDGES),
    "drop_noisy": lambda: G.DropEdge().to(DEVICE).noisy(x(), EDGES),
}
