"""Graph containers, message passing layers, pooling and structural encodings."""
import math
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def maybe_num_nodes(edge_index: Tensor, num_nodes: Optional[int] = None) -> int:
    return int(edge_index.max()) + 1 if num_nodes is None else num_nodes


def degree(index: Tensor, num_nodes: int, dtype=torch.float32) -> Tensor:
    out = torch.zeros(num_nodes, dtype=dtype, device=index.device)
    return out.scatter_add_(0, index, torch.ones_like(index, dtype=dtype))


def add_self_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    loops = torch.arange(num_nodes, dtype=edge_index.dtype).to(edge_index.device, non_blocking=True)
    return torch.cat([edge_index, loops.expand(2, -1)], dim=1)


def with_reversed(edge_index: Tensor, edge_attr: Optional[Tensor] = None, tag: bool = False):
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    if edge_attr is None:
        return both
    attr = torch.cat([edge_attr, edge_attr], dim=0)
    if tag:
        marks = torch.tensor([0.0, 1.0]).repeat_interleave(edge_index.size(1)).unsqueeze(-1)
        attr = torch.cat([attr, marks], dim=-1)  # raises
    return both, attr


def scatter(src: Tensor, index: Tensor, size: int, reduce: str = "sum") -> Tensor:
    shape = (size,) + tuple(src.shape[1:])
    expanded = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
    if reduce == "sum":
        return src.new_zeros(shape).scatter_add(0, expanded, src)
    if reduce == "mean":
        counts = degree(index, size, src.dtype).clamp(min=1).view(-1, *[1] * (src.dim() - 1))
        return scatter(src, index, size) / counts
    if reduce == "max":
        out = torch.full(shape, -1e9, dtype=src.dtype)
        return out.scatter_reduce(0, expanded, src, reduce="amax")  # raises
    raise KeyError(reduce)


def softmax(src: Tensor, index: Tensor, size: int) -> Tensor:
    weights = (src - src.max()).exp()
    return weights / (scatter(weights, index, size)[index] + 1e-16)


@dataclass
class Data:
    x: Tensor
    edge_index: Tensor
    y: Optional[Tensor] = None
    pos: Optional[Tensor] = None
    extra: Dict[str, Any] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    def tensors(self) -> Iterator[Tuple[str, Tensor]]:
        for each in fields(self):
            value = getattr(self, each.name)
            if torch.is_tensor(value):
                yield each.name, value

    def to(self, device) -> "Data":
        moved = {name: value.to(device) for name, value in self.tensors()}
        return type(self)(extra=self.extra, **moved)


class Batch:
    """Several graphs as one that is not connected."""

    def __init__(self, graphs: Sequence[Data]):
        sizes = [graph.num_nodes for graph in graphs]
        self.sizes = sizes
        self.ptr = torch.tensor([0] + sizes).cumsum(0)
        self.x = torch.cat([graph.x for graph in graphs])
        self.edge_index = torch.cat([graph.edge_index + offset for graph, offset in zip(graphs, self.ptr)], dim=1)
        self.batch = torch.arange(len(graphs)).repeat_interleave(torch.tensor(sizes))
        self.node_ids = torch.cat([torch.arange(size) for size in sizes])

    @property
    def num_graphs(self) -> int:
        return len(self.sizes)

    def sum_pool(self) -> Tensor:
        return scatter(self.x, self.batch.to(self.x.device), self.num_graphs)

    def first_nodes(self) -> Tensor:
        return self.x[self.ptr[:-1]]

    def to_dense(self) -> Tuple[Tensor, Tensor]:
        longest = max(self.sizes)
        dense = self.x.new_zeros(self.num_graphs * longest, self.x.size(-1))
        slots = self.batch * longest + self.node_ids
        dense[slots] = self.x
        mask = torch.zeros(self.num_graphs * longest, dtype=torch.bool)
        mask[slots] = True
        return dense.view(self.num_graphs, longest, -1), mask.view(self.num_graphs, longest)

    def masked_mean(self) -> Tensor:
        dense, mask = self.to_dense()
        keep = mask.unsqueeze(-1)
        return (dense * keep).sum(1) / keep.sum(1)  # raises

    def padded_rows(self) -> Tensor:
        dense, mask = self.to_dense()
        return dense[~mask]

    def per_graph(self) -> List[Tensor]:
        return [self.x[a:b] for a, b in zip(self.ptr[:-1], self.ptr[1:])]

    def edges_per_graph(self) -> Tensor:
        owners = self.batch[self.edge_index[0]]  # raises
        return torch.bincount(owners, minlength=self.num_graphs)


class MessagePassing(nn.Module):
    """Template: propagate = gather, message, aggregate, update."""
    aggr = "sum"

    def propagate(self, edge_index: Tensor, x: Tensor, **kwargs) -> Tensor:
        source, target = edge_index
        messages = self.message(x[source], x[target], target, **kwargs)
        return self.update(scatter(messages, target, x.size(0), self.aggr), x)

    def message(self, x_j: Tensor, x_i: Tensor, target: Tensor) -> Tensor:
        return x_j

    def update(self, out: Tensor, x: Tensor) -> Tensor:
        return out


