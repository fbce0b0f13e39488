"""Contrastive learning with memories: queues, banks, prototypes, teachers, samplers."""
import copy
import math
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import partial
from typing import Callable, Deque, Dict, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class MemoryConfig:
    dim: int = 8
    in_features: int = 12
    size: int = 32
    temperature: float = 0.2
    momentum: float = 0.9
    num_negatives: int = 6
    num_prototypes: int = 5
    num_classes: int = 3
    queue_start: int = 2
    hard_negatives: int = 0


def normalized(tensor: torch.Tensor) -> torch.Tensor:
    return F.normalize(tensor, dim=-1)


def make_encoder(config: MemoryConfig) -> nn.Module:
    return nn.Sequential(nn.Linear(config.in_features, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, config.dim))


class Ring:
    def __init__(self, size: int):
        self.size, self.position, self.seen = size, 0, 0

    def take(self, count: int) -> torch.Tensor:
        index = (torch.arange(count) + self.position) % self.size
        self.position = int(index[-1] + 1) % self.size
        self.seen = min(self.size, self.seen + count)
        return index


class FeatureQueue(nn.Module):
    def __init__(self, config: MemoryConfig):
        super().__init__()
        self.ring = Ring(config.size)
        self.allocate(config)

    def allocate(self, config):
        self.register_buffer("features", normalized(torch.randn(config.size, config.dim)))

    @torch.no_grad()
    def push(self, keys):
        self.features[self.ring.take(keys.size(0))] = keys.detach()

    def logits(self, query):
        return query @ self.features.clone().t()


class LabelledQueue(FeatureQueue):
    """Also keeps the classes of the keys."""

    def allocate(self, config):
        super().allocate(config)
        self.labels = torch.full((config.size,), -1, dtype=torch.long)

    def push_labelled(self, keys, labels):
        rows = self.ring.take(keys.size(0))
        with torch.no_grad():
            self.features[rows] = keys.detach()
        self.labels[rows] = labels.cpu()

    def histogram(self):
        return torch.bincount(self.labels[self.labels >= 0]).tolist()

    def positives(self, labels):
        return torch.eq(labels.view(-1, 1), self.labels.view(1, -1))  # raises


class HalfQueue(FeatureQueue):
    scale = 127.0

    def allocate(self, config):
        start = normalized(torch.randn(config.size, config.dim))
        self.codes = (start * self.scale).round().to(torch.int8)

    def push(self, keys):
        self.codes[self.ring.take(keys.size(0))] = (keys.detach() * self.scale).round().to(torch.int8).cpu()

    def logits(self, query):
        return torch.einsum("bd,kd->bk", query, self.codes.float() / self.scale)  # raises


class MomentumTeacher:
    """Slow copy of an encoder; subclasses say where the copy lives."""

    def __init__(self, momentum: float):
        self.momentum = momentum

    def teacher(self) -> nn.Module:
        raise NotImplementedError

    @torch.no_grad()
    def follow(self, student: nn.Module):
        for slow, fast in zip(self.teacher().parameters(), student.parameters()):
            slow.copy_(self.momentum * slow + (1 - self.momentum) * fast.to(slow.device))

    @torch.no_grad()
    def __call__(self, inputs):
        return normalized(self.teacher()(inputs))


class LazyTeacher(MomentumTeacher):
    """Copied at the first use."""

    def __init__(self, student, momentum=0.9):
        super().__init__(momentum)
        self._student, self._copy = student, None

    def teacher(self):
        if self._copy is None:
            self._copy = copy.deepcopy(self._student).requires_grad_(False)
        return self._copy


class MoCo(nn.Module):
    def __init__(self, config: MemoryConfig, queue: Optional[FeatureQueue] = None):
        super().__init__()
        self.config = config
        self.encoder = make_encoder(config)
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.queue = queue or FeatureQueue(config)

    @torch.no_grad()
    def keys(self, inputs):
        order = torch.randperm(inputs.size(0))
        shuffled = normalized(self.key_encoder(inputs[order]))
        return shuffled[order.argsort()]

    def hard(self, query, logits):
        worst = logits.topk(self.config.hard_negatives, dim=1).indices
        hard = self.queue.features[worst]
        share = torch.rand(hard.size(0), hard.size(1), 1)
        mixed = normalized(torch.lerp(hard, query.detach().unsqueeze(1).expand_as(hard), share))  # raises
        return torch.einsum("bd,bkd->bk", query, mixed)

    def forward(self, view, other):
        query, keys = normalized(self.encoder(view)), self.keys(other)
        parts = [(query * keys).sum(1, keepdim=True), self.queue.logits(query)]
        if self.config.hard_negatives:
            parts.append(self.hard(query, parts[1]))
        logits = torch.cat(parts, 1) / self.config.temperature
        self.queue.push(keys)
        return F.cross_entropy(logits, logits.new_zeros(logits.size(0), dtype=torch.long))


