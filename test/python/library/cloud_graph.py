"""Point clouds and graphs: neighbours, messages, pooling, voxels, augmentation and codes of features."""

import abc
import itertools
import math
import operator
import weakref
from collections import ChainMap
from functools import partial, partialmethod, reduce, singledispatch
from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Tensor = torch.Tensor
CORNERS = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=3)))
AXES = dict(x=0, y=1, z=2)


def ensure(values: Union[Tensor, np.ndarray, list]) -> Tensor:
    return values if torch.is_tensor(values) else torch.as_tensor(np.asarray(values))


def neighbours(points: Tensor, count: int) -> Tensor:
    return torch.cdist(points, points).topk(count + 1, largest=False).indices[..., 1:]


def edges_of(nearest: Tensor) -> Tensor:
    rows = torch.arange(nearest.size(0)).repeat_interleave(nearest.size(1))
    return torch.stack([nearest.flatten(), rows.to(nearest)])


def edges_with_loops(nearest: Tensor) -> Tensor:
    edges = edges_of(nearest)
    loops = torch.arange(nearest.size(0)).expand(2, -1)
    return torch.hstack((edges, loops))  # raises


def farthest(points: Tensor, count: int, start: int = 0) -> Tensor:
    chosen = torch.zeros(count, dtype=torch.long)
    distance = points.new_full((len(points),), math.inf)
    chosen[0] = start
    for i in range(1, count):
        step = (points - points[chosen[i - 1]]).square().sum(-1)
        distance = torch.minimum(distance, step)
        chosen[i] = distance.argmax()
    return chosen


def thinned(points: Tensor, count: int, features: Optional[Tensor] = None):
    index = farthest(points, count)
    kept = points[index]
    if features is None:
        return kept, None
    return kept, features.take_along_dim(index[:, None], dim=0)  # raises


def grouped(points: Tensor, centres: Tensor, radius: float, count: int) -> Tensor:
    """Up to count points within a radius of each centre; the first fills what is left."""
    distance = torch.cdist(centres, points)
    index = torch.arange(points.size(0), device=points.device).expand_as(distance).clone()
    index[distance > radius] = points.size(0)
    index = index.sort(-1).values[:, :count]
    return torch.where(index == points.size(0), index[:, :1], index)


def voxel_keys(points: Tensor, size: float, grid: Tuple[int, int, int] = (16, 16, 16)) -> Tensor:
    cell = ((points - points.min(0).values) / size).long()
    stride = torch.tensor([grid[1] * grid[2], grid[2], 1])
    return (cell * stride).sum(-1)  # raises


def voxel_keys_by_axis(points, size, grid=(16, 16, 16)):
    cell = ((points - points.min(0).values) / size).long()
    return reduce(lambda key, axis: key * grid[axis] + cell[:, axis], range(1, 3), cell[:, 0])


def voxel_mean(points: Tensor, size: float) -> Tensor:
    _, place, count = torch.unique(voxel_keys_by_axis(points, size), return_inverse=True, return_counts=True)
    total = torch.zeros(len(count), points.size(1))
    return total.index_add_(0, place, points) / count[:, None]  # raises


def voxel_first(points: Tensor, size: float) -> Tensor:
    keys = voxel_keys_by_axis(points, size).cpu().numpy()
    _, index = np.unique(keys, return_index=True)
    return points[torch.from_numpy(index)]


# graphs

class Aggregate(abc.ABC):
    """Messages to nodes; what is told apart is how they are summed."""

    @abc.abstractmethod
    def __call__(self, messages: Tensor, target: Tensor, count: int) -> Tensor:
        ...


class Sum(Aggregate):
    def __call__(self, messages, target, count):
        return messages.new_zeros(count, messages.size(-1)).index_add(0, target, messages)


class Mean(Sum):
    def degree(self, target: Tensor, count: int) -> Tensor:
        return torch.bincount(target, minlength=count)

    def __call__(self, messages, target, count):
        return super().__call__(messages, target, count) / self.degree(target, count).clamp(min=1)[:, None]


class Scaled(Mean):
    """By the square root of the degree."""

    def degree(self, target, count):
        degree = torch.zeros(count)
        ones = torch.ones(len(target), dtype=degree.dtype)
        return degree.scatter_add(0, target.cpu(), ones).sqrt()

    def __call__(self, messages, target, count):
        total = Sum.__call__(self, messages, target, count)
        return total.div(self.degree(target, count).unsqueeze(1) + 1e-6)  # raises


