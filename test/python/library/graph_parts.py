"""Graph neural network parts: scatter, batches, message passing, normalisation, pooling and spectral filters."""
import inspect
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def size_of(index: Tensor, given: Optional[int] = None) -> int:
    return given if given is not None else int(index.max()) + 1 if index.numel() else 0


def scatter(src: Tensor, index: Tensor, size: Optional[int] = None, reduce: str = "sum") -> Tensor:
    shape = (size_of(index, size),) + src.shape[1:]
    spread = index.view((-1,) + (1,) * (src.dim() - 1)).expand_as(src)
    if reduce == "max":
        return src.new_full(shape, -math.inf).scatter_reduce(0, spread, src, reduce="amax")
    total = torch.zeros(shape, dtype=src.dtype, device=src.device).scatter_add_(0, spread, src)
    if reduce == "mean":
        count = torch.bincount(index, minlength=shape[0]).clamp(min=1)
        total = total / count.view((-1,) + (1,) * (src.dim() - 1))
    return total


def segment_softmax(score: Tensor, index: Tensor, size: int) -> Tensor:
    shifted = score - scatter(score.detach(), index, size, "max")[index]
    weight = shifted.exp()
    return weight / scatter(weight, index, size)[index].clamp(min=1e-12)


def degree(index: Tensor, size: int, dtype=None) -> Tensor:
    return torch.zeros(size, dtype=dtype, device=index.device).scatter_add_(0, index, index.new_ones(len(index), dtype=dtype))


def add_self_loops(edges: Tensor, size: int, weight: Optional[Tensor] = None, fill: float = 1.0):
    loops = torch.arange(size).type_as(edges).expand(2, -1)
    if weight is not None:
        weight = torch.cat([weight, weight.new_full((size,), fill)])
    return torch.cat([edges, loops], dim=1), weight


def remove_self_loops(edges: Tensor) -> Tensor:
    return edges[:, edges[0] != edges[1]]


@dataclass
class Graph:
    x: Tensor
    edges: Tensor
    weight: Optional[Tensor] = None
    extra: Dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.x)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Graph":
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return type(self)(**{name: change(value) if isinstance(value, Tensor) else value for name, value in values.items()})


@dataclass
class GraphBatch(Graph):
    batch: Optional[Tensor] = None
    starts: Optional[Tensor] = None

    @classmethod
    def join(cls, graphs: List[Graph]) -> "GraphBatch":
        sizes = torch.tensor([graph.size for graph in graphs])
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        edges = torch.cat([graph.edges + start for graph, start in zip(graphs, starts)], dim=1)
        x = torch.cat([graph.x for graph in graphs])
        batch = torch.arange(len(graphs)).repeat_interleave(sizes)
        return cls(x, edges, batch=batch.to(x.device), starts=starts)

    def split(self) -> List[Tensor]:
        return list(torch.tensor_split(self.x, self.starts[1:-1]))

    def first(self) -> Tensor:
        return self.x[self.starts[:-1]]

    def local_edges(self) -> Tensor:
        owner = self.batch[self.edges[0]]
        return self.edges - self.starts.index_select(0, owner)  # raises

    def dense(self) -> Tuple[Tensor, Tensor]:
        sizes = self.starts[1:] - self.starts[:-1]
        longest = int(sizes.max())
        mask = torch.arange(longest)[None] < sizes[:, None]
        dense = self.x.new_zeros(len(sizes), longest, self.x.shape[1])
        dense[mask] = self.x
        return dense, mask


class Messages(nn.Module):
    """The template: messages along edges, gathered at their targets, then an update."""

    reduce = "sum"

    def __init__(self):
        super().__init__()
        self.wanted = [name for name in inspect.signature(self.message).parameters if name not in ("source", "target")]

    def message(self, source):
        return source

    def update(self, gathered, x):
        return gathered

    def propagate(self, x, edges, **given):
        arguments = {name: given[name] for name in self.wanted}
        if "target" in inspect.signature(self.message).parameters:
            arguments["target"] = x[edges[1]]
        gathered = scatter(self.message(source=x[edges[0]], **arguments), edges[1], len(x), self.reduce)
        return self.update(gathered, x)


class GCNLayer(Messages):
    def __init__(self, into: int, out: int, cached: bool = False):
        super().__init__()
        self.linear = nn.Linear(into, out)
        self.cached, self._kept = cached, None

    def message(self, source, norm):
        return source * norm[:, None]

    def norm(self, edges, size, weight):
        weight = weight if weight is not None else torch.ones(edges.shape[1], device=edges.device)
        edges, weight = add_self_loops(edges, size, weight)
        scale = degree(edges[1], size, weight.dtype).pow(-0.5)
        return edges, scale[edges[0]] * weight * scale[edges[1]]

    def forward(self, graph: Graph) -> Tensor:
        if self._kept is None or not self.cached:
            self._kept = self.norm(graph.edges, graph.size, graph.weight)
        edges, norm = self._kept
        return self.propagate(self.linear(graph.x), edges, norm=norm)


