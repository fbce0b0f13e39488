import torch

import molgraph as G

D = torch.device("cuda:0")
P = lambda *s: torch.randn(*s, device=D)
I = lambda *v: torch.tensor(v, device=D)
E = lambda: torch.tensor([[0, 1, 2, 3, 1], [1, 0, 3, 2, 2]], device=D)
B = lambda: I(0, 0, 1, 1)


def _graphs():
    return [G.Graph(P(2, 4), I([0, 1], [1, 0])), G.Graph(torch.randn(3, 4), torch.tensor([[0, 2], [1, 1]])).to(D)]


def _collated(move):
    g = G.collate(_graphs())
    if move:
        g.to(D, "batch")
    readout = G.AttentionReadout(4).to(D)
    return readout(g.x, g.batch)


def _gcn_cached():
    conv = G.GCNConv(4, 3, cached=True).to(D)
    return conv(P(4, 4), E()) + conv(P(4, 4), E())


def _clone_moved():
    g = G.Graph(torch.randn(2, 4), torch.tensor([[0, 1], [1, 0]]))
    h = g.clone().to(D)
    assert not g.x.is_cuda
    return G.GCNConv(4, 2).to(D)(h.x, h.edge_index)


CALLS = {
    "scatter_mean": lambda: G.scatter(P(4, 3), B(), 2, "mean"),
    "softmax": lambda: G.segment_softmax(P(4), B(), 2),
    "degree": lambda: G.degree(E()[0], 4),
    "self_loops": lambda: G.add_self_loops(E(), 4, P(5, 2)),
    "duplicates": lambda: G.remove_duplicates(E()),
    "k_hop": lambda: G.k_hop_subgraph([0], 1, E(), 4),
    "radius": lambda: G.radius_graph(P(4, 3), 2.0),
    "radius_batch": lambda: G.radius_graph(P(4, 3), 2.0, B()),
    "knn": lambda: G.knn_graph(P(4, 3), 2),
    "rbf": lambda: G.RadialBasis().to(D)(P(5).abs()),
    "rbf_trainable": lambda: G.RadialBasis(trainable=True).to(D)(P(5).abs()),
    "dihedral": lambda: G.DihedralFeatures().to(D)(P(4, 3, 3)),
    "offsets": lambda: G.SequenceOffsets().to(D)(E()),
    "center": lambda: G.center_of_mass(P(4, 3), I(0, 1, 2, 3), B()),
    "bonds": lambda: G.bond_matrix(P(3, 3), ["H", "C", "O"]),
    "formula": lambda: G.formula(I(0, 0, 3)),
    "fractions": lambda: G.mass_fractions(I(0, 0, 3)),
    "gcn": lambda: G.GCNConv(4, 3).to(D)(P(4, 4), E()),
    "gcn_cached": _gcn_cached,
    "gat": lambda: G.GATConv(4, 3, edge_dim=2).to(D)(P(4, 4), E(), P(5, 2)),
    "relational": lambda: G.RelationalConv(4, ["single"]).to(D)(P(4, 4), {"single": E()}),
    "relational_new": lambda: G.RelationalConv(4, ["single"]).to(D)(P(4, 4), {"single": E(), "aromatic": E()}),
    "egnn": lambda: G.EGNNLayer(4).to(D)(P(4, 4), P(4, 3), E()),
    "egnn_basis": lambda: G.EGNNLayer(4, G.RadialBasis(trainable=True)).to(D)(P(4, 4), P(4, 3), E()),
    "egnn_hops": lambda: G.EGNNLayer(4, hops=2).to(D)(P(4, 4), P(4, 3), E()),
    "dense": lambda: G.to_dense_batch(P(4, 2), B()),
    "readout": lambda: G.AttentionReadout(4).to(D)(P(4, 4), B()),
    "readout_dense": lambda: G.AttentionReadout(4, dense=True).to(D)(P(4, 4), B()),
    "readout_dense_single": lambda: G.AttentionReadout(4, dense=True).to(D)(P(4, 4)),
    "collate": lambda: _collated(False),
    "collate_moved": lambda: _collated(True),
    "clone": _clone_moved,
    "split": lambda: G.split_nodes(P(4, 2), B()),
}
