"""Session-based recommendation: encoders, samplers, ranking losses, neighbours, bandits and evaluation."""
from collections import deque
from dataclasses import dataclass
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

MODELS: Dict[str, type] = {}

def model(name):
    def add(cls):
        MODELS[name] = cls
        return cls
    return add

@dataclass(frozen=True)
class RecConfig:
    num_items: int = 20
    dim: int = 8
    name: str = "attention"
    steps: int = 1
    lanes: int = 3
    cache_items: bool = False
    temperature: float = 1.0

class SessionBatch(NamedTuple):
    items: torch.Tensor
    lengths: torch.Tensor
    target: torch.Tensor

    def to(self, device):
        return SessionBatch(*(x.to(device) for x in self))

    @property
    def mask(self):
        steps = torch.arange(self.items.shape[1], device=self.lengths.device)
        return steps[None] < self.lengths[:, None]

def collate(sessions: Sequence[Sequence[int]]) -> SessionBatch:
    lengths = torch.tensor([len(s) - 1 for s in sessions])
    items = pad_sequence([torch.tensor(s[:-1]) for s in sessions], batch_first=True)
    return SessionBatch(items, lengths, torch.tensor([s[-1] for s in sessions]))

class SessionModel(nn.Module):
    """encode() gives one vector a session; scores are products with the items."""

    def __init__(self, cfg: RecConfig):
        super().__init__()
        self.cfg = cfg
        self.item = nn.Embedding(cfg.num_items, cfg.dim, padding_idx=0)
        self.register_buffer("temperature", torch.tensor(cfg.temperature))
        self.build()

    def build(self):
        pass

    def encode(self, batch: SessionBatch):
        raise NotImplementedError

    def item_table(self):
        return F.normalize(self.item.weight, dim=1)

    def forward(self, batch: SessionBatch):
        return self.encode(batch) @ self.item_table().t() / self.temperature

    @torch.no_grad()
    def recommend(self, batch: SessionBatch, k=3, mask_seen=None):
        scores = self(batch)
        if mask_seen is not None:
            scores = mask_seen(scores, batch)
        return scores.topk(k, dim=1)[1]

@model("attention")
class AttentionModel(SessionModel):
    """Last click as the query of a soft attention over the session."""

    def build(self):
        self.query, self.key = nn.Linear(self.cfg.dim, self.cfg.dim), nn.Linear(self.cfg.dim, self.cfg.dim)
        self.score = nn.Linear(self.cfg.dim, 1, bias=False)

    def encode(self, batch):
        x = self.item(batch.items)
        last = x[torch.arange(len(x)), (batch.lengths - 1).cpu()]
        weight = self.score(torch.tanh(self.query(last).unsqueeze(1) + self.key(x))).squeeze(2)
        weight = weight.masked_fill(~batch.mask, -1e4).softmax(1)
        return last + (weight.unsqueeze(2) * x).sum(1)

@model("graph")
class GraphModel(SessionModel):
    """Gated network over the graph of clicks of each session."""

    def build(self):
        self.message = nn.Linear(2 * self.cfg.dim, self.cfg.dim)
        self.cell = nn.GRUCell(self.cfg.dim, self.cfg.dim)

    def session_graph(self, batch):
        rows, alias, weights = [], [], []
        size = batch.items.shape[1]
        for items, n in zip(batch.items.cpu().numpy(), batch.lengths.tolist()):
            nodes, where = np.unique(items[:n], return_inverse=True)
            edges = np.zeros((size, size), dtype=np.float32)
            np.add.at(edges, (where[:-1], where[1:]), 1.0)
            incoming = edges / np.maximum(edges.sum(0, keepdims=True), 1)
            outgoing = edges.T / np.maximum(edges.sum(1)[None], 1)
            weights.append(np.stack([incoming.T, outgoing.T]))
            rows.append(np.pad(nodes, (0, size - len(nodes))))
            alias.append(np.pad(where, (0, size - n)))
        return tuple(torch.from_numpy(np.stack(each)) for each in (rows, alias, weights))

    def encode(self, batch):
        nodes, alias, weights = self.session_graph(batch)
        hidden = self.item(nodes.to(batch.items))
        for _ in range(self.cfg.steps):
            spread = torch.cat([weights[:, 0] @ hidden, weights[:, 1] @ hidden], 2)  # raises
            update = self.cell(self.message(spread).flatten(0, 1), hidden.flatten(0, 1))
            hidden = update.view_as(hidden)
        ordered = hidden.gather(1, alias.to(hidden.device).unsqueeze(2).expand_as(hidden))
        return (ordered * batch.mask.unsqueeze(2)).sum(1) / batch.lengths.unsqueeze(1)

