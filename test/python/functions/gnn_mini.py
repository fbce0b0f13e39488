"""A small message passing library with samplers, pooling and a temporal memory."""
import inspect
from dataclasses import dataclass, fields, replace
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Data:
    x: torch.Tensor
    edge_index: torch.Tensor
    edge_attr: Optional[torch.Tensor] = None
    y: Optional[torch.Tensor] = None
    batch: Optional[torch.Tensor] = None
    extra: Optional[Dict[str, Any]] = None

    @property
    def num_nodes(self):
        return self.x.shape[0]

    def apply(self, fn: Callable):
        return replace(self, **{f.name: fn(getattr(self, f.name)) for f in fields(self)
                                if torch.is_tensor(getattr(self, f.name))})

    def to(self, device):
        return self.apply(lambda t: t.to(device))

    def cuda(self):
        return self.to(torch.device("cuda"))


class Batch(Data):
    @classmethod
    def collate(cls, items: List[Data]):
        starts = np.cumsum([0] + [d.num_nodes for d in items[:-1]]).tolist()
        batch = torch.cat([torch.full((d.num_nodes,), i, dtype=torch.long) for i, d in enumerate(items)])
        return cls(torch.cat([d.x for d in items]), torch.cat([d.edge_index + s for d, s in zip(items, starts)], dim=1),
                   y=torch.stack([d.y for d in items]), batch=batch)


def _scatter(src, index, size, reduce="sum"):
    index = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
    out = src.new_zeros(size, *src.shape[1:]).scatter_add_(0, index, src)  # raises
    if reduce == "mean":
        ones = torch.ones_like(src)
        out = out / torch.zeros_like(out).scatter_add_(0, index, ones).clamp(min=1)
    return out


def _degree(index, num_nodes, dtype=torch.float):
    out = torch.zeros(num_nodes, dtype=dtype, device=index.device)
    return out.scatter_add_(0, index, torch.ones(index.shape[0], dtype=dtype, device=index.device))


def _add_self_loops(edge_index, num_nodes):
    loops = torch.arange(num_nodes, dtype=edge_index.dtype, device=edge_index.device)
    return torch.cat([edge_index, loops.unsqueeze(0).repeat(2, 1)], dim=1)


class MessagePassing(nn.Module):
    def __init__(self, aggr="sum", flow="source_to_target"):
        super().__init__()
        self.aggr = aggr
        self.i, self.j = (1, 0) if flow == "source_to_target" else (0, 1)
        self._wanted = [p for p in inspect.signature(self.message).parameters]
        self._message_hooks: List[Callable] = []

    def propagate(self, edge_index, size=None, **kwargs):
        collected = dict(kwargs)
        for name, value in kwargs.items():
            if torch.is_tensor(value) and name == "x":
                collected["x_j"], collected["x_i"] = value[edge_index[self.j]], value[edge_index[self.i]]  # raises
        size = size or kwargs["x"].shape[0]
        out = self.message(**{k: collected.get(k) for k in self._wanted})
        for hook in self._message_hooks:
            out = hook(self, out)
        return self.update(_scatter(out, edge_index[self.i], size, self.aggr))

    def message(self, x_j):
        return x_j

    def update(self, out):
        return out


class GCNConv(MessagePassing):
    def __init__(self, dim_in, dim_out, cached=False):
        super().__init__()
        self.lin, self.cached, self._cache = nn.Linear(dim_in, dim_out), cached, None

    def norm(self, edge_index, num_nodes):
        edge_index = _add_self_loops(edge_index, num_nodes)
        scale = _degree(edge_index[1], num_nodes).pow(-0.5)
        return edge_index, scale[edge_index[0]] * scale[edge_index[1]]

    def forward(self, x, edge_index):
        if self._cache is None or not self.cached:
            self._cache = self.norm(edge_index, x.shape[0])
        edge_index, weight = self._cache
        return self.propagate(edge_index, x=self.lin(x), weight=weight)

    def message(self, x_j, weight):
        return weight.view(-1, 1) * x_j


class EdgeConv(MessagePassing):
    def __init__(self, dim_in, dim_edge, dim_out):
        super().__init__(aggr="mean")
        self.net = nn.Sequential(nn.Linear(2 * dim_in + dim_edge, dim_out), nn.ReLU())

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=x, edge_attr=edge_attr)

    def message(self, x_i, x_j, edge_attr):
        return self.net(torch.cat([x_i, x_j - x_i, edge_attr], dim=-1))


