import inspect
import math
from collections import defaultdict
from typing import List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, Parameter


def maybe_num_nodes(edge_index, num_nodes=None):
    if num_nodes is not None:
        return num_nodes
    return int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0


def scatter(src, index, dim=0, dim_size=None, reduce="sum"):
    dim_size = maybe_num_nodes(index, dim_size)
    shape = list(src.shape)
    shape[dim] = dim_size
    if reduce in ("sum", "add"):
        return src.new_zeros(shape).index_add_(dim, index, src)
    if reduce == "mean":
        count = torch.zeros(dim_size, device=src.device).index_add_(0, index, torch.ones(index.numel(), device=src.device))
        return src.new_zeros(shape).index_add_(dim, index, src) / count.clamp(min=1).view(-1, *[1] * (src.dim() - 1))
    out = torch.full(shape, -math.inf, dtype=src.dtype)
    idx = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
    return out.scatter_reduce(dim, idx, src, "amax")  # raises


def softmax(src, index, num_nodes=None):
    n = maybe_num_nodes(index, num_nodes)
    top = src.new_full((n, *src.shape[1:]), -math.inf)
    top = top.scatter_reduce(0, index.view(-1, *[1] * (src.dim() - 1)).expand_as(src), src.detach(), "amax")
    out = (src - top[index]).exp()
    return out / (scatter(out, index, 0, n)[index] + 1e-16)


def degree(index, num_nodes=None, dtype=None):
    n = maybe_num_nodes(index, num_nodes)
    out = torch.zeros((n,), dtype=dtype, device=index.device)
    return out.scatter_add_(0, index, torch.ones((index.size(0),), dtype=out.dtype, device=out.device))


def add_self_loops(edge_index, edge_weight=None, fill_value=1.0, num_nodes=None):
    n = maybe_num_nodes(edge_index, num_nodes)
    loop_index = torch.arange(0, n, dtype=torch.long, device=edge_index.device).unsqueeze(0).repeat(2, 1)
    if edge_weight is not None:
        loop_weight = edge_weight.new_full((n,), fill_value)
        edge_weight = torch.cat([edge_weight, loop_weight])
    return torch.cat([edge_index, loop_index], dim=1), edge_weight


def remove_isolated(edge_index, num_nodes=None):
    n = maybe_num_nodes(edge_index, num_nodes)
    mask = torch.zeros(n, dtype=torch.bool)
    mask[edge_index.view(-1).cpu()] = 1
    assoc = torch.full((n,), -1, dtype=torch.long)
    assoc[mask] = torch.arange(int(mask.sum()))
    return assoc[edge_index], mask  # raises


def subgraph(subset, edge_index, num_nodes=None):
    n = maybe_num_nodes(edge_index, num_nodes)
    node_mask = torch.zeros(n, dtype=torch.bool, device=subset.device)
    node_mask[subset] = True
    keep = node_mask[edge_index[0]] & node_mask[edge_index[1]]
    return edge_index[:, keep]


def to_dense_batch(x, batch=None, fill_value=0.0, max_num_nodes=None):
    if batch is None:
        mask = torch.ones(1, x.size(0), dtype=torch.bool, device=x.device)
        return x.unsqueeze(0), mask
    num = scatter(batch.new_ones(x.size(0)), batch)
    cum = torch.cat([batch.new_zeros(1), num.cumsum(0)])
    most = int(num.max()) if max_num_nodes is None else max_num_nodes
    idx = torch.arange(batch.size(0), dtype=torch.long, device=x.device) - cum[batch] + batch * most
    out = x.new_full([len(num) * most] + list(x.size())[1:], fill_value)
    out[idx] = x
    mask = torch.zeros(len(num) * most, dtype=torch.bool)
    mask[idx] = True
    return out.view(len(num), most, -1), mask.view(len(num), most)


def dropout_edge(edge_index: Tensor, p: float = 0.5, force_undirected: bool = False, training: bool = True):
    if not training or p == 0.0:
        return edge_index, torch.ones(edge_index.size(1), dtype=torch.bool)
    row, col = edge_index
    edge_mask = torch.rand(row.size(0), device=edge_index.device) >= p
    if force_undirected:
        edge_mask[row > col] = False
    edge_index = edge_index[:, edge_mask]
    if force_undirected:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        edge_mask = edge_mask.nonzero().repeat((2, 1)).squeeze()
    return edge_index, edge_mask


def drop_and_weigh(edge_index: Tensor, edge_weight: Tensor, p: float = 0.5, training: bool = True):
    keep = torch.bernoulli(torch.full((edge_weight.size(0),), 1 - p)) if training else torch.ones_like(edge_weight)
    return edge_weight * keep / (1 - p)  # raises


def random_walk_pe(edge_index, num_nodes, walk_length):
    adj = torch.zeros(num_nodes, num_nodes, device=edge_index.device)
    adj[edge_index[0], edge_index[1]] = 1.0
    p = adj / adj.sum(1, keepdim=True).clamp(min=1)
    out, cur = [], p
    for _ in range(walk_length):
        out.append(cur.diagonal())
        cur = cur @ p
    return torch.stack(out, -1)


def laplacian_pe(edge_index, num_nodes, k):
    deg = degree(edge_index[0], num_nodes)
    lap = torch.diag(deg)
    lap[edge_index[0], edge_index[1]] -= 1
    _, vec = torch.linalg.eigh(lap)
    sign = -1 + 2 * torch.randint(0, 2, (k,))
    return vec[:, 1:k + 1] * sign  # raises


