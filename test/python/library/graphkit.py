"""Message passing, graph utilities, batching, pooling and samplers over ``edge_index`` graphs."""
import math
import random
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


# --------------------------------------------------------------------------------------------------------------- utils
def maybe_num_nodes(edge_index: Tensor, num_nodes: Optional[int] = None) -> int:
    if num_nodes is not None:
        return num_nodes
    return int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0


def scatter(src: Tensor, index: Tensor, dim: int = 0, dim_size: Optional[int] = None, reduce: str = "sum") -> Tensor:
    dim_size = maybe_num_nodes(index, dim_size)
    size = src.size()[:dim] + (dim_size,) + src.size()[dim + 1:]
    idx = index.view([-1 if i == dim else 1 for i in range(src.dim())]).expand_as(src)
    if reduce in ("sum", "add"):
        return src.new_zeros(size).scatter_add_(dim, idx, src)
    if reduce == "mean":
        count = src.new_zeros(dim_size).scatter_add_(0, index, src.new_ones(src.size(dim))).clamp_(min=1)
        return scatter(src, index, dim, dim_size, "sum") / count.view([-1 if i == dim else 1 for i in range(src.dim())])
    if reduce == "max":
        return torch.full(size, float("-inf"), dtype=src.dtype).scatter_reduce_(dim, idx, src, "amax")  # raises
    raise ValueError(reduce)


def degree(index: Tensor, num_nodes: Optional[int] = None, dtype: Optional[torch.dtype] = None) -> Tensor:
    N = maybe_num_nodes(index, num_nodes)
    out = torch.zeros((N,), dtype=dtype, device=index.device)
    one = torch.ones((index.size(0),), dtype=out.dtype, device=out.device)
    return out.scatter_add_(0, index, one)


def add_self_loops(edge_index: Tensor, edge_attr: Optional[Tensor] = None, fill_value: Union[float, Tensor, None] = None,
                   num_nodes: Optional[int] = None) -> Tuple[Tensor, Optional[Tensor]]:
    N = maybe_num_nodes(edge_index, num_nodes)
    loop_index = torch.arange(0, N, dtype=torch.long, device=edge_index.device).unsqueeze(0).repeat(2, 1)
    if edge_attr is not None:
        if fill_value is None:
            loop_attr = edge_attr.new_full((N,) + edge_attr.size()[1:], 1.0)
        elif isinstance(fill_value, (int, float)):
            loop_attr = edge_attr.new_full((N,) + edge_attr.size()[1:], fill_value)
        else:
            loop_attr = fill_value.to(edge_attr.device, edge_attr.dtype).expand(N, *edge_attr.shape[1:])
        edge_attr = torch.cat([edge_attr, loop_attr], dim=0)
    return torch.cat([edge_index, loop_index], dim=1), edge_attr


def remaining_self_loops(edge_index: Tensor, num_nodes: Optional[int] = None) -> Tensor:
    """Adds the loops that the graph doesn't yet have."""
    N = maybe_num_nodes(edge_index, num_nodes)
    has_loop = torch.zeros(N, dtype=torch.bool, device=edge_index.device)
    loops = edge_index[0] == edge_index[1]
    has_loop[edge_index[0][loops]] = True
    missing = torch.arange(N)[~has_loop]  # raises
    return torch.cat([edge_index, torch.stack([missing, missing])], dim=1)


def to_dense_adj(edge_index: Tensor, batch: Optional[Tensor] = None, edge_attr: Optional[Tensor] = None) -> Tensor:
    if batch is None:
        batch = edge_index.new_zeros(int(edge_index.max()) + 1)
    B = int(batch.max()) + 1
    num_nodes = scatter(torch.ones_like(batch), batch, 0, B)
    cum = torch.cat([batch.new_zeros(1), num_nodes.cumsum(0)])
    N = int(num_nodes.max())
    idx0 = batch[edge_index[0]]
    idx1 = edge_index[0] - cum[idx0]
    idx2 = edge_index[1] - cum[batch[edge_index[1]]]
    if edge_attr is None:
        edge_attr = torch.ones(idx0.numel(), device=edge_index.device)
    adj = torch.zeros(B * N * N, dtype=edge_attr.dtype)
    return adj.scatter_add(0, idx0 * N * N + idx1 * N + idx2, edge_attr).view(B, N, N)  # raises