class SymmetricGCNLayer(GCNLayer):
    def norm(self, edges, size, weight):
        both = torch.cat([edges, edges.flip(0)], dim=1)
        weight = torch.ones(both.shape[1]) if weight is None else weight.repeat(2)
        return both, weight / degree(both[1], size, weight.dtype).clamp(min=1)[both[1]]  # raises


class AttentionLayer(Messages):
    def __init__(self, into: int, out: int, heads: int = 2, slope: float = 0.2):
        super().__init__()
        self.heads, self.slope = heads, slope
        self.linear = nn.Linear(into, heads * out)
        self.query = nn.Parameter(torch.randn(1, heads, out) * 0.1)

    def message(self, source, target, index, size):
        score = (F.leaky_relu(source + target, self.slope) * self.query).sum(dim=-1)
        return source * segment_softmax(score, index, size)[..., None]

    def forward(self, graph):
        x = self.linear(graph.x).view(graph.size, self.heads, -1)
        return self.propagate(x, graph.edges, index=graph.edges[1], size=graph.size).flatten(1)


class DecayAttentionLayer(AttentionLayer):
    """Each head forgets at a rate of its own with the length of the edge."""

    def __init__(self, into, out, heads=2):
        super().__init__(into, out, heads)
        self.rates = [2.0 ** -(number + 1) for number in range(heads)]

    def message(self, source, target, index, size, length):
        base = super().message(source, target, index, size)
        decay = torch.tensor(self.rates)[None] * length[:, None]  # raises
        return base * decay.neg().exp()[..., None]

    def forward(self, graph):
        x = self.linear(graph.x).view(graph.size, self.heads, -1)
        length = (graph.x[graph.edges[0]] - graph.x[graph.edges[1]]).norm(dim=1)
        return self.propagate(x, graph.edges, index=graph.edges[1], size=graph.size, length=length).flatten(1)


class RelationalLayer(Messages):
    def __init__(self, into: int, out: int, relations: int, bases: int = 2):
        super().__init__()
        self.bases = nn.ParameterList(nn.Parameter(torch.randn(into, out)) for _ in range(bases))
        self.mix = nn.Parameter(torch.randn(relations, bases))

    def weights(self):
        return torch.einsum("rb,bio->rio", self.mix, torch.stack(list(self.bases)))

    def message(self, source, kind):
        return torch.bmm(source[:, None], self.weights()[kind]).squeeze(1)

    def forward(self, graph):
        return self.propagate(graph.x, graph.edges, kind=graph.extra["kind"])


class FrozenRelationalLayer(RelationalLayer):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._frozen = super().weights().detach()

    def weights(self):
        return self._frozen

    def message(self, source, kind):
        own = self.weights()[kind.cpu()]
        return torch.matmul(source.unsqueeze(1), own).squeeze(1)  # raises


class RadialBasis(nn.Module):
    def __init__(self, amount: int = 8, cutoff: float = 5.0):
        super().__init__()
        self.cutoff, self.centres = cutoff, np.linspace(0, cutoff, amount)
        self.width = torch.tensor(cutoff / amount)

    def forward(self, length):
        offsets = length[:, None] - torch.from_numpy(self.centres).to(length)[None]
        return torch.exp(-(offsets / self.width) ** 2 / 2) * self.envelope(length)[:, None]

    def envelope(self, length):
        return 0.5 * (torch.cos(length * math.pi / self.cutoff) + 1) * (length < self.cutoff)


class BesselBasis(RadialBasis):
    def __init__(self, amount=8, cutoff=5.0):
        super().__init__(amount, cutoff)
        self.frequencies = math.pi * torch.arange(1, amount + 1) / cutoff

    def forward(self, length):
        return torch.sin(torch.outer(length, self.frequencies)) / length[:, None]  # raises


class GraphNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.share = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x, batch=None):
        batch = x.new_zeros(len(x), dtype=torch.long) if batch is None else batch
        centred = x - scatter(x, batch, reduce="mean")[batch] * self.share
        spread = scatter(centred ** 2, batch, reduce="mean").add(self.eps).sqrt()[batch]
        return self.weight * centred / spread + self.bias


class PairNorm(GraphNorm):
    def forward(self, x, batch=None):
        index = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
        mean = x.new_zeros(size_of(index), x.shape[1]).index_add_(0, index, x)  # raises
        return (x - mean[index] / len(x)) * self.weight


class RunningNorm(nn.Module):
    """Standardises with moments gathered over calls, one pair for each kind of node."""

    def __init__(self, dim: int, kinds: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(kinds, dim))
        self.register_buffer("square", torch.ones(kinds, dim))
        self.calls = torch.zeros(kinds)

    def gather(self, x, kind):
        present = kind.unique()
        for number in present.tolist():
            rows = x[kind == number]
            self.calls[number] += 1
            rate = 1 / self.calls[number]
            self.mean[number] += rate * (rows.mean(dim=0) - self.mean[number])
            self.square[number] += rate * ((rows ** 2).mean(dim=0) - self.square[number])
        return present

    def forward(self, x, kind):
        if self.training:
            self.gather(x, kind)
        return (x - self.mean[kind]) / (self.square - self.mean ** 2).clamp(min=1e-5).sqrt()[kind]

    def confidence(self, kind):
        return torch.tanh(torch.take(self.calls, kind))  # raises


