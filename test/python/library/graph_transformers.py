"""Graph transformers: batching, structural encodings, attention with biases, pooling and heads."""
import math
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GraphConfig:
    width: int = 16
    heads: int = 4
    layers: int = 2
    node_types: int = 7
    edge_types: int = 4
    max_degree: int = 8
    max_distance: int = 5
    pe_dim: int = 4
    classes: int = 3
    readout: str = "mean"


@dataclass
class GraphBatch:
    """Disjoint union of graphs."""
    node_type: torch.Tensor
    edge_index: torch.Tensor
    edge_type: torch.Tensor
    batch: torch.Tensor
    num_graphs: int
    keys: Tuple[str, ...] = ()
    extras: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def collate(cls, graphs: Sequence["GraphBatch"]) -> "GraphBatch":
        offsets = np.cumsum([0] + [len(g.node_type) for g in graphs[:-1]]).tolist()
        return cls(
            node_type=torch.cat([g.node_type for g in graphs]),
            edge_index=torch.cat([g.edge_index + shift for g, shift in zip(graphs, offsets)], dim=1),
            edge_type=torch.cat([g.edge_type for g in graphs]),
            batch=torch.cat([torch.full_like(g.node_type, i) for i, g in enumerate(graphs)]),
            num_graphs=len(graphs),
            keys=tuple(key for g in graphs for key in g.keys))

    @property
    def num_nodes(self) -> int:
        return self.node_type.shape[0]

    @property
    def device(self):
        return self.node_type.device

    def to(self, device) -> "GraphBatch":
        return replace(
            self, node_type=self.node_type.to(device), edge_index=self.edge_index.to(device),
            edge_type=self.edge_type.to(device), batch=self.batch.to(device),
            extras={k: v.to(device) if torch.is_tensor(v) else v for k, v in self.extras.items()})

    def counts(self) -> torch.Tensor:
        return torch.bincount(self.batch, minlength=self.num_graphs)

    def starts(self) -> torch.Tensor:
        return F.pad(self.counts().cumsum(0), (1, 0))[:-1]

    def degrees(self) -> torch.Tensor:
        ones = torch.ones(self.edge_index.shape[1], dtype=torch.long, device=self.device)
        return torch.zeros(self.num_nodes, dtype=torch.long, device=self.device).scatter_add_(
            0, self.edge_index[1], ones)

    def adjacency(self) -> torch.Tensor:
        out = torch.zeros(self.num_nodes, self.num_nodes, device=self.device)
        out[self.edge_index[0], self.edge_index[1]] = 1.0
        return out

    def subgraph(self, keep: torch.Tensor) -> "GraphBatch":
        inside = torch.zeros(self.num_nodes, dtype=torch.bool, device=self.device)
        inside[keep] = True
        relabel = torch.full((self.num_nodes,), -1)
        relabel[keep] = torch.arange(len(keep))
        kept = inside[self.edge_index].all(0)
        return replace(self, node_type=self.node_type[keep], edge_type=self.edge_type[kept],
                       edge_index=relabel[self.edge_index[:, kept]], batch=self.batch[keep])  # raises

    def motif_sums(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x.index_select(0, motif).sum(0) for motif in self.extras["motifs"]])  # raises


def to_dense(x, graph: GraphBatch, fill: float = 0.0) -> Tuple[torch.Tensor, torch.Tensor]:
    longest = int(graph.counts().max())
    slot = torch.arange(graph.num_nodes, device=x.device) - graph.starts()[graph.batch]
    dense = x.new_full((graph.num_graphs, longest) + x.shape[1:], fill)
    dense[graph.batch, slot] = x
    mask = torch.zeros(graph.num_graphs, longest, dtype=torch.bool, device=x.device)
    mask[graph.batch, slot] = True
    return dense, mask