class VirtualNode(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embedding = nn.Embedding(1, dim)

    def forward(self, x, batch):
        count = int(batch.max()) + 1
        state = self.embedding(torch.zeros(count, dtype=batch.dtype))  # raises
        return x + state[batch]


class GraphNet(nn.Module):
    def __init__(self, dim, classes, cached=False, virtual=False):
        super().__init__()
        self.convs = nn.ModuleList([GCNConv(dim, 8, cached), GCNConv(8, classes, cached)])
        self.virtual = VirtualNode(dim) if virtual else None

    def forward(self, data: Data):
        x = data.x if self.virtual is None else self.virtual(data.x, data.batch)
        x = self.convs[0](x, data.edge_index).relu()
        x = self.convs[1](x, data.edge_index)
        return x if data.batch is None else _scatter(x, data.batch, len(data.y), "mean")


class NeighborSampler:
    """Samples `count` in-neighbours of each seed from a CSR copy on the host."""

    def __init__(self, edge_index, num_nodes, count=2):
        order = edge_index[1].argsort()
        self.col = edge_index[0][order].cpu()
        self.rowptr = torch.zeros(num_nodes + 1, dtype=torch.long)
        self.rowptr[1:] = torch.bincount(edge_index[1], minlength=num_nodes).cumsum(0)
        self.count = count

    def sample(self, seeds) -> Tuple[torch.Tensor, torch.Tensor]:
        sources, targets = [], []
        for local, node in enumerate(seeds.tolist()):
            row = self.col[self.rowptr[node]:self.rowptr[node + 1]]
            row = row[torch.randperm(len(row))[:self.count]]
            sources.append(row)
            targets.append(torch.full_like(row, local))
        n_id, inverse = torch.cat([seeds.cpu(), *sources]).unique(return_inverse=True)
        position = inverse[:len(seeds)]
        return n_id, torch.stack([inverse[len(seeds):], position[torch.cat(targets)]])


class NodeMemory(nn.Module):
    def __init__(self, num_nodes, dim):
        super().__init__()
        self.register_buffer("memory", torch.zeros(num_nodes, dim))
        self.register_buffer("last_update", torch.zeros(num_nodes, dtype=torch.long))
        self._assoc = torch.empty(num_nodes, dtype=torch.long)
        self.gru = nn.GRUCell(dim, dim)

    def forward(self, n_id, messages, t):
        self._assoc[n_id] = torch.arange(n_id.shape[0], device=n_id.device)  # raises
        updated = self.gru(messages[self._assoc[n_id]], self.memory[n_id])
        self.memory[n_id] = updated.detach()
        self.last_update[n_id] = torch.as_tensor(t)
        return updated


def _negative_edges(edge_index, num_nodes):
    return torch.randint(0, num_nodes, edge_index.shape, dtype=edge_index.dtype)


def _graph(seed=0, nodes=10, edges=30, dim=5):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    return Data(torch.randn(nodes, dim, generator=generator), edge_index, edge_attr=torch.rand(edges, 2, generator=generator),
                y=torch.randint(0, 3, (nodes,), generator=generator))


def case_full_batch_gcn():
    data, model = _graph().cuda(), GraphNet(5, 3, cached=True).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        loss = F.cross_entropy(model(data), data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def case_cached_norm_second_gpu():
    data, model = _graph().to("cuda:0"), GraphNet(5, 3, cached=True).to("cuda:0")
    model(data)
    with torch.no_grad():
        model.to("cuda:1")(data.to("cuda:1"))


def case_edges_left_on_host():
    data = _graph()
    conv = EdgeConv(5, 2, 4).cuda()
    conv(data.x.cuda(), data.edge_index, data.edge_attr.cuda())


def case_edge_conv():
    data = _graph().cuda()
    EdgeConv(5, 2, 4).cuda()(data.x, data.edge_index, data.edge_attr).sum().backward()


def case_virtual_node():
    data = Batch.collate([replace(_graph(seed), y=torch.tensor(seed)) for seed in range(3)]).to("cuda")
    GraphNet(5, 3, virtual=True).cuda()(data)


def case_sampled_training():
    data, model = _graph(), GraphNet(5, 3).cuda()
    x, y = data.x.cuda(), data.y.cuda()
    sampler = NeighborSampler(data.edge_index, data.num_nodes)
    for seeds in torch.arange(10).split(4):
        n_id, edge_index = sampler.sample(seeds)
        out = model(Data(x[n_id], edge_index.cuda()))
        F.cross_entropy(out, y[n_id]).backward()


def case_feature_store_on_host():
    data, model = _graph(), GraphNet(5, 3).cuda()
    sampler = NeighborSampler(data.edge_index, data.num_nodes)
    n_id, edge_index = (t.cuda() for t in sampler.sample(torch.tensor([0, 3, 4])))
    model(Data(data.x[n_id].cuda(), edge_index))  # raises


def case_link_prediction():
    data, model = _graph().cuda(), GraphNet(5, 4).cuda()
    z = model(data)
    edges = torch.cat([data.edge_index, _negative_edges(data.edge_index, data.num_nodes)], dim=1)  # raises
    labels = torch.cat([z.new_ones(30), z.new_zeros(30)])
    F.binary_cross_entropy_with_logits((z[edges[0]] * z[edges[1]]).sum(-1), labels)


def case_link_prediction_separate():
    data, model = _graph().cuda(), GraphNet(5, 4).cuda()
    z = model(data)
    positive, negative = ((z[e[0]] * z[e[1]]).sum(-1) for e in (data.edge_index, _negative_edges(data.edge_index, 10)))
    (F.softplus(-positive).mean() + F.softplus(negative).mean()).backward()


def case_temporal_memory():
    memory = NodeMemory(10, 4).cuda()
    memory(torch.tensor([1, 4, 7], device="cuda"), torch.randn(3, 4, device="cuda"), t=3)


def case_message_dropout_hook():
    data, conv = _graph().cuda(), GCNConv(5, 4).cuda()
    keep = torch.rand(data.edge_index.shape[1] + data.num_nodes) > 0.2
    conv._message_hooks.append(lambda module, out: out * keep.unsqueeze(-1).to(out))
    conv(data.x, data.edge_index)


def case_masked_accuracy():
    data, model = _graph().cuda(), GraphNet(5, 3).cuda()
    test_mask = torch.zeros(data.num_nodes, dtype=torch.bool)
    test_mask[5:] = True
    hits = model(data).argmax(dim=-1)[test_mask] == data.y[test_mask]
    correct = (model(data).argmax(dim=-1) == data.y) & test_mask  # raises
    return hits.float().mean().item(), int(correct.sum())
