"""Message passing layers, pooling and featurisers for molecules and proteins (no dependency on scatter kernels)."""
import inspect
import math
from collections import Counter
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Embedding, Linear, Module, ModuleDict, ModuleList, Parameter, Sequential

ATOMS = ("H", "C", "N", "O", "S")
MASSES = torch.tensor([1.008, 12.011, 14.007, 15.999, 32.06])
RADII = {"H": 0.31, "C": 0.76, "N": 0.71, "O": 0.66, "S": 1.05}

Adj = Tensor


class Graph:
    """Attributes by name; `to` changes the graph in place and returns it."""

    def __init__(self, x: Tensor, edge_index: Adj, **attrs):
        self.__dict__["_store"] = dict(x=x, edge_index=edge_index, **attrs)

    def __getattr__(self, key):
        try:
            return self.__dict__["_store"][key]
        except KeyError:
            raise AttributeError(key) from None

    def __setattr__(self, key, value):
        self._store[key] = value

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    def keys(self):
        return [k for k, v in self._store.items() if v is not None]

    def to(self, device, *keys: str) -> "Graph":
        for k in keys or self.keys():
            if torch.is_tensor(self._store[k]):
                self._store[k] = self._store[k].to(device)
        return self

    def clone(self) -> "Graph":
        return Graph(**{k: v.clone() if torch.is_tensor(v) else v for k, v in self._store.items()})


def maybe_num_nodes(index: Tensor, num_nodes: Optional[int] = None) -> int:
    if num_nodes is not None:
        return num_nodes
    return int(index.max()) + 1 if index.numel() else 0


def scatter(src: Tensor, index: Tensor, size: int, reduce: str = "sum") -> Tensor:
    out = src.new_zeros((size,) + src.shape[1:])
    out.index_add_(0, index, src)  # raises
    if reduce == "mean":
        count = torch.bincount(index, minlength=size).clamp(min=1).to(src.dtype)
        out = out / count.view(-1, *[1] * (src.dim() - 1))
    return out


def segment_softmax(src: Tensor, index: Tensor, size: int) -> Tensor:
    expanded = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
    top = src.new_full((size,) + src.shape[1:], -1e9).scatter_reduce(0, expanded, src.detach(), "amax")
    exp = (src - top[index]).exp()
    return exp / (scatter(exp, index, size)[index] + 1e-16)


def degree(index: Tensor, num_nodes: Optional[int] = None, dtype: Optional[torch.dtype] = None) -> Tensor:
    n = maybe_num_nodes(index, num_nodes)
    out = torch.zeros(n, dtype=dtype, device=index.device)
    return out.scatter_add_(0, index, torch.ones_like(index, dtype=out.dtype))


def add_self_loops(edge_index: Adj, num_nodes: Optional[int] = None, edge_attr: Optional[Tensor] = None, fill: float = 1.0):
    n = maybe_num_nodes(edge_index, num_nodes)
    loops = torch.arange(n, device=edge_index.device).expand(2, -1)
    if edge_attr is not None:
        edge_attr = torch.cat([edge_attr, edge_attr.new_full((n,) + edge_attr.shape[1:], fill)])
    return torch.cat([edge_index, loops], dim=1), edge_attr


def remove_duplicates(edge_index: Adj, num_nodes: Optional[int] = None) -> Adj:
    n = maybe_num_nodes(edge_index, num_nodes)
    code = torch.unique(edge_index[0] * n + edge_index[1])
    return torch.stack([torch.div(code, n, rounding_mode="floor"), code % n])


def k_hop_subgraph(nodes: Union[int, List[int], Tensor], hops: int, edge_index: Adj, num_nodes: Optional[int] = None):
    n = maybe_num_nodes(edge_index, num_nodes)
    seen = torch.zeros(n, dtype=torch.bool, device=edge_index.device)
    seen[nodes] = True
    for _ in range(hops):
        seen[edge_index[0][seen[edge_index[1]]]] = True
    keep = seen[edge_index].all(0)
    relabel = torch.full((n,), -1, dtype=torch.long)
    subset = seen.nonzero().view(-1)
    relabel[subset.cpu()] = torch.arange(len(subset))
    return subset, relabel[edge_index[:, keep]]  # raises


def radius_graph(pos: Tensor, r: float, batch: Optional[Tensor] = None, loop: bool = False) -> Adj:
    batch = torch.zeros(len(pos), dtype=torch.long) if batch is None else batch
    close = torch.cdist(pos, pos) <= r
    same = batch.view(-1, 1) == batch
    if not loop:
        close.fill_diagonal_(False)
    return (close & same).nonzero().t()  # raises


def knn_graph(pos: Tensor, k: int, mask_self: bool = True) -> Adj:
    gap = torch.cdist(pos, pos)
    if mask_self:
        gap = gap + torch.diag(torch.full((len(pos),), math.inf).to(pos)).nan_to_num(nan=0.0, posinf=1e9)
    near = gap.topk(k, largest=False).indices
    rows = torch.arange(len(pos)).repeat_interleave(k).to(near)
    return torch.stack([near.flatten(), rows])