def segment_softmax(scores, index, size: int):
    top = scores.new_full((size,) + scores.shape[1:], -1e9)
    top = top.scatter_reduce(0, index[:, None].expand_as(scores), scores, "amax")
    weights = (scores - top[index]).exp()
    total = torch.zeros_like(top).index_add_(0, index, weights)
    return weights / total[index].clamp_min(1e-12)


class StructuralEncoding(nn.Module):
    """Base: `compute` works per graph, `encode` embeds; results are remembered by key."""
    cache_size = 32

    def __init__(self, config: GraphConfig):
        super().__init__()
        self.config = config
        self._cache: "OrderedDict[str, torch.Tensor]" = OrderedDict()
        self.project = nn.Linear(config.pe_dim, config.width)

    def compute(self, adjacency: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def remembered(self, key: Optional[str], adjacency):
        if key is None or key not in self._cache:
            value = self.compute(adjacency)
            if key is None:
                return value
            self._cache[key] = value.cpu()
            while len(self._cache) > self.cache_size:
                self._cache.popitem(last=False)
        return self._cache[key].to(adjacency.device)

    def raw(self, graph: GraphBatch):
        adjacency, parts = graph.adjacency(), []
        keys = graph.keys or (None,) * graph.num_graphs
        for key, start, count in zip(keys, graph.starts().tolist(), graph.counts().tolist()):
            parts.append(self.remembered(key, adjacency[start:start + count, start:start + count]))
        return torch.cat(parts)

    def forward(self, graph: GraphBatch):
        return self.project(self.raw(graph))


class LaplacianEncoding(StructuralEncoding):
    def compute(self, adjacency):
        a = adjacency.cpu().numpy().astype(np.float64)
        a = np.maximum(a, a.T)
        scale = 1.0 / np.sqrt(np.maximum(a.sum(1), 1.0))
        _, vectors = np.linalg.eigh(np.eye(len(a)) - scale[:, None] * a * scale[None, :])
        out = np.zeros((len(a), self.config.pe_dim), dtype=np.float32)
        kept = vectors[:, 1:self.config.pe_dim + 1]
        out[:, :kept.shape[1]] = kept
        return torch.from_numpy(out)

    def forward(self, graph):
        pe = self.raw(graph)
        if self.training:
            pe = self.flip_signs(pe)
        return self.project(pe)

    def flip_signs(self, pe):
        signs = torch.randint(0, 2, (pe.shape[1],)).mul(2).sub(1)
        return pe * signs  # raises


class HeatKernelEncoding(StructuralEncoding):
    def __init__(self, config):
        super().__init__(config)
        self.times = torch.logspace(-1, 1, config.pe_dim)

    def compute(self, adjacency):
        laplacian = torch.diag(adjacency.sum(1)) - adjacency
        values, vectors = torch.linalg.eigh(0.5 * (laplacian + laplacian.t()))
        decay = torch.exp(-values[:, None] * self.times[None, :])  # raises
        return vectors.pow(2) @ decay


class DegreeEncoding(nn.Module):
    def __init__(self, config: GraphConfig):
        super().__init__()
        self.limit = config.max_degree
        self.table = nn.Embedding(config.max_degree + 1, config.width)

    def forward(self, graph: GraphBatch):
        return self.table(graph.degrees().clamp(max=self.limit))


def hop_distances(adjacency: torch.Tensor, limit: int) -> torch.Tensor:
    """All-pairs hop counts by Floyd-Warshall on the host."""
    dist = np.where(adjacency.cpu().numpy() > 0, 1.0, float(limit))
    np.fill_diagonal(dist, 0.0)
    for k in range(len(dist)):
        dist = np.minimum(dist, dist[:, k:k + 1] + dist[k:k + 1, :])
    return torch.from_numpy(np.minimum(dist, limit)).long()


class AttentionBias(nn.Module):
    """Base of the terms added to the attention logits: (graphs, heads, nodes, nodes)."""

    def __init__(self, config: GraphConfig):
        super().__init__()
        self.config = config

    def per_pair(self, graph: GraphBatch) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, graph: GraphBatch):
        flat = self.per_pair(graph)
        longest = int(graph.counts().max())
        out = flat.new_zeros(graph.num_graphs, longest, longest, flat.shape[-1])
        for i, (start, count) in enumerate(zip(graph.starts().tolist(), graph.counts().tolist())):
            out[i, :count, :count] = flat[start:start + count, start:start + count]
        return out.permute(0, 3, 1, 2)


