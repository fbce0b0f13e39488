import torch

import graphkit as G

D = torch.device("cuda:0")
R = lambda *s: torch.rand(*s, device=D)
E = lambda: torch.tensor([[0, 1, 2, 0], [1, 2, 0, 0]], device=D)
B = lambda: torch.tensor([0, 0, 0], device=D)
graph = lambda: G.Data(x=R(3, 2), edge_index=E(), y=torch.tensor([0, 1, 1], device=D))
loader = lambda: list(G.PygLoader([graph(), graph(), graph()], 2, True))


def _memory(reset):
    m = G.TGNMemory(3, 2).to(D)
    if reset:
        m.reset_state()
    return m.update_state(torch.tensor([0, 2], device=D), R(2, 2), torch.tensor([3, 4], device=D))


def _cached():
    conv = G.GCNConv(2, 3, cached=True).to(D)
    conv(R(3, 2), E())
    return conv(R(3, 2), E(), R(4))


CALLS = {
    "scatter": lambda: G.scatter(R(4, 2), E()[0]),
    "scatter_mean": lambda: G.scatter(R(4, 2), E()[0], reduce="mean"),
    "scatter_max": lambda: G.scatter(R(4, 2), E()[0], reduce="max"),
    "degree": lambda: G.degree(E()[0]),
    "loops": lambda: G.add_self_loops(E()),
    "loops_attr": lambda: G.add_self_loops(E(), R(4)),
    "loops_fill": lambda: G.add_self_loops(E(), R(4), 2.0),
    "loops_tensor": lambda: G.add_self_loops(E(), R(4), torch.tensor(1.0)),
    "remaining": lambda: G.remaining_self_loops(E()),
    "dense_adj": lambda: G.to_dense_adj(E()),
    "dense_adj_batch": lambda: G.to_dense_adj(E(), B(), R(4)),
    "dense_batch": lambda: G.to_dense_batch(R(3, 2)),
    "dense_batch_given": lambda: G.to_dense_batch(R(3, 2), B()),
    "mask": lambda: G.index_to_mask(E()[0]),
    "subgraph": lambda: G.subgraph([0, 1], E()),
    "subgraph_relabel": lambda: G.subgraph(torch.tensor([0, 1], device=D), E(), True),
    "k_hop": lambda: G.k_hop_subgraph(0, 2, E()),
    "negative": lambda: G.negative_sampling(E()),
    "structured": lambda: G.structured_negative_sampling(E()),
    "walk": lambda: G.random_walk(E(), E()[0], 2),
    "walk_second": lambda: G.random_walk(E().to("cuda:1"), E()[0].to("cuda:1"), 2),
    "edge_mask": lambda: G.edge_dropout_mask(E().to("cuda:2")),
    "dropout": lambda: G.dropout_edge(E()),
    "dropout_off": lambda: G.dropout_edge(E(), training=False),
    "laplacian": lambda: G.AddLaplacianPE(1)(graph()).x,
    "data_to": lambda: G.Data(x=torch.rand(3)).to(D).x + R(3),
    "split": lambda: G.RandomNodeSplit()(graph()),
    "collate": lambda: loader(),
    "unbatch": lambda: [G.unbatch(b.x, b) for b in loader()],
    "last_nodes": lambda: [G.last_nodes(b) for b in loader()],
    "offsets": lambda: [G.graph_offsets(b) for b in loader()],
    "gcn": lambda: G.GCNConv(2, 3).to(D)(R(3, 2), E()),
    "gcn_cached": _cached,
    "rgcn": lambda: G.RGCNConv(2, 3, ["a", "b"]).to(D)(R(3, 2), {"a": E(), "b": E()}),
    "time": lambda: G.TimeEncoder(4).to(D)(R(3)),
    "memory": lambda: _memory(False),
    "memory_reset": lambda: _memory(True),
    "pool": lambda: G.TopKPooling(2).to(D)(R(3, 2), E()),
}
