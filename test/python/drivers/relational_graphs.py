import torch
from relational_graphs import *


def edges():
    return torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]], device="cuda")


def drive_self_loops():
    add_self_loops(edges())


def drive_self_loops_weighted():
    add_self_loops(edges(), torch.rand(5, device="cuda"))


def drive_scatter_sum():
    scatter_sum(torch.rand(5, 3, device="cuda"), edges()[1], 4)


def drive_scatter_mean():
    scatter_mean(torch.rand(5, 3, device="cuda"), edges()[1], 4)


def drive_softmax():
    edge_softmax(torch.rand(5, device="cuda"), edges()[1], 4)


def drive_dropout_edge():
    dropout_edge(edges())


def drive_dropout_node():
    dropout_node(edges())


def drive_negative():
    negative_sampling(edges(), 4, 10)


def drive_pe():
    laplacian_pe(edges(), 4, 2)


def drive_dense():
    to_dense_batch(torch.rand(5, 3, device="cuda"), torch.tensor([0, 0, 1, 1, 1], device="cuda"))


def drive_gcn():
    GCNConv(3, 4).to("cuda")(torch.rand(4, 3, device="cuda"), edges())


def drive_rel():
    RelationalConv(3, ["a", "b"]).to("cuda")(torch.rand(4, 3, device="cuda"), {"a": edges(), "b": edges()})


def drive_readout():
    one = torch.rand(4, 3), edges().cpu(), torch.tensor(1)
    graphs = Graphs.collate([one, one]).to("cuda")
    GraphReadout(3, 2).to("cuda")(graphs)