def to_dense_batch(x: Tensor, batch: Optional[Tensor] = None, fill_value: float = 0.0) -> Tuple[Tensor, Tensor]:
    if batch is None:
        return x.unsqueeze(0), torch.ones(1, x.size(0), dtype=torch.bool, device=x.device)
    B = int(batch.max()) + 1
    num_nodes = degree(batch, B, dtype=torch.long)
    cum_nodes = F.pad(num_nodes.cumsum(0), (1, 0))
    N = int(num_nodes.max())
    idx = torch.arange(batch.size(0), dtype=torch.long, device=x.device) - cum_nodes[batch] + batch * N
    out = x.new_full([B * N] + list(x.size())[1:], fill_value)
    out[idx] = x
    mask = torch.zeros(B * N, dtype=torch.bool, device=x.device)
    mask[idx] = 1
    return out.view(B, N, -1), mask.view(B, N)


def index_to_mask(index: Tensor, size: Optional[int] = None) -> Tensor:
    size = int(index.max()) + 1 if size is None else size
    mask = index.new_zeros(size, dtype=torch.bool)
    mask[index] = True
    return mask


def subgraph(subset: Union[Tensor, List[int]], edge_index: Tensor, relabel_nodes: bool = False) -> Tensor:
    device = edge_index.device
    if isinstance(subset, (list, tuple)):
        subset = torch.tensor(subset, dtype=torch.long, device=device)
    N = maybe_num_nodes(edge_index)
    node_mask = index_to_mask(subset, N)
    edge_mask = node_mask[edge_index[0]] & node_mask[edge_index[1]]
    edge_index = edge_index[:, edge_mask]
    if relabel_nodes:
        node_idx = torch.zeros(N, dtype=torch.long)
        node_idx[subset] = torch.arange(subset.size(0), device=device)  # raises
        edge_index = node_idx[edge_index]
    return edge_index


def k_hop_subgraph(node_idx: int, num_hops: int, edge_index: Tensor) -> Tuple[Tensor, Tensor]:
    N = maybe_num_nodes(edge_index)
    col, row = edge_index
    node_mask = row.new_empty(N, dtype=torch.bool)
    edge_mask = row.new_empty(row.size(0), dtype=torch.bool)
    subsets = [torch.tensor([node_idx]).flatten().to(row.device)]
    for _ in range(num_hops):
        node_mask.fill_(False)
        node_mask[subsets[-1]] = True
        torch.index_select(node_mask, 0, row, out=edge_mask)
        subsets.append(col[edge_mask])
    return torch.cat(subsets).unique(), edge_mask


def negative_sampling(edge_index: Tensor, num_nodes: Optional[int] = None, num_neg: Optional[int] = None) -> Tensor:
    """Negative edges by rejection; the candidates are drawn and checked on the host, then moved back."""
    N = maybe_num_nodes(edge_index, num_nodes)
    num_neg = edge_index.size(1) if num_neg is None else num_neg
    taken = (edge_index[0] * N + edge_index[1]).cpu()
    drawn = torch.tensor(random.sample(range(N * N), min(N * N, 2 * num_neg)))
    mask = torch.from_numpy(np.isin(drawn.numpy(), taken.numpy())).logical_not()
    drawn = drawn[mask][:num_neg].to(edge_index.device)
    return torch.stack([torch.div(drawn, N, rounding_mode="floor"), drawn % N], dim=0)