class SymmetricMoCo(MoCo):
    """No queue: the other samples of the batch are the negatives (v3)."""

    def __init__(self, config):
        super().__init__(config)
        self.teachers = [copy.deepcopy(self.encoder).requires_grad_(False)]

    def side(self, view, other):
        query = normalized(self.encoder(view))
        with torch.no_grad():
            keys = normalized(self.teachers[0](other))  # raises
        logits = query @ keys.t() / self.config.temperature
        return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))

    def forward(self, view, other):
        return self.side(view, other) + self.side(other, view)


class DistilledMoCo(MoCo):
    """Keys of a lazily copied teacher."""

    def __init__(self, config):
        super().__init__(config)
        self.lazy = LazyTeacher(self.encoder, config.momentum)

    def keys(self, inputs):
        self.lazy.follow(self.encoder)
        return self.lazy(inputs)


class AliasSampler:
    """O(1) draws from a fixed distribution."""

    def __init__(self, probabilities: Sequence[float]):
        scaled = np.asarray(probabilities, dtype=np.float64)
        scaled = scaled / scaled.sum() * len(scaled)
        alias = np.arange(len(scaled))
        small, large = list(np.where(scaled < 1)[0]), list(np.where(scaled >= 1)[0])
        while small and large:
            low, high = small.pop(), large[-1]
            alias[low] = high
            scaled[high] -= 1 - scaled[low]
            if scaled[high] < 1:
                small.append(large.pop())
        self.threshold, self.alias = torch.from_numpy(scaled), torch.from_numpy(alias)

    def draw(self, shape, device):
        column = torch.randint(len(self.alias), shape)
        keep = torch.rand(shape) < self.threshold[column]
        return torch.where(keep, column, self.alias[column]).to(device)

    def probability(self, indices):
        own = self.threshold.clamp(max=1).float()
        return torch.take(own, indices) / len(self.alias)  # raises


class InstanceMemory(nn.Module):
    """Noise contrastive estimation over a bank with a row for each sample."""

    def __init__(self, config: MemoryConfig, popularity: Optional[Sequence[float]] = None):
        super().__init__()
        self.config = config
        self.register_buffer("bank", normalized(torch.randn(config.size, config.dim)))
        self.sampler = AliasSampler(popularity if popularity is not None else [1.0] * config.size)
        self.z = torch.tensor(-1.0)

    def scores(self, features, index):
        negatives = self.sampler.draw((len(index), self.config.num_negatives), self.bank.device)
        rows = torch.cat([index.view(-1, 1).to(self.bank.device), negatives], dim=1)
        return torch.exp((self.bank[rows] @ features.unsqueeze(2)).squeeze(2) / self.config.temperature)

    def forward(self, features, index):
        scores = self.scores(features, index)
        if self.z < 0:
            self.z = scores.detach().mean() * self.config.size
        ratio = scores / self.z
        noise = self.config.num_negatives / self.config.size
        return -(ratio[:, 0] / (ratio[:, 0] + noise)).log().mean() - (noise / (ratio[:, 1:] + noise)).log().mean()

    @torch.no_grad()
    def update(self, features, index):
        index = index.to(self.bank.device)
        mixed = self.config.momentum * self.bank[index] + (1 - self.config.momentum) * features
        self.bank.index_copy_(0, index, normalized(mixed))


class HostMemory:
    """Same as the bank, for data sets that are too big."""

    def __init__(self, config: MemoryConfig):
        self.config = config
        self.bank = normalized(torch.randn(config.size, config.dim))

    def rows(self, index):
        return self.bank[index.cpu()]

    def similarity(self, features, index):
        return (features * self.rows(index).to(features)).sum(-1)

    def update(self, features, index):
        fresh = self.rows(index).mul_(self.config.momentum)
        fresh.add_(features.detach(), alpha=1 - self.config.momentum)  # raises
        self.bank[index.cpu()] = normalized(fresh)


class NTXent(nn.Module):
    def __init__(self, temperature=0.2, decoupled=False):
        super().__init__()
        self.temperature, self.decoupled = temperature, decoupled

    def forward(self, a, b):
        both, count = normalized(torch.cat([a, b])), len(a)
        sim = both @ both.t() / self.temperature
        own = torch.eye(2 * count, dtype=torch.bool)
        partner = own.roll(count, dims=1)
        positive = sim[partner]
        if self.decoupled:
            rest = sim.masked_fill(own | partner, -math.inf)  # raises
        else:
            rest = sim[~own].view(2 * count, -1)
        return (rest.logsumexp(1) - positive).mean()


