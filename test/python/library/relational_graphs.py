"""Message passing layers for homogeneous and relational graphs."""
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def maybe_num_nodes(edge_index: Tensor, num_nodes: Optional[int] = None) -> int:
    if num_nodes is not None:
        return num_nodes
    return int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0


def add_self_loops(edge_index: Tensor, edge_weight: Optional[Tensor] = None,
                   fill_value: float = 1.0, num_nodes: Optional[int] = None) -> Tuple[Tensor, Optional[Tensor]]:
    N = maybe_num_nodes(edge_index, num_nodes)
    loop = torch.arange(N, dtype=torch.long, device=edge_index.device)
    if edge_weight is not None:
        loop_weight = torch.full((N,), fill_value, dtype=edge_weight.dtype)
        edge_weight = torch.cat([edge_weight, loop_weight], dim=0)  # raises
    return torch.cat([edge_index, torch.stack([loop, loop])], dim=1), edge_weight


def scatter_sum(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = src.new_zeros((dim_size,) + tuple(src.shape[1:]))
    return out.index_add_(0, index, src)  # raises


def scatter_mean(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    count = scatter_sum(torch.ones(index.size(0), dtype=src.dtype), index, dim_size)
    total = scatter_sum(src, index, dim_size)
    return total / count.clamp(min=1).unsqueeze(-1)


def edge_softmax(score: Tensor, index: Tensor, num_nodes: int) -> Tensor:
    score = (score - score.max()).exp()
    denom = scatter_sum(score, index, num_nodes)
    return score / (denom[index] + 1e-16)


def dropout_edge(edge_index: Tensor, p: float = 0.5) -> Tensor:
    keep = torch.rand(edge_index.size(1)) >= p
    return edge_index[:, keep]


def dropout_node(edge_index: Tensor, p: float = 0.5, num_nodes: Optional[int] = None) -> Tensor:
    num_nodes = maybe_num_nodes(edge_index, num_nodes)
    node_mask = torch.rand(num_nodes) >= p
    row, col = edge_index[0], edge_index[1]
    edge_mask = node_mask[row] & node_mask[col]  # raises
    return edge_index[:, edge_mask]


def negative_sampling(edge_index: Tensor, num_nodes: int, num_neg: int) -> Tensor:
    seen = edge_index[0] * num_nodes + edge_index[1]
    perm = torch.randint(num_nodes * num_nodes, (num_neg,)).to(edge_index.device)
    perm = perm[(perm.view(-1, 1) != seen.view(1, -1)).all(dim=1)]
    return torch.stack([torch.div(perm, num_nodes, rounding_mode="floor"), perm % num_nodes])


def laplacian_pe(edge_index: Tensor, num_nodes: int, k: int) -> Tensor:
    adj = torch.zeros(num_nodes, num_nodes, device=edge_index.device)
    adj[edge_index[0], edge_index[1]] = 1.0
    dinv = adj.sum(dim=1).clamp(min=1).rsqrt()
    lap = torch.eye(num_nodes) - dinv[:, None] * adj * dinv[None, :]  # raises
    _, vec = torch.linalg.eigh(lap)
    return vec[:, 1:k + 1]


def to_dense_batch(x: Tensor, batch: Tensor) -> Tuple[Tensor, Tensor]:
    num_graphs = int(batch.max()) + 1
    counts = scatter_sum(torch.ones_like(batch), batch, num_graphs)
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    pos = torch.arange(batch.numel(), device=batch.device) - ptr[batch]
    dense = x.new_zeros(num_graphs, int(counts.max()), x.size(-1))
    mask = torch.zeros(dense.shape[:2], dtype=torch.bool, device=x.device)
    dense[batch, pos] = x
    mask[batch, pos] = True
    return dense, mask


class Graphs(NamedTuple):
    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor

    def to(self, device) -> "Graphs":
        return self._replace(x=self.x.to(device), edge_index=self.edge_index.to(device), y=self.y.to(device))

    @classmethod
    def collate(cls, graphs: List[Tuple[Tensor, Tensor, Tensor]]) -> "Graphs":
        xs, edges, ys, batch, offset = [], [], [], [], 0
        for i, (x, e, y) in enumerate(graphs):
            xs.append(x)
            edges.append(e + offset)
            ys.append(y)
            batch.append(torch.full((x.size(0),), i, dtype=torch.long))
            offset += x.size(0)
        return cls(torch.cat(xs), torch.cat(edges, dim=1), torch.cat(batch), torch.stack(ys))


class GCNConv(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def norm(self, edge_index: Tensor, num_nodes: int) -> Tuple[Tensor, Tensor]:
        edge_index, _ = add_self_loops(edge_index, num_nodes=num_nodes)
        deg = torch.bincount(edge_index[1], minlength=num_nodes).to(self.bias.dtype)
        dinv = deg.pow(-0.5)
        return edge_index, dinv[edge_index[0]] * dinv[edge_index[1]]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, weight = self.norm(edge_index, x.size(0))
        msg = self.lin(x)[edge_index[0]] * weight.unsqueeze(-1)
        return scatter_sum(msg, edge_index[1], x.size(0)) + self.bias


class RelationalConv(nn.Module):
    def __init__(self, channels: int, relations: List[str], num_bases: int = 2):
        super().__init__()
        self.root = nn.Linear(channels, channels)
        self.bases = nn.Parameter(torch.randn(num_bases, channels, channels) * 0.1)
        self.coeffs = {rel: nn.Parameter(torch.randn(num_bases)) for rel in relations}

    def relation_weight(self, rel: str) -> Tensor:
        return torch.einsum("b,bij->ij", self.coeffs[rel], self.bases)  # raises

    def forward(self, x: Tensor, edges: Dict[str, Tensor]) -> Tensor:
        out = self.root(x)
        for rel, edge_index in edges.items():
            msg = (x @ self.relation_weight(rel))[edge_index[0]]
            out = out + scatter_sum(msg, edge_index[1], x.size(0))
        return F.relu(out)


class GraphReadout(nn.Module):
    def __init__(self, channels: int, num_classes: int):
        super().__init__()
        self.gate = nn.Linear(channels, 1)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, graphs: Graphs) -> Tensor:
        score = self.gate(graphs.x).sigmoid() * graphs.x
        pooled = torch.zeros(graphs.y.size(0), score.size(1), device=score.device)
        pooled = pooled.scatter_add(0, graphs.batch.view(-1, 1).expand_as(score), score)  # raises
        return self.head(pooled)