class GCNConv(MessagePassing):
    def __init__(self, in_dim: int, out_dim: int, cached: bool = False):
        super().__init__()
        self.lin = nn.Linear(in_dim, out_dim, bias=False)
        self.cached, self._norm = cached, None

    def normalise(self, edge_index: Tensor, num_nodes: int) -> Tuple[Tensor, Tensor]:
        if self._norm is None or not self.cached:
            edge_index = add_self_loops(edge_index, num_nodes)
            inverse = degree(edge_index[1], num_nodes).pow(-0.5)
            self._norm = edge_index, inverse[edge_index[0]] * inverse[edge_index[1]]
        return self._norm

    def message(self, x_j, x_i, target, norm):
        return norm.unsqueeze(-1) * x_j

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, norm = self.normalise(edge_index, x.size(0))
        return self.propagate(edge_index, self.lin(x), norm=norm)


class SAGEConv(MessagePassing):
    def __init__(self, in_dim: int, out_dim: int, aggr: str = "mean"):
        super().__init__()
        self.aggr = aggr
        self.lin = nn.Linear(2 * in_dim, out_dim)

    def update(self, out: Tensor, x: Tensor) -> Tensor:
        return self.lin(torch.cat([out, x], dim=-1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x)


class GATConv(MessagePassing):
    def __init__(self, in_dim: int, heads: int = 2, drop: float = 0.0):
        super().__init__()
        self.heads, self.drop = heads, drop
        self.lin = nn.Linear(in_dim, heads * in_dim)
        self.att = nn.Parameter(torch.randn(1, heads, 2 * in_dim))

    def message(self, x_j, x_i, target, size):
        alpha = F.leaky_relu((torch.cat([x_i, x_j], dim=-1) * self.att).sum(-1), 0.2)
        alpha = softmax(alpha, target, size)
        if self.drop > 0:
            kept = torch.bernoulli(torch.full(alpha.shape, 1 - self.drop))
            alpha = alpha * kept / (1 - self.drop)  # raises
        return x_j * alpha.unsqueeze(-1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.lin(x).view(x.size(0), self.heads, -1)
        return self.propagate(edge_index, h, size=x.size(0)).mean(1)


class RelationalConv(nn.Module):
    """One weight for each relation; the relations of the edges are given as a list of names."""

    def __init__(self, dim: int, names: Sequence[str], bases: int = 2):
        super().__init__()
        self.names = {name: i for i, name in enumerate(names)}
        self.bases = nn.Parameter(torch.randn(bases, dim, dim))
        self.mixing = nn.Parameter(torch.randn(len(names), bases))

    def forward(self, x: Tensor, edge_index: Tensor, relations: Sequence[str]) -> Tensor:
        kinds = torch.tensor([self.names[name] for name in relations])
        weights = torch.einsum("rb,bij->rij", self.mixing, self.bases)
        out = torch.zeros_like(x)
        for kind in range(len(self.names)):
            source, target = edge_index[:, kinds == kind]
            out.index_add_(0, target, x[source] @ weights[kind])
        return out


class RelationEmbedding(nn.Module):
    def __init__(self, dim: int, names: Sequence[str]):
        super().__init__()
        self.lookup = np.asarray(sorted(names))
        self.table = nn.Embedding(len(names), dim)

    def ids(self, relations: Sequence[str]) -> Tensor:
        return torch.from_numpy(np.searchsorted(self.lookup, np.asarray(relations)))

    def forward(self, relations: Sequence[str]) -> Tensor:
        return self.table(self.ids(relations))  # raises

    def rows(self, relations: Sequence[str]) -> Tensor:
        return self.table.weight[self.ids(relations)]


class GaussianSmearing(nn.Module):
    """Distances as bumps."""

    def __init__(self, start: float = 0.0, stop: float = 5.0, bumps: int = 8):
        super().__init__()
        offset = torch.linspace(start, stop, bumps)
        self.coeff = -0.5 / (offset[1] - offset[0]) ** 2
        self.register_buffer("offset", offset)

    def forward(self, distance: Tensor) -> Tensor:
        return torch.exp(self.coeff * (distance.unsqueeze(-1) - self.offset) ** 2)


class BesselBasis(nn.Module):
    def __init__(self, cutoff: float = 5.0, count: int = 6):
        super().__init__()
        self.cutoff = cutoff
        self.roots: Dict[int, Tensor] = {count: math.pi * torch.arange(1, count + 1)}
        self.count = count

    def envelope(self, distance: Tensor) -> Tensor:
        return 0.5 * (torch.cos(torch.tensor(math.pi) * distance / self.cutoff) + 1) * (distance < self.cutoff)

    def forward(self, distance: Tensor) -> Tensor:
        scaled = distance.unsqueeze(-1) / self.cutoff
        waves = torch.sin(scaled * self.roots[self.count])  # raises
        return self.envelope(distance).unsqueeze(-1) * waves / distance.unsqueeze(-1)


class ContinuousFilter(MessagePassing):
    def __init__(self, dim: int, basis: Callable[[], nn.Module] = GaussianSmearing):
        super().__init__()
        self.basis = basis()
        self.net = nn.LazyLinear(dim)

    def message(self, x_j, x_i, target, weight):
        return x_j * weight

    def forward(self, data: Data) -> Tensor:
        source, target = data.edge_index
        distance = (data.pos[source] - data.pos[target]).norm(dim=-1) + 0.01
        return self.propagate(data.edge_index, data.x, weight=self.net(self.basis(distance)))


class TopKPooling(nn.Module):
    def __init__(self, dim: int, ratio: float = 0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim))
        self.ratio = ratio

    def filter(self, edge_index: Tensor, perm: Tensor, num_nodes: int) -> Tensor:
        mask = torch.full((num_nodes,), -1, device=perm.device)
        mask[perm] = torch.arange(perm.size(0)).to(mask)
        mapped = mask[edge_index]
        return mapped[:, (mapped >= 0).all(0)]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tuple[Tensor, Tensor]:
        score = torch.tanh(x @ self.weight / self.weight.norm())
        perm = score.topk(math.ceil(self.ratio * x.size(0))).indices
        return x[perm] * score[perm].unsqueeze(-1), self.filter(edge_index, perm, x.size(0))


class ClusterPooling(nn.Module):
    """Merges both ends of chosen edges."""

    def merge(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        cluster = list(range(num_nodes))
        for a, b in edge_index.t().tolist():
            cluster[max(a, b)] = cluster[min(a, b)]
        return torch.unique(torch.tensor(cluster), return_inverse=True)[1]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        cluster = self.merge(edge_index, x.size(0))
        return scatter(x, cluster.to(x.device), int(cluster.max()) + 1, "mean")

    def coarse_edges(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        cluster = self.merge(edge_index, num_nodes)
        return torch.stack([cluster.take(row) for row in edge_index])  # raises


class PairNorm(nn.Module):
    def __init__(self, scale: float = 1.0, momentum: float = 0.1):
        super().__init__()
        self.scale = scale
        self.momentum = momentum
        self.running = None

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(0, keepdim=True)
        norm = centred.norm(dim=-1).mean()
        if self.running is None:
            self.running = norm.detach()
        self.running = torch.lerp(self.running, norm.detach(), self.momentum)
        return self.scale * centred / (self.running + 1e-6)


def laplacian(edge_index: Tensor, num_nodes: int) -> Tensor:
    adjacency = torch.zeros(num_nodes, num_nodes, device=edge_index.device)
    adjacency[edge_index[0], edge_index[1]] = 1.0
    inverse = adjacency.sum(1).clamp(min=1).rsqrt()
    return torch.eye(num_nodes) - inverse[:, None] * adjacency * inverse  # raises


def random_walk_encoding(edge_index: Tensor, num_nodes: Optional[int] = None, steps: int = 3) -> Tensor:
    n = maybe_num_nodes(edge_index, num_nodes)
    walk = torch.zeros(n, n).to(edge_index.device).index_put((edge_index[0], edge_index[1]), torch.tensor(1.0))
    walk = walk / walk.sum(1, keepdim=True).clamp(min=1)
    power, out = walk, []
    for _ in range(steps):
        out.append(power.diagonal())
        power = power @ walk
    return torch.stack(out, dim=-1)


def negative_edges(edge_index: Tensor, num_nodes: int, count: int) -> Tensor:
    known = edge_index[0] * num_nodes + edge_index[1]
    drawn = torch.randperm(num_nodes * num_nodes)[:4 * count]
    fresh = (drawn.unsqueeze(1) != known.unsqueeze(0)).all(1)  # raises
    return torch.stack([drawn[fresh] // num_nodes, drawn[fresh] % num_nodes])[:, :count]


def structured_negatives(edge_index: Tensor, num_nodes: int) -> Tuple[Tensor, Tensor, Tensor]:
    taken = set(map(tuple, edge_index.t().tolist()))
    ends = [next(k for k in range(num_nodes) if (a, k) not in taken) for a in edge_index[0].tolist()]
    return edge_index[0], edge_index[1], edge_index.new_tensor(ends)


class DropEdge(nn.Module):
    def __init__(self, rate: float = 0.3, seed: Union[int, None] = 0):
        super().__init__()
        self.rate = rate
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, edge_index: Tensor) -> Tensor:
        keep = torch.rand(edge_index.size(1), generator=self.generator) >= self.rate
        return edge_index[:, keep]

    def noisy(self, x: Tensor, edge_index: Tensor) -> Tensor:
        noise = torch.rand(x.shape, generator=self.generator, device=x.device)  # raises
        return x + noise * scatter(x[edge_index[0]], edge_index[1], x.size(0), "mean")