class Prototypes(nn.Module):
    """SwAV: swapped assignments with a queue which starts after some epochs."""

    def __init__(self, config: MemoryConfig, iterations=3):
        super().__init__()
        self.config, self.iterations = config, iterations
        self.layer = nn.Linear(config.dim, config.num_prototypes, bias=False)
        self.queue: Optional[torch.Tensor] = None
        self.epoch = 0

    def start_epoch(self):
        self.epoch += 1
        if self.epoch >= self.config.queue_start and self.queue is None:
            self.queue = torch.zeros(self.config.size, self.config.dim)

    @torch.no_grad()
    def assign(self, scores):
        q = torch.exp(scores / 0.05).t()
        q /= q.sum()
        rows, columns = q.shape
        for _ in range(self.iterations):
            q /= q.sum(1, keepdim=True) * rows
            q /= q.sum(0, keepdim=True) * columns
        return (q * columns).t()

    def codes(self, features, scores):
        if self.queue is None:
            return self.assign(scores.detach())
        past = torch.mm(self.queue, self.layer.weight.detach().t())  # raises
        self.queue = torch.cat([features.detach(), self.queue])[:self.config.size]
        return self.assign(torch.cat([scores.detach(), past]))[:len(scores)]

    def forward(self, a, b):
        a, b = normalized(a), normalized(b)
        first, second = self.layer(a), self.layer(b)
        loss = -(self.codes(a, first) * second.log_softmax(1)).sum(1).mean()
        return loss - (self.assign(second.detach()) * first.log_softmax(1)).sum(1).mean()


class ClassCentroids(nn.Module):
    def __init__(self, config: MemoryConfig):
        super().__init__()
        self.config = config
        self.register_buffer("centroids", torch.zeros(config.num_classes, config.dim))

    def sums(self, features, labels):
        total = torch.zeros(self.config.num_classes, features.size(1))
        return total.index_add(0, labels, features)  # raises

    def means(self, features, labels):
        one_hot = F.one_hot(labels, self.config.num_classes).to(features.dtype)
        return one_hot.t() @ features / one_hot.sum(0).clamp(min=1).unsqueeze(1)

    def update(self, features, labels, exact=False):
        fresh = self.sums(features, labels) if exact else self.means(features, labels)
        self.centroids.lerp_(fresh.detach(), 1 - self.config.momentum)
        return self.centroids


class ClassStore:
    """Some features of each class."""

    def __init__(self, per_class=4):
        self.rows: Dict[int, Deque[torch.Tensor]] = defaultdict(partial(deque, maxlen=per_class))

    def add(self, features, labels):
        for feature, label in zip(features.detach().cpu(), labels.tolist()):
            self.rows[label].append(feature)

    def stacked(self, like: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
        labels = torch.tensor([label for label, rows in self.rows.items() for _ in rows])
        features = torch.stack([row for rows in self.rows.values() for row in rows])
        return (features, labels) if like is None else (features.to(like), labels.to(like.device))

    def loss(self, features, labels, temperature=0.2):
        stored, classes = self.stacked(like=features)
        same = labels.unsqueeze(1).eq(classes).float()
        log_p = (features @ stored.t() / temperature).log_softmax(1)
        return -((log_p * same).sum(1) / same.sum(1).clamp(min=1)).mean()

    def nearest_class(self, features):
        stored, classes = self.stacked()
        return classes[torch.cdist(features, stored).argmin(1).cpu()]  # raises


class KNNMonitor:
    def __init__(self, k=3, num_classes=3):
        self.k, self.num_classes = k, num_classes

    def build(self, batches, encode: Callable):
        pairs = [(normalized(encode(inputs)).detach(), labels) for inputs, labels in batches]
        self.features, self.labels = (torch.cat(column) for column in zip(*pairs))
        return self

    def votes(self, features):
        value, index = (normalized(features) @ self.features.t()).topk(self.k, dim=1)
        ballot = torch.zeros(len(features), self.num_classes, device=value.device)
        return ballot.scatter_add_(1, self.labels[index], value.exp())

    def accuracy(self, features, labels):
        wrong = np.flatnonzero(self.votes(features).argmax(1).cpu().numpy() != np.asarray(labels))  # raises
        return 1 - len(wrong) / len(labels)

    def error(self, features, labels):
        return self.votes(features).argmax(1).ne(labels).float().mean().item()


def concat_all(shards: Sequence[torch.Tensor], output_device: Union[str, torch.device, None] = None) -> torch.Tensor:
    """Features of all replicas."""
    target = torch.device(output_device) if output_device is not None else shards[0].device
    return torch.cat([shard.to(target, non_blocking=True) for shard in shards])


def uniformity(shards: Sequence[torch.Tensor], t=2.0) -> torch.Tensor:
    losses = [torch.pdist(normalized(shard)).pow(2).mul(-t).exp().mean() for shard in shards]
    return sum(loss * len(shard) for loss, shard in zip(losses, shards)) / sum(map(len, shards))  # raises