def structured_negative_sampling(edge_index: Tensor, num_nodes: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    N = maybe_num_nodes(edge_index, num_nodes)
    row, col = edge_index
    pos = row * N + col
    rand = torch.randint(N, (row.size(0),), dtype=torch.long)
    neg = row * N + rand  # raises
    mask = (neg[:, None] == pos[None, :]).any(1)
    return row, col, torch.where(mask, col, rand)


def random_walk(edge_index: Tensor, start: Tensor, length: int) -> Tensor:
    """Uniform walks from ``start``; a node without neighbours stays where it is."""
    N = maybe_num_nodes(edge_index)
    adj = torch.zeros(N, N, device=torch.cuda.current_device() if start.is_cuda else "cpu")
    adj[edge_index[0], edge_index[1]] = 1.0
    adj = torch.where(adj.sum(1, keepdim=True) > 0, adj, torch.eye(N, device=adj.device))
    walk = [start]
    for _ in range(length):
        walk.append(torch.multinomial(adj[walk[-1]], 1).squeeze(1))  # raises
    return torch.stack(walk, dim=1)


def edge_dropout_mask(edge_index: Tensor, p: float = 0.5) -> Tensor:
    with torch.cuda.device_of(edge_index):
        keep = torch.rand(edge_index.size(1), device="cuda") >= p if edge_index.is_cuda else torch.rand(edge_index.size(1)) >= p
    return keep & (edge_index[0] != edge_index[1])


def dropout_edge(edge_index: Tensor, p: float = 0.5, training: bool = True) -> Tuple[Tensor, Tensor]:
    if not training or p == 0.0:
        return edge_index, edge_index.new_ones(edge_index.size(1), dtype=torch.bool)
    # a mask on the CPU indexes a tensor anywhere
    edge_mask = torch.rand(edge_index.size(1)) >= p
    return edge_index[:, edge_mask], edge_mask


def laplacian_pe(edge_index: Tensor, num_nodes: int, k: int) -> Tensor:
    A = torch.zeros(num_nodes, num_nodes, device=edge_index.device)
    A[edge_index[0], edge_index[1]] = 1.0
    deg = A.sum(1).clamp(min=1).rsqrt()
    L = torch.eye(num_nodes, device=A.device) - deg[:, None] * A * deg
    vals, vecs = np.linalg.eigh(L.cpu().numpy())
    pe = torch.from_numpy(vecs[:, 1:k + 1]).float()
    sign = -1 + 2 * torch.randint(0, 2, (k,))
    return (pe * sign).to(edge_index.device)


# ------------------------------------------------------------------------------------------------------------ containers
class Data:
    def __init__(self, **kwargs: Any):
        self.__dict__["_store"] = kwargs

    def __getattr__(self, key):
        try:
            return self.__dict__["_store"][key]
        except KeyError:
            raise AttributeError(key)

    def __setattr__(self, key, value):
        self._store[key] = value

    def keys(self):
        return list(self._store)

    def apply(self, func, *names):
        for key, value in self._store.items():
            if isinstance(value, Tensor) and (not names or key in names):
                self._store[key] = func(value)
        return self

    def to(self, device, *names):
        return self.apply(lambda x: x.to(device), *names)

    @property
    def num_nodes(self):
        return self.x.size(0)


class AddLaplacianPE:
    def __init__(self, k: int = 2):
        self.k = k

    def __call__(self, data: Data) -> Data:
        data.x = torch.cat([data.x, laplacian_pe(data.edge_index, data.num_nodes, self.k)], dim=-1)
        return data


class RandomNodeSplit:
    def __init__(self, num_val: int = 1, num_test: int = 1):
        self.num_val, self.num_test = num_val, num_test

    def __call__(self, data: Data) -> Data:
        perm = torch.randperm(data.num_nodes)
        for name, rows in (("val_mask", perm[:self.num_val]), ("test_mask", perm[self.num_val:self.num_val + self.num_test])):
            mask = torch.zeros(data.num_nodes, dtype=torch.bool)
            mask[rows] = True
            setattr(data, name, mask)
        data.train_mask = ~(data.val_mask | data.test_mask) & (data.y >= 0)  # raises
        return data


def collate(graphs: List[Data]) -> Data:
    xs, edges, batch, offset = [], [], [], 0
    for i, g in enumerate(graphs):
        xs.append(g.x)
        edges.append(g.edge_index + offset)
        batch.append(torch.full((g.num_nodes,), i, dtype=torch.long))
        offset += g.num_nodes
    out = Data(x=torch.cat(xs), edge_index=torch.cat(edges, dim=1))
    out.batch = torch.cat(batch).to(out.x.device)
    out.ptr = torch.tensor([0] + [g.num_nodes for g in graphs]).cumsum(0)
    return out


# ---------------------------------------------------------------------------------------------------------------- layers
class MessagePassing(nn.Module):
    def __init__(self, aggr: str = "add"):
        super().__init__()
        self.aggr = aggr

    def propagate(self, edge_index: Tensor, x: Tensor, **kwargs) -> Tensor:
        j, i = edge_index
        return scatter(self.message(x[i], x[j], i, **kwargs), i, 0, x.size(0), self.aggr)

    def message(self, x_i: Tensor, x_j: Tensor, index: Tensor, **kwargs) -> Tensor:
        return x_j


class GCNConv(MessagePassing):
    _cached_edge_index: Optional[Tuple[Tensor, Tensor]]

    def __init__(self, in_channels: int, out_channels: int, cached: bool = False):
        super().__init__()
        self.cached, self._cached_edge_index = cached, None
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def norm(self, edge_index, edge_weight, num_nodes):
        if edge_weight is None:
            edge_weight = torch.ones(edge_index.size(1))
        edge_weight = edge_weight.to(edge_index.device)
        edge_index, edge_weight = add_self_loops(edge_index, edge_weight, num_nodes=num_nodes)
        deg = scatter(edge_weight, edge_index[1], 0, num_nodes).pow(-0.5)
        return edge_index, deg[edge_index[0]] * edge_weight * deg[edge_index[1]]

    def forward(self, x, edge_index, edge_weight=None):
        if not self.cached or self._cached_edge_index is None:
            self._cached_edge_index = self.norm(edge_index, edge_weight, x.size(0))
        edge_index, weight = self._cached_edge_index
        return self.propagate(edge_index, self.lin(x), weight=weight) + self.bias

    def message(self, x_i, x_j, index, weight):
        return weight.view(-1, 1) * x_j


class RGCNConv(MessagePassing):
    """One weight a relation; the weights are kept in a plain dictionary."""

    def __init__(self, in_channels: int, out_channels: int, relations: List[str]):
        super().__init__(aggr="mean")
        self.root = nn.Linear(in_channels, out_channels)
        self.rel = {name: nn.Linear(in_channels, out_channels, bias=False) for name in relations}

    def forward(self, x: Tensor, edge_index_dict: Dict[str, Tensor]) -> Tensor:
        out = self.root(x)
        for name, edge_index in edge_index_dict.items():
            out = out + self.propagate(edge_index, self.rel[name](x))  # raises
        return out


class TimeEncoder(nn.Module):
    def __init__(self, out_channels: int):
        super().__init__()
        self.lin = nn.Linear(out_channels, out_channels)
        self.freq = (1.0 / 10 ** torch.linspace(0, 3, out_channels)).view(1, -1)

    def forward(self, t: Tensor) -> Tensor:
        return self.lin(torch.cos(t.view(-1, 1) @ self.freq))  # raises


class TGNMemory(nn.Module):
    """Memory of the nodes of a temporal graph; reset_state() starts an epoch."""

    def __init__(self, num_nodes: int, dim: int):
        super().__init__()
        self.num_nodes, self.gru = num_nodes, nn.GRUCell(dim, dim)
        self.register_buffer("memory", torch.zeros(num_nodes, dim))
        self.register_buffer("last_update", torch.zeros(num_nodes, dtype=torch.long))

    def reset_state(self) -> None:
        self.memory.zero_()
        self.last_update = torch.zeros(self.num_nodes, dtype=torch.long)

    def update_state(self, n_id: Tensor, msg: Tensor, t: Tensor) -> Tensor:
        self.memory[n_id] = self.gru(msg, self.memory[n_id]).detach()
        self.last_update[n_id] = torch.maximum(self.last_update[n_id], t)  # raises
        return self.memory[n_id]


class TopKPooling(nn.Module):
    def __init__(self, in_channels: int, ratio: float = 0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_channels))
        self.ratio = ratio

    def forward(self, x, edge_index, batch=None):
        if batch is None:
            batch = edge_index.new_zeros(x.size(0))
        score = torch.tanh((x * self.weight).sum(-1) / self.weight.norm(p=2))
        keep = score.topk(max(1, math.ceil(self.ratio * x.size(0)))).indices
        mapping = torch.full((x.size(0),), -1, dtype=torch.long, device=x.device)
        mapping[keep] = torch.arange(keep.numel()).to(x.device)
        row, col = mapping[edge_index]
        valid = (row >= 0) & (col >= 0)
        return x[keep] * score[keep].view(-1, 1), torch.stack([row[valid], col[valid]]), batch[keep]


class PygLoader:
    def __init__(self, graphs: List[Data], batch_size: int, shuffle: bool = False):
        self.graphs, self.batch_size, self.shuffle = graphs, batch_size, shuffle

    def __iter__(self) -> Iterator[Data]:
        order = torch.randperm(len(self.graphs)).tolist() if self.shuffle else list(range(len(self.graphs)))
        for start in range(0, len(order), self.batch_size):
            yield collate([self.graphs[i] for i in order[start:start + self.batch_size]])


def unbatch(x: Tensor, data: Data) -> List[Tensor]:
    sizes = (data.ptr[1:] - data.ptr[:-1]).tolist()
    return list(x.split(sizes))


def last_nodes(data: Data) -> Tensor:
    """The row of the last node of each graph of a batch made by ``collate``."""
    return data.x[data.ptr[1:] - 1]


def graph_offsets(data: Data) -> Tensor:
    return torch.arange(data.num_nodes, device=data.batch.device) - data.ptr[data.batch]  # raises