@model("cached")
class CachedItemModel(SessionModel):
    """Mean of the clicks; keeps the normalised items while in evaluation."""

    def build(self):
        self._table: Optional[torch.Tensor] = None

    def train(self, mode=True):
        self._table = None
        return super().train(mode)

    def neighbour_table(self):
        if self.training:
            return self.item_table()
        if self._table is None:
            self._table = self.item_table().detach()
        return self._table

    def encode(self, batch):
        x = self.item(batch.items) * batch.mask.unsqueeze(2)
        return x.sum(1) / batch.lengths.unsqueeze(1)

    def similar(self, items, k=2):
        query = F.normalize(self.item(items), dim=1)
        return (query @ self.neighbour_table().t()).topk(k, 1)[1]  # raises

@model("cached_decay")
class DecayedItemModel(CachedItemModel):
    def build(self):
        super().build()
        self.rate = nn.Parameter(torch.tensor(0.3))

    def _apply(self, fn):
        self._table = None
        return super()._apply(fn)

    def encode(self, batch):
        age = (batch.lengths.unsqueeze(1) - 1 - torch.arange(batch.items.shape[1]).to(batch.lengths)).clamp(min=0)
        weight = torch.exp(-self.rate.abs() * age) * batch.mask
        return torch.einsum("bt,btd->bd", weight / weight.sum(1, keepdim=True), self.item(batch.items))

    def similar(self, items, k=2):
        return (F.normalize(self.item(items), dim=1) @ self.neighbour_table().t()).topk(k, 1)[1]

class ParallelGRU(nn.Module):
    """Sessions run through fixed lanes; the state of a lane is cleared where a new one begins."""

    def __init__(self, cfg: RecConfig, lazy=True):
        super().__init__()
        self.cfg = cfg
        self.item = nn.Embedding(cfg.num_items, cfg.dim)
        self.gru = nn.GRU(cfg.dim, cfg.dim)
        self.state = None if lazy else torch.zeros(1, cfg.lanes, cfg.dim)

    def clear(self, fresh: Sequence[int]):
        if self.state is not None:
            self.state = self.state.detach().clone()
            self.state[:, list(fresh)] = torch.tensor(0.0)

    def forward(self, clicks, fresh=()):
        self.clear(fresh)
        out, self.state = self.gru(self.item(clicks).unsqueeze(0), self.state)  # raises
        return out.squeeze(0) @ self.item.weight.t()

def build_model(cfg: RecConfig) -> SessionModel:
    return MODELS[cfg.name](cfg)

class NegativeSampler:
    """Draws some negatives for each positive."""

    def __init__(self, num_items, count=4):
        self.num_items, self.count = num_items, count

    def _draw(self, shape):
        return torch.randint(1, self.num_items, shape)

    def sample(self, positives):
        return self._draw((len(positives), self.count)).to(positives.device)

    def log_probability(self, items):
        return torch.full(items.shape, -float(np.log(self.num_items - 1)), device=items.device)

class PopularitySampler(NegativeSampler):
    def __init__(self, counts: np.ndarray, count=4, power=0.75):
        super().__init__(len(counts), count)
        weights = torch.from_numpy(counts.astype(np.float64)) ** power
        self.weights = weights / weights.sum()

    def _draw(self, shape):
        return torch.multinomial(self.weights, int(np.prod(shape)), replacement=True).view(shape)

    def log_probability(self, items):
        return self.weights.log().float().to(items.device)[items]

class HardSampler(PopularitySampler):
    """Keeps of a larger draw those that are not among the positives."""

    def sample(self, positives):
        pool = self._draw((len(positives), self.count * 3))
        clash = pool == positives.cpu().unsqueeze(1)
        order = clash.long().argsort(1)[:, :self.count]
        return pool.gather(1, order)

class SampledLoss(nn.Module):
    def __init__(self, network: SessionModel, sampler: NegativeSampler, correct=False):
        super().__init__()
        self.network, self.sampler, self.correct = network, sampler, correct

    def forward(self, batch: SessionBatch):
        session = self.network.encode(batch)
        negatives = self.sampler.sample(batch.target)
        up = (session * self.network.item(batch.target)).sum(1, keepdim=True)
        down = torch.einsum("bd,bnd->bn", session, self.network.item(negatives))  # raises
        if self.correct:
            down = down - self.sampler.log_probability(negatives)
        return F.softplus(down - up).mean()

class InBatchLoss(nn.Module):
    """Each session takes the targets of the others as its negatives."""

    def __init__(self, kind="top1", regular=1.0):
        super().__init__()
        self.kind, self.regular = kind, torch.tensor(regular)

    def cross_entropy(self, scores):
        return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))

    def top1(self, scores):
        gap = torch.sigmoid(scores - scores.diag().unsqueeze(1)) + self.regular * torch.sigmoid(scores ** 2)
        return gap.mean()

    def bpr_max(self, scores):
        others = 1 - torch.eye(len(scores))
        weight = (scores.exp() * others)  # raises
        weight = weight / weight.sum(1, keepdim=True)
        return -(torch.sigmoid(scores.diag().unsqueeze(1) - scores) * weight).sum(1).log().mean()

    def forward(self, network, batch):
        scores = network.encode(batch) @ network.item(batch.target).t()
        return getattr(self, self.kind)(scores)

