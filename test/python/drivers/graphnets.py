import torch
from graphnets import *

DEV = torch.device("cuda:0")


def graph(n=12, e=40, device=DEV):
    return GraphData(torch.randn(n, 8), torch.randint(0, n, (2, e)), torch.randn(e, 4), torch.randint(0, 2, (n,))).to(device)


def sub():
    g = graph(device="cpu")
    return SubgraphData(g.x, g.edge_index, g.edge_attr, g.y, n_id=torch.arange(12)).to(DEV)


def batch(sizes=(5, 7, 3)):
    return collate([graph(n, 3 * n) for n in sizes])


def history(pull):
    h = History(30, 8).to(DEV)
    n_id = torch.randperm(30, device=DEV)[:6]
    h.push(torch.randn(6, 8, device=DEV), n_id)
    if pull:
        return h.pull(n_id, DEV)


def net(mode):
    g = graph()
    model = JumpingGNN(8, 16, 2, mode).to(DEV)
    model(g.x, g.edge_index)
    return model(g.x, g.edge_index).sum().backward()


def first(sampler):
    for n_id, edges in sampler(graph().edge_index, 12, 3, 4):
        pass


def gat(g):
    return EdgeGATConv(8, 16, 4).to(DEV)(g.x, g.edge_index, g.edge_attr)


def hetero():
    return HeteroEmbedding({"user": 5, "item": 7}, 6).to(DEV)


CALLS = {
    "negative": lambda: negative_sampling(graph().edge_index, 12, 10),
    "structured_negative": lambda: structured_negative_sampling(graph().edge_index, 12),
    "lap_pe": lambda: AddLaplacianPE(3)(graph()),
    "neighbor": lambda: first(NeighborSampler),
    "cluster": lambda: first(ClusterSampler),
    "history_push": lambda: history(False),
    "history_pull": lambda: history(True),
    "jump_cat": lambda: net("cat"),
    "jump_gate": lambda: net("gate"),
    "gat_full": lambda: gat(graph()),
    "gat_sub": lambda: gat(sub()),
    "hetero": lambda: hetero()({"user": torch.tensor([1, 2], device=DEV), "item": torch.tensor([0, 6], device=DEV)}),
    "hetero_full": lambda: hetero().full("item"),
    "add_pool": lambda: global_add_pool(batch().x, batch().batch),
    "mean_pool": lambda: global_mean_pool(batch().x, batch().batch),
    "topk": lambda: TopKPooling(8).to(DEV)(graph().x, graph().edge_index),
}