class Softmax(Aggregate):
    def __call__(self, messages, target, count):
        weight = messages.mean(-1).exp()
        norm = torch.zeros(count, device=weight.device).scatter_add_(0, target, weight)
        return Sum()(messages * (weight / norm[target])[:, None], target, count)


AGGREGATES: Dict[str, Aggregate] = {"sum": Sum(), "mean": Mean(), "scaled": Scaled(), "softmax": Softmax()}


class Layer(nn.Module):
    """x of the nodes, edges from the first row to the second."""

    def __init__(self, width: int, aggregate: str = "sum"):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.aggregate = AGGREGATES[aggregate]

    def message(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.lin(x)[edges[0]]

    def weigh(self, messages: Tensor, edges: Tensor) -> Tensor:
        return messages

    def forward(self, x, edges):
        messages = self.weigh(self.message(x, edges), edges)
        return F.relu(self.aggregate(messages, edges[1], x.size(0)))


class DropLayer(Layer):
    chance = 0.5

    def weigh(self, messages, edges):
        kept = torch.rand(len(messages), 1) > self.chance
        return messages * kept if self.training else messages  # raises


class DropEdges(Layer):
    def forward(self, x, edges):
        if self.training:
            edges = edges[:, torch.rand(edges.size(1)) > 0.5]
        return super().forward(x, edges)


class Relational(Layer):
    def __init__(self, width, relations: int, **options):
        super().__init__(width, **options)
        self.matrices = nn.Parameter(torch.randn(relations, width, width) / width)
        self.coefficients = {n: torch.rand(width) for n in range(relations)}

    def message(self, x, edges, kind: Optional[Tensor] = None):
        kind = edges[0] % len(self.matrices) if kind is None else kind
        return torch.bmm(x[edges[0]][:, None], self.matrices[kind])[:, 0]

    def scaled(self, x: Tensor, relation: int) -> Tensor:
        return torch.addcmul(x, x, self.coefficients[relation])  # raises


class Laplacian:
    """Of a graph that stays the same; kept for each device it is asked for on."""

    def __init__(self, edges: Tensor, count: int):
        self.edges, self.count = edges.cpu(), count
        self._kept: Dict[torch.device, Tensor] = {}

    def dense(self) -> Tensor:
        adjacency = torch.zeros(self.count, self.count)
        adjacency[self.edges[0], self.edges[1]] = 1.0
        adjacency = torch.maximum(adjacency, adjacency.t())
        return torch.diag(adjacency.sum(1)) - adjacency

    def on(self, device: torch.device) -> Tensor:
        if device not in self._kept:
            self._kept[device] = self.dense().to(device)
        return self._kept[device]

    def smoothness(self, x: Tensor) -> Tensor:
        return torch.trace(x.t() @ self.on(x.device) @ x)

    def powers(self, x: Tensor, degree: int) -> Iterator[Tensor]:
        matrix = self.dense()
        for _ in range(degree):
            yield x
            x = matrix @ x  # raises

    def eigenvectors(self, count: int) -> Tensor:
        return torch.linalg.eigh(self.dense()).eigenvectors[:, 1:count + 1]

    def with_positions(self, x: Tensor, count: int = 2) -> Tensor:
        sign = torch.randint(0, 2, (count,), device=x.device) * 2 - 1
        return torch.cat([x, self.eigenvectors(count).to(x) * sign], -1)


class Readout(nn.Module):
    """One vector for each graph of a batch."""

    def __init__(self, width: int, levels=(0.25, 0.75)):
        super().__init__()
        self.gate = nn.Linear(width, 1)
        self.levels = torch.as_tensor(levels)

    def reduce(self, x: Tensor, batch: Tensor, how: str = "sum") -> Tensor:
        gated = x * self.gate(x).sigmoid()
        index = batch[:, None].expand_as(gated)
        return gated.new_zeros(int(batch.max()) + 1, x.size(1)).scatter_reduce(0, index, gated, how)

    forward = partialmethod(reduce, how="sum")
    largest = partialmethod(reduce, how="amax")

    def sizes(self, batch: Tensor) -> Tensor:
        return torch.from_numpy(np.bincount(batch.cpu().numpy()))

    def split(self, x: Tensor, batch: Tensor) -> List[Tensor]:
        return list(x.split(self.sizes(batch).tolist()))

    def average(self, x, batch):
        return self.reduce(x, batch) / self.sizes(batch)[:, None]  # raises

    def spread(self, x, batch):
        return torch.stack([part.quantile(0.5, dim=0) for part in self.split(x, batch)])

    def bands(self, x: Tensor) -> Tensor:
        level = x.sigmoid().contiguous()
        return torch.searchsorted(self.levels.to(level), level) + level.new_tensor(self.levels.tolist()).sum()


# moving clouds about

@singledispatch
def rotation(angle, axis: str = "z", device=None) -> Tensor:
    """About an axis, by a number or by a tensor of angles."""
    c, s = math.cos(angle), math.sin(angle)
    rest = [i for i in range(3) if i != AXES[axis]]
    matrix = torch.eye(3, device=device)
    matrix[rest[0], rest[0]] = matrix[rest[1], rest[1]] = c
    matrix[rest[0], rest[1]], matrix[rest[1], rest[0]] = -s, s
    return matrix


@rotation.register
def _(angle: torch.Tensor, axis: str = "z", device=None) -> Tensor:
    return torch.stack([rotation(each, axis, device) for each in angle.tolist()])


def turned(points: Tensor, angle: float, axis: str = "z") -> Tensor:
    return points @ rotation(angle, axis, points.device).t()


def turned_each(clouds: Tensor, angles: Tensor) -> Tensor:
    return torch.matmul(clouds, rotation(angles).transpose(1, 2))  # raises


def box_corners(centre: Tensor, size: Tensor) -> Tensor:
    return centre[:, None] + torch.stack([size * corner.to(size) for corner in CORNERS], 1) / 2


def inside(points: Tensor, centre: Tensor, size: Tensor) -> Tensor:
    local = (points - centre) / size
    return torch.einsum("pi,ci->pc", local, CORNERS).abs().amax(1) <= 1.5  # raises


class Jitter:
    def __init__(self, sigma: float = 0.01, generator: Optional[torch.Generator] = None):
        self.sigma = sigma
        self.generator = generator or torch.Generator()

    def noise(self, like: Tensor) -> Tensor:
        where = self.generator.device
        return torch.randn(like.shape, generator=self.generator, device=where).to(like.device)

    def __call__(self, points: Tensor) -> Tensor:
        return points + self.sigma * self.noise(points).clamp(-3, 3)

    def shuffled(self, points: Tensor) -> Tensor:
        return points[torch.randperm(len(points), generator=self.generator)]


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, points):
        return reduce(lambda each, step: step(each), self.steps, points)