# ---------------------------------------------------------------------------------------------- featurisers

class RadialBasis(Module):
    def __init__(self, n: int = 4, cutoff: float = 5.0, trainable: bool = False):
        super().__init__()
        centers = torch.linspace(0, cutoff, n)
        self.width = 0.5 / float(centers[1] - centers[0]) ** 2
        if trainable:
            self.centers = Parameter(centers)
        else:
            self.centers = centers
        self.cutoff = cutoff

    def forward(self, dist: Tensor) -> Tensor:
        envelope = 0.5 * (torch.cos(dist * math.pi / self.cutoff) + 1) * (dist < self.cutoff)
        return envelope[:, None] * torch.exp(-self.width * (dist[:, None] - self.centers) ** 2)  # raises


class DihedralFeatures(Module):
    """Sine and cosine of the backbone angles of [L, 3, 3] coordinates."""

    def forward(self, coords: Tensor) -> Tensor:
        x = coords.reshape(-1, 3)
        u = F.normalize(x[1:] - x[:-1], dim=-1)
        n1 = F.normalize(torch.cross(u[:-2], u[1:-1], dim=-1), dim=-1)
        n2 = F.normalize(torch.cross(u[1:-1], u[2:], dim=-1), dim=-1)
        cos = (n1 * n2).sum(-1).clamp(-1 + 1e-6, 1 - 1e-6)
        angle = torch.sign((u[:-2] * n2).sum(-1)) * torch.acos(cos)
        angle = F.pad(angle, [1, 2]).view(-1, 3)
        return torch.cat([angle.cos(), angle.sin()], 1)


class SequenceOffsets(Module):
    def __init__(self, dim: int = 4, cache: Optional[Dict[int, Tensor]] = None):
        super().__init__()
        self.dim = dim
        self.cache = {} if cache is None else cache

    def frequencies(self, like: Tensor) -> Tensor:
        key = self.dim
        if key not in self.cache:
            self.cache[key] = torch.exp(torch.arange(0, self.dim, 2).float() * -(math.log(10000.0) / self.dim)).to(like.device)
        return self.cache[key]

    def forward(self, edge_index: Adj) -> Tensor:
        d = (edge_index[0] - edge_index[1]).float().unsqueeze(-1)
        angles = d * self.frequencies(edge_index)
        return torch.cat([angles.cos(), angles.sin()], -1)


def center_of_mass(pos: Tensor, atoms: Union[Tensor, Sequence[str]], batch: Optional[Tensor] = None) -> Tensor:
    if not torch.is_tensor(atoms):
        atoms = torch.tensor([ATOMS.index(a) for a in atoms])
    mass = MASSES[atoms.cpu()].to(pos).unsqueeze(-1)
    batch = atoms.new_zeros(len(atoms)) if batch is None else batch
    n = maybe_num_nodes(batch)
    return scatter(pos * mass, batch, n) / scatter(mass, batch, n)


def bond_matrix(pos: Tensor, symbols: Sequence[str], tolerance: float = 0.4) -> Tensor:
    radii = torch.tensor([RADII[s] for s in symbols])
    limit = radii[:, None] + radii + tolerance
    bonds = torch.cdist(pos, pos) < limit  # raises
    return bonds.fill_diagonal_(False)


def formula(atoms: Tensor) -> str:
    counts = Counter(ATOMS[i] for i in atoms.tolist())
    return "".join(f"{a}{n if n > 1 else ''}" for a, n in sorted(counts.items()))


def mass_fractions(atoms: Tensor) -> Tensor:
    counts = torch.bincount(atoms, minlength=len(ATOMS))
    weighted = counts * MASSES  # raises
    return weighted / weighted.sum()


# ---------------------------------------------------------------------------------------------- layers

class MessagePassing(Module):
    def __init__(self, aggr: str = "sum"):
        super().__init__()
        self.aggr = aggr
        self._wanted = list(inspect.signature(self.message).parameters)

    def propagate(self, edge_index: Adj, size: int, **kw) -> Tensor:
        src, dst = edge_index
        given = {}
        for name in self._wanted:
            if name.endswith("_i"):
                given[name] = kw[name[:-2]][dst]
            elif name.endswith("_j"):
                given[name] = kw[name[:-2]][src]
            elif name == "index":
                given[name] = dst
            elif name == "size":
                given[name] = size
            else:
                given[name] = kw.get(name)
        return self.update(scatter(self.message(**given), dst, size, self.aggr))

    def message(self, x_j: Tensor) -> Tensor:
        return x_j

    def update(self, out: Tensor) -> Tensor:
        return out