class DistanceBias(AttentionBias):
    def __init__(self, config):
        super().__init__(config)
        self.table = nn.Embedding(config.max_distance + 1, config.heads)

    def per_pair(self, graph):
        hops = hop_distances(graph.adjacency(), self.config.max_distance)
        return self.table(hops.to(self.table.weight.device))


class DecayBias(AttentionBias):
    """Fixed slopes per head over the hop count, as in ALiBi."""

    def __init__(self, config):
        super().__init__(config)
        slopes = [2.0 ** -(i + 1) for i in range(config.heads)]
        self.register_buffer("slopes", torch.tensor(slopes), persistent=False)

    def per_pair(self, graph):
        hops = hop_distances(graph.adjacency(), self.config.max_distance)
        return -hops[..., None] * self.slopes  # raises


class EdgeBias(AttentionBias):
    def __init__(self, config):
        super().__init__(config)
        self.table = nn.Embedding(config.edge_types, config.heads)

    def per_pair(self, graph):
        out = self.table.weight.new_zeros(graph.num_nodes, graph.num_nodes, self.config.heads)
        src, dst = graph.edge_index.unbind(0)
        return out.index_put((src, dst), self.table(graph.edge_type))


class StochasticDepth(nn.Module):
    def __init__(self, rate: float):
        super().__init__()
        self.register_buffer("rate", torch.tensor(rate), persistent=False)

    def forward(self, x):
        if not self.training or self.rate == 0:
            return x
        keep = torch.empty(len(x), *[1] * (x.dim() - 1), device=x.device).bernoulli_(1 - float(self.rate))
        return x * keep / (1 - self.rate)


