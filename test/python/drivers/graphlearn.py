import torch
from graphlearn import *

dev = "cuda:0"


def graph(n=6):
    src = torch.arange(n)
    return Data(torch.randn(n, 8), torch.stack([torch.cat([src, (src + 1) % n]), torch.cat([(src + 1) % n, src])]))


def batch():
    return Batch.from_data_list([graph(6), graph(5)]).to(dev)


def on_gpu():
    return graph().to(dev)


def sampler(what):
    g = on_gpu()
    s = NeighborSampler(g.edge_index, g.num_nodes)
    seeds = torch.tensor([0, 3], device=dev)
    return s.gather(g.x, seeds) if what == "gather" else s.induced(g.x, g.edge_index, seeds)


def conv(cached=False):
    c = GCNConv(8, 8, cached).to(dev)
    g = on_gpu()
    c(g.x, g.edge_index)
    return c(g.x, g.edge_index)


def pool():
    b = batch()
    return TopKPooling(8).to(dev)(b.x, b.edge_index, b.batch)


def readout():
    b = batch()
    return AttentionalReadout(8).to(dev)(b.x, b.batch, 2)


def smax():
    b = batch()
    return scatter_max(b.x, b.batch, 2)


def smean():
    b = batch()
    return scatter(b.x, b.batch, reduce="mean")


def sparse(weight):
    g = on_gpu()
    w = torch.rand(g.edge_index.size(1), device=dev) if weight else None
    return to_sparse(g.edge_index, g.num_nodes, w)


def n2v(what):
    m = Node2Vec(6).to(dev)
    return getattr(m, what)(on_gpu().edge_index)


def history(what):
    h = History(6, 8)
    n_id = torch.tensor([0, 3], device=dev)
    x = torch.randn(2, 8, device=dev)
    if what == "pull":
        return h.pull(n_id) + x
    return h.push(x, n_id) if what == "push" else h.push_range(x, 2)


def memory(what):
    m = TemporalMemory(4).to(dev)
    m.update(torch.tensor([0, 2], device=dev), torch.randn(2, 4, device=dev), torch.tensor([1.0, 2.0], device=dev))
    if what == "staleness":
        return m.staleness(torch.tensor(3.0, device=dev))
    return m.last()


def parts(what):
    p = PartitionedGCN(GCNConv(8, 8), ["cuda:0", "cuda:1"])
    blocks = [torch.randn(3, 8, device=d) for d in p.devices]
    if what == "block":
        return p.forward_block(1, blocks, graph().edge_index)
    return p.exchange(blocks, [0, 2])


def scores():
    return torch.rand(5, device=dev), torch.rand(7, device=dev)


CALLS = {
    "scatter_mean": smean,
    "scatter_max": smax,
    "get": lambda: batch().get(1),
    "local_index": lambda: batch().local_index(),
    "gather": lambda: sampler("gather"),
    "induced": lambda: sampler("induced"),
    "negative": lambda: negative_sampling(on_gpu().edge_index, 6, 4),
    "n2v_pos": lambda: n2v("pos_loss"),
    "n2v_neg": lambda: n2v("neg_loss"),
    "conv": conv,
    "conv_cached": lambda: conv(True),
    "sparse": lambda: sparse(False),
    "sparse_weight": lambda: sparse(True),
    "lap": lambda: laplacian_pe(on_gpu()),
    "pool": pool,
    "readout": readout,
    "mincut": lambda: mincut_loss(torch.rand(2, 6, 3, device=dev), torch.rand(2, 6, 6, device=dev)),
    "pull": lambda: history("pull"),
    "push": lambda: history("push"),
    "push_range": lambda: history("push_range"),
    "memory_staleness": lambda: memory("staleness"),
    "memory_last": lambda: memory("last"),
    "block": lambda: parts("block"),
    "exchange": lambda: parts("exchange"),
    "balanced": lambda: class_balanced_loss(torch.randn(6, 3, device=dev), torch.tensor([0, 1, 2, 0, 1, 2], device=dev), 3),
    "auc": lambda: auc(*scores()),
}