class GCNConv(MessagePassing):
    def __init__(self, d_in: int, d_out: int, cached: bool = False):
        super().__init__()
        self.lin, self.cached, self._norm = Linear(d_in, d_out), cached, None

    def norm(self, edge_index: Adj, n: int) -> Tuple[Adj, Tensor]:
        if self.cached and self._norm is not None:
            return self._norm
        edges, _ = add_self_loops(edge_index, n)
        inv = degree(edges[1], n).pow(-0.5)
        self._norm = edges, inv[edges[0]] * inv[edges[1]]
        return self._norm

    def forward(self, x: Tensor, edge_index: Adj) -> Tensor:
        edges, weight = self.norm(edge_index, len(x))
        return self.propagate(edges, len(x), x=self.lin(x), weight=weight)

    def message(self, x_j, weight):
        return weight[:, None] * x_j


class GATConv(MessagePassing):
    def __init__(self, d_in: int, d_out: int, edge_dim: Optional[int] = None):
        super().__init__()
        self.lin = Linear(d_in, d_out)
        self.att = Parameter(torch.randn(2, d_out))
        self.edge = Linear(edge_dim, 1) if edge_dim else None

    def forward(self, x, edge_index, edge_attr=None):
        edge_index, edge_attr = add_self_loops(edge_index, len(x), edge_attr, 0.0)
        return self.propagate(edge_index, len(x), x=self.lin(x), edge_attr=edge_attr)

    def message(self, x_i, x_j, edge_attr, index, size):
        alpha = (x_i * self.att[0]).sum(-1) + (x_j * self.att[1]).sum(-1)
        if self.edge is not None and edge_attr is not None:
            alpha = alpha + self.edge(edge_attr).squeeze(-1)
        return segment_softmax(F.leaky_relu(alpha, 0.2), index, size)[:, None] * x_j


class RelationalConv(Module):
    """One linear map for each bond type, made when the type is first seen unless named before."""

    def __init__(self, dim: int, relations: Iterable[str] = ()):
        super().__init__()
        self.dim = dim
        self.maps = ModuleDict({r: Linear(dim, dim) for r in relations})

    def forward(self, x: Tensor, edges: Dict[str, Adj]) -> Tensor:
        out = torch.zeros_like(x)
        for name, (src, dst) in edges.items():
            if name not in self.maps:
                self.maps[name] = Linear(self.dim, self.dim)
            out = out + scatter(self.maps[name](x[src]), dst, len(x), "mean")  # raises
        return out


class EGNNLayer(Module):
    def __init__(self, dim: int, basis: Optional[Module] = None, hops: int = 1):
        super().__init__()
        self.basis = basis
        extra = 4 if basis is not None else 1
        self.steps = [Linear(dim, dim) for _ in range(hops - 1)]
        self.msg, self.gate = Linear(2 * dim + extra, dim), Linear(dim, 1)

    def forward(self, x: Tensor, pos: Tensor, edge_index: Adj) -> Tuple[Tensor, Tensor]:
        src, dst = edge_index
        rel = pos[src] - pos[dst]
        d = rel.norm(dim=-1)
        feats = d[:, None] if self.basis is None else self.basis(d)
        m = F.silu(self.msg(torch.cat([x[src], x[dst], feats], -1)))
        pos = pos + scatter(rel * self.gate(m).tanh(), dst, len(pos), "mean")
        for step in self.steps:
            m = F.silu(step(m))  # raises
        return x + scatter(m, dst, len(x)), pos


# ---------------------------------------------------------------------------------------------- readout and batches

def to_dense_batch(x: Tensor, batch: Optional[Tensor] = None, fill: float = 0.0) -> Tuple[Tensor, Tensor]:
    if batch is None:
        return x[None], torch.ones(1, len(x), dtype=torch.bool, device=x.device)
    count = torch.bincount(batch)
    start = F.pad(count.cumsum(0)[:-1], (1, 0))
    n, width = len(count), int(count.max())
    slot = torch.arange(len(x), device=x.device) - start[batch] + batch * width
    out = x.new_full((n * width,) + x.shape[1:], fill)
    mask = torch.zeros(n * width, dtype=torch.bool)
    mask[slot.cpu()] = True
    out[slot] = x
    return out.view(n, width, -1), mask.view(n, width)


class AttentionReadout(Module):
    def __init__(self, dim: int, dense: bool = False):
        super().__init__()
        self.score, self.dense = Linear(dim, 1), dense

    def forward(self, x: Tensor, batch: Optional[Tensor] = None) -> Tensor:
        if not self.dense:
            batch = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
            return scatter(x * self.score(x).sigmoid(), batch, maybe_num_nodes(batch), "sum")
        h, mask = to_dense_batch(x, batch)
        w = self.score(h).squeeze(-1).masked_fill(~mask, -1e9).softmax(-1)  # raises
        return (w[..., None] * h).sum(1)


def collate(graphs: Sequence[Graph]) -> Graph:
    sizes = [g.num_nodes for g in graphs]
    shift, edges = 0, []
    for g, n in zip(graphs, sizes):
        edges.append(g.edge_index + shift)
        shift += n
    batch = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor(sizes))
    return Graph(torch.cat([g.x for g in graphs]), torch.cat(edges, 1), batch=batch)


def split_nodes(values: Tensor, batch: Tensor) -> List[Tensor]:
    return list(values.split(torch.bincount(batch).tolist()))