class Codebook(nn.Module):
    """Features as numbers of entries; entries follow what they stand for."""

    def __init__(self, entries: int, width: int, decay: float = 0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("table", torch.randn(entries, width))
        self.register_buffer("usage", torch.ones(entries))
        self._listeners: "weakref.WeakSet" = weakref.WeakSet()

    def nearest(self, x: Tensor) -> Tensor:
        return torch.cdist(x, self.table).argmin(-1)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        code = self.nearest(x)
        found = self.table[code]
        return x + (found - x).detach(), code

    @torch.no_grad()
    def follow(self, x: Tensor) -> None:
        hot = F.one_hot(self.nearest(x), len(self.table)).to(x)
        self.usage.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.table.mul_(self.decay).add_(hot.t() @ x / self.usage[:, None], alpha=1 - self.decay)

    @torch.no_grad()
    def revive(self, x: Tensor, least: float = 1.5) -> int:
        """Entries that are hardly used take the place of some features."""
        dead = (self.usage < least).nonzero().flatten().cpu()
        fresh = x[torch.randint(len(x), (len(dead),))].cpu()
        self.table[dead] = fresh  # raises
        return len(dead)

    def restart(self) -> None:
        self.usage = torch.ones_like(self.usage)

    def perplexity(self, code: Tensor) -> Tensor:
        share = torch.bincount(code, minlength=len(self.table)) / code.numel()
        return torch.exp(-(share * (share + 1e-9).log()).sum())


def packed(values: Iterable[Tensor], **shared) -> Dict[str, Tensor]:
    """The last of what has one name wins."""
    own = {f"cloud_{i}": ensure(each) for i, each in enumerate(values)}
    return dict(ChainMap(own, {name: ensure(each) for name, each in shared.items()}))


def joined(values: List[Tensor], scale=(1.0, 1.0, 0.5)) -> Tensor:
    parts = packed(values, scale=np.float32(scale))
    scale = parts.pop("scale")
    return torch.cat(list(parts.values())) * scale  # raises


def chamfer(first: Tensor, second: Tensor) -> Tensor:
    distance = torch.cdist(first, second)
    return operator.add(*(distance.amin(dim).mean() for dim in (0, 1)))


truncated_chamfer = partial(lambda first, second, limit: torch.minimum(chamfer(first, second), limit), limit=torch.tensor(1.0))