class MessagePassing(Module):
    def __init__(self, aggr="add"):
        super().__init__()
        self.aggr = aggr
        self._wanted = [p for p in inspect.signature(self.message).parameters]

    def propagate(self, edge_index, size=None, **kwargs):
        data = dict(index=edge_index[1], edge_index=edge_index)
        for name, value in list(kwargs.items()):
            data[name] = value
            if isinstance(value, Tensor):
                data[name + "_j"], data[name + "_i"] = value[edge_index[0]], value[edge_index[1]]
        out = self.message(**{k: data.get(k) for k in self._wanted})
        return scatter(out, edge_index[1], 0, size, reduce=self.aggr)

    def message(self, x_j):
        return x_j


class SAGEConv(MessagePassing):
    def __init__(self, i, o, aggr="mean"):
        super().__init__(aggr)
        self.lin_l, self.lin_r = Linear(i, o), Linear(i, o, bias=False)

    def forward(self, x, edge_index):
        return self.lin_l(self.propagate(edge_index, size=x.size(0), x=x)) + self.lin_r(x)


class GATConv(MessagePassing):
    def __init__(self, i, o, heads=2, edge_types: int = 0):
        super().__init__("add")
        self.heads, self.out = heads, o
        self.lin = Linear(i, heads * o, bias=False)
        self.att_src, self.att_dst = Parameter(torch.randn(1, heads, o)), Parameter(torch.randn(1, heads, o))
        self.type_bias = torch.zeros(edge_types, heads) if edge_types else None

    def forward(self, x, edge_index, edge_type: Optional[Tensor] = None):
        h = self.lin(x).view(-1, self.heads, self.out)
        alpha = (h * self.att_src).sum(-1)[edge_index[0]] + (h * self.att_dst).sum(-1)[edge_index[1]]
        if self.type_bias is not None and edge_type is not None:
            alpha = alpha + F.embedding(edge_type, self.type_bias)  # raises
        alpha = softmax(F.leaky_relu(alpha, 0.2), edge_index[1], x.size(0))
        out = h[edge_index[0]] * alpha.unsqueeze(-1)
        return scatter(out, edge_index[1], 0, x.size(0)).flatten(1)


class RelGraphConv(MessagePassing):
    def __init__(self, i, o, relations, bases=2):
        super().__init__()
        self.basis = Parameter(torch.randn(bases, i, o))
        self.comp = Parameter(torch.randn(relations, bases))
        self.root = Parameter(torch.randn(i, o))
        self.relations = relations

    def forward(self, x, edge_index, edge_type):
        weight = (self.comp @ self.basis.flatten(1)).view(self.relations, *self.basis.shape[1:])
        out = torch.zeros(x.size(0), self.root.size(1), device=x.device)
        for r in range(self.relations):
            tmp = edge_index[:, edge_type == r]
            if tmp.numel():
                out = out + self.propagate(tmp, size=x.size(0), x=x @ weight[r])
        return out + x @ self.root


class TopKPooling(Module):
    def __init__(self, dim, ratio=0.5):
        super().__init__()
        self.weight = Parameter(torch.randn(dim))
        self.ratio = ratio

    def forward(self, x, edge_index):
        score = torch.tanh((x * self.weight).sum(-1) / self.weight.norm())
        k = max(1, math.ceil(self.ratio * x.size(0)))
        perm = score.topk(k).indices
        mapping = torch.full((x.size(0),), -1)
        mapping[perm] = torch.arange(k)
        mapping = mapping.to(edge_index.device)
        row, col = mapping[edge_index[0]], mapping[edge_index[1]]
        mask = (row >= 0) & (col >= 0)
        return x[perm] * score[perm].view(-1, 1), torch.stack([row[mask], col[mask]])


class TimeEncoder(Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = Linear(1, dim)

    def forward(self, t):
        return self.lin(t.view(-1, 1)).cos()


class Memory(Module):
    def __init__(self, num_nodes, dim):
        super().__init__()
        self.num_nodes = num_nodes
        self.time = TimeEncoder(dim)
        self.cell = torch.nn.GRUCell(2 * dim, dim)
        self.register_buffer("memory", torch.zeros(num_nodes, dim))
        self.register_buffer("last", torch.zeros(num_nodes))
        self.register_buffer("_assoc", torch.empty(num_nodes, dtype=torch.long), persistent=False)
        self.pending = defaultdict(list)

    def store(self, nodes, t):
        for n, when in zip(nodes.tolist(), t.tolist()):
            self.pending[n].append(when)

    def update(self, nodes):
        unique = nodes.unique()
        self._assoc[unique] = torch.arange(unique.numel(), device=unique.device)
        dt = torch.tensor([max(self.pending[int(n)], default=0.0) for n in unique])
        rel = dt - self.last[unique]  # raises
        msg = torch.cat([self.memory[unique], self.time(rel)], -1)
        self.memory[unique] = self.cell(msg, self.memory[unique]).detach()
        return self.memory[nodes]


class NeighborSampler:
    def __init__(self, edge_index, num_nodes, size):
        row, col = edge_index.cpu().numpy()
        self.adj = [[] for _ in range(num_nodes)]
        for a, b in zip(row, col):
            self.adj[b].append(int(a))
        self.size = size

    def sample(self, seeds: Tensor) -> Tensor:
        src, dst = [], []
        for s in seeds.tolist():
            for n in self.adj[s][: self.size]:
                src.append(n)
                dst.append(s)
        return torch.tensor([src, dst], device=seeds.device)
