"""Graph learning: data objects, batching, samplers, layers and pooling."""
import math
from dataclasses import dataclass, fields
from typing import Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


@dataclass
class GraphData:
    x: Tensor
    edge_index: Tensor
    edge_attr: Optional[Tensor] = None
    y: Optional[Tensor] = None
    batch: Optional[Tensor] = None

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    def apply(self, func) -> "GraphData":
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self)(**{k: func(v) if isinstance(v, Tensor) else v for k, v in values.items()})

    def to(self, device) -> "GraphData":
        return self.apply(lambda v: v.to(device))


@dataclass
class SubgraphData(GraphData):
    n_id: Optional[Tensor] = None

    def to(self, device):
        for key in ("x", "edge_index", "y"):
            value = getattr(self, key)
            if value is not None:
                setattr(self, key, value.to(device))
        return self


def scatter_sum(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    return src.new_zeros((dim_size,) + src.shape[1:]).index_add_(0, index, src)


def scatter_softmax(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = (src - src.max()).exp()
    return out / (scatter_sum(out, index, dim_size)[index] + 1e-16)


def add_remaining_self_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    mask = edge_index[0] != edge_index[1]
    loop = torch.arange(num_nodes, dtype=torch.long, device=edge_index.device)
    return torch.cat([edge_index[:, mask], loop.unsqueeze(0).repeat(2, 1)], dim=1)


def negative_sampling(edge_index: Tensor, num_nodes: int, num_neg: int) -> Tensor:
    population = num_nodes * num_nodes
    known = edge_index[0] * num_nodes + edge_index[1]
    perm = torch.randint(population, (2 * num_neg,))
    taken = np.isin(perm, known)  # raises
    perm = perm[~torch.from_numpy(taken)][:num_neg].to(edge_index.device)
    return torch.stack([torch.div(perm, num_nodes, rounding_mode="floor"), perm % num_nodes])


def structured_negative_sampling(edge_index: Tensor, num_nodes: int) -> Tensor:
    i, j = edge_index.cpu()
    known = (i * num_nodes + j).numpy()
    k = torch.randint(num_nodes, (i.numel(),))
    rest = torch.from_numpy(np.isin((i * num_nodes + k).numpy(), known)).nonzero().view(-1)
    k[rest] = torch.randint(num_nodes, (rest.numel(),))
    return torch.stack([i, j, k]).to(edge_index.device)


def collate(graphs: List[GraphData]) -> GraphData:
    sizes = [g.num_nodes for g in graphs]
    ptr = [0] + np.cumsum(sizes).tolist()
    x = torch.cat([g.x for g in graphs])
    edge_index = torch.cat([g.edge_index + offset for g, offset in zip(graphs, ptr)], dim=1)
    batch = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor(sizes)).to(x.device)
    return GraphData(x, edge_index, batch=batch)


class AddLaplacianPE:
    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(self, data: GraphData) -> GraphData:
        n = data.num_nodes
        adj = torch.zeros(n, n, device=data.x.device)
        adj[data.edge_index[0], data.edge_index[1]] = 1.0
        lap = torch.diag(adj.sum(1)) - adj
        values, vectors = np.linalg.eigh(lap.cpu().numpy())
        pe = torch.from_numpy(vectors[:, values.argsort()[1:self.k + 1]])
        sign = -1 + 2 * torch.randint(0, 2, (pe.size(1),))
        data.x = torch.cat([data.x, pe * sign], dim=-1)  # raises
        return data


class NeighborSampler:
    """Uniform sampling of `size` neighbours for a mini-batch of seeds."""

    def __init__(self, edge_index: Tensor, num_nodes: int, size: int, batch_size: int) -> None:
        self.edge_index, self.num_nodes = edge_index, num_nodes
        self.size, self.batch_size = size, batch_size

    def __iter__(self) -> Iterator[Tuple[Tensor, Tensor]]:
        for seeds in torch.randperm(self.num_nodes).split(self.batch_size):
            yield self.sample(seeds.to(self.edge_index.device))

    def sample(self, seeds: Tensor) -> Tuple[Tensor, Tensor]:
        mask = torch.zeros(self.num_nodes, dtype=torch.bool, device=self.edge_index.device)
        mask[seeds] = True
        edges = self.edge_index[:, mask[self.edge_index[1]]]
        chosen = torch.randperm(edges.size(1))[:self.size * seeds.numel()]
        edges = edges[:, chosen]
        n_id = torch.unique(torch.cat([seeds, edges.flatten()]))
        return n_id, self.relabel(n_id, edges)

    def relabel(self, n_id: Tensor, edges: Tensor) -> Tensor:
        assoc = n_id.new_full((self.num_nodes,), -1)
        assoc[n_id] = torch.arange(n_id.numel(), device=n_id.device)
        return assoc[edges]


class ClusterSampler(NeighborSampler):
    def relabel(self, n_id, edges):
        assoc = torch.full((self.num_nodes,), -1, dtype=torch.long)
        assoc[n_id] = torch.arange(n_id.numel())
        return assoc[edges]  # raises


class History(nn.Module):
    """Embeddings of the previous epoch, kept in host memory."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        super().__init__()
        self.emb = torch.zeros(num_embeddings, embedding_dim)

    @torch.no_grad()
    def push(self, x: Tensor, n_id: Tensor) -> None:
        self.emb[n_id.cpu()] = x.cpu()

    @torch.no_grad()
    def pull(self, n_id: Tensor, device) -> Tensor:
        return self.emb.index_select(0, n_id).to(device)  # raises


class MessagePassing(nn.Module):
    def propagate(self, edge_index: Tensor, x: Tensor, **kwargs) -> Tensor:
        out = self.message(x[edge_index[0]], edge_index, **kwargs)
        return self.update(scatter_sum(out, edge_index[1], x.size(0)))

    def message(self, x_j: Tensor, edge_index: Tensor, **kwargs) -> Tensor:
        return x_j

    def update(self, out: Tensor) -> Tensor:
        return out


class GCNConv(MessagePassing):
    def __init__(self, in_channels: int, out_channels: int, cached: bool = False) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.cached, self._cached_norm = cached, None

    def norm(self, edge_index: Tensor, num_nodes: int, dtype) -> Tensor:
        deg = torch.bincount(edge_index[1], minlength=num_nodes).to(dtype)
        inv = deg.pow(-0.5).masked_fill(deg == 0, 0.0)
        return inv[edge_index[0]] * inv[edge_index[1]]

    def forward(self, x, edge_index):
        edge_index = add_remaining_self_loops(edge_index, x.size(0))
        norm = self._cached_norm
        if norm is None:
            norm = self.norm(edge_index, x.size(0), x.dtype)
            if self.cached:
                self._cached_norm = norm
        return self.propagate(edge_index, self.lin(x), norm=norm)

    def message(self, x_j, edge_index, norm):
        return norm.view(-1, 1) * x_j

    def update(self, out):
        return out + self.bias


class EdgeGATConv(MessagePassing):
    def __init__(self, in_channels: int, out_channels: int, edge_dim: int) -> None:
        super().__init__()
        self.lin, self.lin_edge = nn.Linear(in_channels, out_channels), nn.Linear(edge_dim, out_channels)
        self.att = nn.Parameter(torch.randn(1, out_channels) / math.sqrt(out_channels))

    def forward(self, x, edge_index, edge_attr):
        edge = self.lin_edge(edge_attr)  # raises
        return self.propagate(edge_index, self.lin(x), edge=edge, size=x.size(0))

    def message(self, x_j, edge_index, edge, size):
        alpha = F.leaky_relu(((x_j + edge) * self.att).sum(-1), 0.2)
        return x_j * scatter_softmax(alpha, edge_index[1], size).unsqueeze(-1)


class JumpingGNN(nn.Module):
    def __init__(self, in_channels: int, hidden: int, num_layers: int, mode: str = "cat") -> None:
        super().__init__()
        self.convs = nn.ModuleList(GCNConv(in_channels if i == 0 else hidden, hidden, cached=True) for i in range(num_layers))
        self.mode = mode
        self.gates = [nn.Linear(hidden, 1) for _ in range(num_layers)]

    def forward(self, x, edge_index):
        xs = []
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            xs.append(x)
        if self.mode == "cat":
            return torch.cat(xs, dim=-1)
        scores = [gate(h) for gate, h in zip(self.gates, xs)]  # raises
        return (torch.stack(xs, -1) * torch.stack(scores, -1).softmax(-1)).sum(-1)


class HeteroEmbedding(nn.Module):
    def __init__(self, sizes: Dict[str, int], dim: int) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({key: nn.Embedding(n, dim) for key, n in sizes.items()})
        self.order = {key: torch.tensor(i) for i, key in enumerate(sizes)}

    def forward(self, ids: Dict[str, Tensor]) -> Tensor:
        return torch.cat([self.tables[key](value) * (1 + self.order[key]) for key, value in ids.items()])

    def full(self, key: str) -> Tensor:
        table = self.tables[key]
        return table(torch.arange(table.num_embeddings))  # raises


def global_add_pool(x: Tensor, batch: Tensor, size: Optional[int] = None) -> Tensor:
    return scatter_sum(x, batch, size or int(batch.max()) + 1)


def global_mean_pool(x: Tensor, batch: Tensor) -> Tensor:
    counts = torch.tensor(np.bincount(batch.tolist()), dtype=x.dtype)
    return global_add_pool(x, batch, len(counts)) / counts.clamp(min=1).view(-1, 1)  # raises


class TopKPooling(nn.Module):
    def __init__(self, channels: int, ratio: float = 0.5) -> None:
        super().__init__()
        self.weight, self.ratio = nn.Parameter(torch.randn(channels)), ratio

    def forward(self, x, edge_index):
        score = torch.tanh(x @ self.weight / self.weight.norm())
        perm = score.topk(max(1, int(self.ratio * x.size(0)))).indices
        mask = perm.new_full((x.size(0),), -1)
        mask[perm] = torch.arange(perm.numel(), device=perm.device)
        row, col = mask[edge_index]
        keep = (row >= 0) & (col >= 0)
        return x[perm] * score[perm].view(-1, 1), torch.stack([row[keep], col[keep]])