class TopKPool(nn.Module):
    def __init__(self, dim: int, ratio: float = 0.5):
        super().__init__()
        self.vector, self.ratio = nn.Parameter(torch.randn(dim)), ratio

    def select(self, score, batch):
        chosen = []
        for number in range(size_of(batch)):
            rows = (batch == number).nonzero()[:, 0]
            chosen.append(rows[score[rows].topk(max(1, int(self.ratio * len(rows)))).indices])
        return torch.cat(chosen)

    def filter_edges(self, edges, chosen, size):
        place = torch.full((size,), -1, dtype=torch.long)
        place[chosen] = torch.arange(len(chosen))
        edges = place.to(edges.device)[edges]
        return edges[:, (edges >= 0).all(dim=0)]

    def forward(self, data: GraphBatch) -> GraphBatch:
        score = torch.tanh(data.x @ self.vector / self.vector.norm())
        chosen = self.select(score, data.batch)
        edges = self.filter_edges(data.edges, chosen.cpu(), data.size)
        return replace(data, x=data.x[chosen] * score[chosen, None], edges=edges, batch=data.batch[chosen])


class EdgeDropPool(TopKPool):
    def filter_edges(self, edges, chosen, size):
        edges = remove_self_loops(super().filter_edges(edges, chosen, size))
        keep = torch.rand(edges.shape[1]) > 0.1
        return torch.masked_select(edges, keep[None]).view(2, -1)  # raises


class ClusterPool(nn.Module):
    def __init__(self, dim: int, clusters: int):
        super().__init__()
        self.assign, self.clusters = nn.Linear(dim, clusters), clusters

    def adjacency(self, graph: Graph) -> Tensor:
        dense = torch.zeros(graph.size, graph.size, device=graph.x.device)
        dense[graph.edges[0], graph.edges[1]] = 1.0
        return dense

    def orthogonality(self, soft: Tensor) -> Tensor:
        inner = soft.t() @ soft
        goal = torch.eye(self.clusters)
        return torch.norm(inner / inner.norm() - goal / goal.norm())  # raises

    def forward(self, graph, penalty: bool = False):
        soft = self.assign(graph.x).softmax(dim=-1)
        pooled, coarse = soft.t() @ graph.x, soft.t() @ self.adjacency(graph) @ soft
        coarse = coarse * (1 - torch.eye(self.clusters, out=coarse.new_empty(0)))
        return pooled, coarse, self.orthogonality(soft) if penalty else None


class SortReadout(nn.Module):
    """The rows of each graph in the order of their last feature, cut or filled to `k`."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, x, starts: List[int]):
        pieces = [x[low:high] for low, high in zip(starts, starts[1:])]
        return torch.stack([self.fit(piece[piece[:, -1].argsort(descending=True)]) for piece in pieces])

    def fit(self, rows):
        missing = self.k - len(rows)
        return rows[: self.k] if missing <= 0 else torch.cat([rows, torch.zeros(missing, rows.shape[1])])  # raises


def laplacian(graph: Graph, dense: bool = True) -> Tensor:
    values = -graph.x.new_ones(graph.edges.shape[1]) * degree(graph.edges[0], graph.size, graph.x.dtype).clamp(min=1).pow(-1)[graph.edges[0]]
    result = torch.sparse_coo_tensor(graph.edges, values, (graph.size, graph.size))
    return result.to_dense() + torch.eye(graph.size).to(graph.x) if dense else result


def spectral_positions(graph: Graph, amount: int) -> Tensor:
    matrix = laplacian(graph).cpu().numpy()
    _, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return torch.from_numpy(vectors[:, 1:amount + 1].copy())


class ChebyshevLayer(nn.Module):
    def __init__(self, into: int, out: int, order: int = 3):
        super().__init__()
        self.filters = nn.ModuleList(nn.Linear(into, out, bias=False) for _ in range(order))

    def operator(self, graph) -> Tensor:
        return laplacian(graph, dense=False)

    def terms(self, graph):
        matrix = self.operator(graph)
        before, current = graph.x, torch.sparse.mm(matrix, graph.x)
        yield before
        while True:
            yield current
            before, current = current, 2 * torch.sparse.mm(matrix, current) - before

    def forward(self, graph):
        return sum(layer(term) for layer, term in zip(self.filters, self.terms(graph)))


class PositionedLayer(ChebyshevLayer):
    def __init__(self, into, out, positions: int = 2):
        super().__init__(into + positions, out)
        self.positions = positions

    def forward(self, graph):
        found = spectral_positions(graph, self.positions)
        signs = found.new_empty(self.positions).bernoulli_() * 2 - 1
        return super().forward(replace(graph, x=torch.cat([graph.x, found * signs], dim=1)))  # raises