class SeenMask:
    def __init__(self, histories: Optional[List[List[int]]] = None):
        self.histories = histories

    def __call__(self, scores, batch):
        if self.histories is None:
            return scores.scatter(1, batch.items, float("-inf"))
        seen = pad_sequence([torch.tensor(h) for h in self.histories], batch_first=True)
        return scores.scatter(1, seen, float("-inf"))  # raises

    def by_pairs(self, scores):
        rows = torch.tensor([i for i, h in enumerate(self.histories) for _ in h])
        cols = torch.tensor([item for h in self.histories for item in h])
        hidden = scores.clone()
        hidden[rows, cols] = float("-inf")
        return hidden

class SessionReplay:
    """Sessions of earlier periods, mixed into the new batches."""

    def __init__(self, capacity=8, seed=0):
        self.pool = deque(maxlen=capacity)
        self.rng = np.random.default_rng(seed)

    def store(self, batch: SessionBatch):
        kept = batch.to("cpu")
        self.pool.extend(zip(kept.items, kept.lengths, kept.target))

    def draw(self, n):
        chosen = self.rng.choice(len(self.pool), size=min(n, len(self.pool)), replace=False)
        return SessionBatch(*(torch.stack(each) for each in zip(*(self.pool[i] for i in chosen))))

    def mix(self, batch: SessionBatch, n=2):
        if not self.pool:
            return batch
        old = self.draw(n)
        return SessionBatch(*(torch.cat(pair) for pair in zip(batch, old)))  # raises

    def penalty(self, network, n=2):
        old = self.draw(n).to(next(network.parameters()).device)
        return F.cross_entropy(network(old), old.target)

class SessionNeighbours:
    def __init__(self, num_items, k=2):
        self.num_items, self.k = num_items, k
        self.matrix = torch.zeros(0, num_items)

    def rows(self, batch):
        out = torch.zeros(len(batch.items), self.num_items, device=batch.items.device)
        out.scatter_(1, batch.items, 1.0)
        out[:, 0] = 0
        return F.normalize(out, dim=1)

    def fit(self, batches: Iterable[SessionBatch]):
        self.matrix = torch.cat([self.rows(b) for b in batches])
        return self

    def state(self):
        return {"matrix": self.matrix.cpu().numpy(), "k": self.k}

    @classmethod
    def restore(cls, state):
        made = cls(state["matrix"].shape[1], state["k"])
        made.matrix = torch.from_numpy(state["matrix"])
        return made

    def predict(self, batch):
        near, index = (self.rows(batch) @ self.matrix.t()).topk(self.k, 1)  # raises
        return (near.unsqueeze(2) * self.matrix[index]).sum(1)

class LinearBandit:
    """Upper confidence bounds, with one ridge regression an item."""

    def __init__(self, dim, alpha=0.5):
        self.dim, self.alpha = dim, torch.tensor(alpha)
        self.inverse: Dict[int, torch.Tensor] = {}
        self.reward: Dict[int, torch.Tensor] = {}

    def arm(self, item, like):
        if item not in self.inverse:
            self.inverse[item] = torch.eye(self.dim)
            self.reward[item] = like.new_zeros(self.dim)
        return self.inverse[item], self.reward[item]

    def learn(self, context, item, reward):
        inverse, total = self.arm(item, context)
        ax = torch.mv(inverse, context)  # raises
        self.inverse[item] = inverse - torch.outer(ax, ax) / (1 + context @ ax)
        self.reward[item] = total + reward * context

    def prior_bound(self, context):
        return self.alpha * context.norm(dim=-1)

class RankingReport:
    def __init__(self, k=5):
        self.k = k
        self.discount = 1.0 / torch.log2(torch.arange(2, k + 2).float())
        self.total, self.count = torch.zeros(3), 0

    def hits(self, top, target):
        return (top[:, :self.k] == target.unsqueeze(1)).float()

    def update(self, top, target):
        hits = self.hits(top, target).cpu()
        reciprocal = hits / torch.arange(1, self.k + 1)
        self.total += torch.stack([hits.sum(), reciprocal.sum(), (hits * self.discount).sum()])
        self.count += len(target)

    def compute(self):
        return dict(zip(("recall", "mrr", "ndcg"), (self.total / max(self.count, 1)).tolist()))

    def per_session(self, top, target):
        return self.hits(top, target) @ self.discount  # raises

class Catalogue:
    def __init__(self, names: Sequence[str]):
        self.names = np.array(names)

    def explain(self, top):
        return [", ".join(self.names[row]) for row in top.tolist()]

    def label(self, top):
        return self.names[np.asarray(top)]  # raises