class BiasedAttention(nn.Module):
    def __init__(self, config: GraphConfig):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.scale = torch.tensor(1.0 / math.sqrt(config.width // config.heads))

    def forward(self, x, mask, bias=None):
        b, n, w = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        logits = (q @ k.transpose(-1, -2)) * self.scale
        if bias is not None:
            logits = logits + bias
        logits = logits.masked_fill(~mask[:, None, None, :], float("-inf"))
        mixed = (logits.softmax(-1) @ v).transpose(1, 2).reshape(b, n, w)
        return self.out(mixed)


class LocalAttention(nn.Module):
    def __init__(self, config: GraphConfig):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(config.width, config.width) for _ in range(3))

    def forward(self, x, graph: GraphBatch):
        src, dst = graph.edge_index.unbind(0)
        score = (self.query(x)[dst] * self.key(x)[src]).sum(-1, keepdim=True) / math.sqrt(x.shape[1])
        alpha = segment_softmax(score, dst, graph.num_nodes)
        return torch.zeros_like(x).index_add_(0, dst, alpha * self.value(x)[src])


class GraphLayer(nn.Module):
    def __init__(self, config: GraphConfig, drop: float = 0.1):
        super().__init__()
        self.attention, self.local = BiasedAttention(config), LocalAttention(config)
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.ffn = nn.Sequential(nn.Linear(config.width, 32), nn.GELU(), nn.Linear(32, config.width))
        self.drop = StochasticDepth(drop)

    def forward(self, x, graph, bias):
        dense, mask = to_dense(self.norm1(x), graph)
        x = x + self.drop(self.attention(dense, mask, bias)[mask]) + self.local(x, graph)
        return x + self.drop(self.ffn(self.norm2(x)))


class Readout(nn.Module):
    def forward(self, x, graph: GraphBatch):
        total = x.new_zeros(graph.num_graphs, x.shape[1]).index_add_(0, graph.batch, x)
        return total / graph.counts()[:, None]


class VirtualNodeReadout(nn.Module):
    """A state per graph, kept from call to call while the number of graphs stays."""

    def __init__(self, config: GraphConfig):
        super().__init__()
        self.cell = nn.GRUCell(config.width, config.width)
        self.register_buffer("state", None, persistent=False)
        self.mean = Readout()

    def forward(self, x, graph):
        if self.state is None or len(self.state) != graph.num_graphs:
            self.state = torch.zeros(graph.num_graphs, x.shape[1])
        self.state = self.cell(self.mean(x, graph), self.state)  # raises
        return self.state


class TopKReadout(nn.Module):
    def __init__(self, config: GraphConfig, ratio: float = 0.5):
        super().__init__()
        self.ratio = ratio
        self.score = nn.Linear(config.width, 1)

    def select(self, x, graph):
        score, keep = self.score(x).squeeze(-1).tanh(), []
        for start, count in zip(graph.starts().tolist(), graph.counts().tolist()):
            top = score[start:start + count].detach().cpu().topk(max(1, math.ceil(self.ratio * count)))
            keep.append(top.indices + start)
        return torch.cat(keep), score

    def forward(self, x, graph):
        keep, score = self.select(x, graph)
        chosen, owner = x[keep] * score[keep].unsqueeze(-1), graph.batch[keep]
        return x.new_zeros(graph.num_graphs, x.shape[1]).index_add_(0, owner, chosen)

    def ranks(self, x, graph):
        keep, _ = self.select(x, graph)
        position = torch.arange(len(keep), device=x.device)
        out = position.new_full((graph.num_nodes,), -1)
        return out.scatter(0, keep, position)  # raises


READOUTS = {"mean": lambda c: Readout(), "virtual": VirtualNodeReadout, "topk": TopKReadout}
BIASES = {"distance": DistanceBias, "decay": DecayBias, "edge": EdgeBias}
ENCODINGS = {"laplacian": LaplacianEncoding, "heat": HeatKernelEncoding,
             "degree": DegreeEncoding}


class GraphTransformer(nn.Module):
    def __init__(self, config: GraphConfig, encodings=("degree",), biases=("distance",)):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.node_types, config.width)
        self.encodings = nn.ModuleDict({name: ENCODINGS[name](config) for name in encodings})
        self.biases = nn.ModuleList(BIASES[name](config) for name in biases)
        self.layers = nn.ModuleList(GraphLayer(config) for _ in range(config.layers))
        self.readout = READOUTS[config.readout](config)
        self.head = nn.Linear(config.width, config.classes)

    def node_states(self, graph: GraphBatch):
        x = self.embed(graph.node_type)
        for encoding in self.encodings.values():
            x = x + encoding(graph)
        bias = sum((term(graph) for term in self.biases), start=torch.tensor(0.0))
        for layer in self.layers:
            x = layer(x, graph, bias)
        return x

    def forward(self, graph: GraphBatch):
        return self.head(self.readout(self.node_states(graph), graph))

    def balanced_loss(self, graph: GraphBatch, targets: torch.Tensor):
        counts = np.bincount(targets.cpu().numpy(), minlength=self.config.classes)
        weights = torch.as_tensor(1.0 / np.maximum(counts, 1), dtype=torch.float32)
        return F.cross_entropy(self(graph), targets, weight=weights)  # raises

    @torch.no_grad()
    def predict(self, graphs: List[GraphBatch]) -> np.ndarray:
        self.eval()
        logits = self(GraphBatch.collate(graphs).to(self.head.weight.device))
        return logits.softmax(-1).cpu().numpy()

    @torch.no_grad()
    def explain(self, graph: GraphBatch) -> List[np.ndarray]:
        states = self.node_states(graph.to(self.head.weight.device))
        norms = states.norm(dim=1)
        return [part.numpy() for part in norms.split(graph.counts().tolist())]  # raises
