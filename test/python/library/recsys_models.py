"""Ranking, retrieval and sequential recommenders in one small package."""
import math
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

MODELS = {}


def register(name):
    def wrap(cls):
        MODELS[name] = cls
        cls.registered_name = name
        return cls
    return wrap


@dataclass
class SparseField:
    name: str
    vocabulary: int
    dim: int = 8


@dataclass
class RecConfig:
    fields: List[SparseField] = field(default_factory=list)
    num_items: int = 40
    num_users: int = 12
    dim: int = 8
    max_len: int = 6
    device: str = "cuda:0"
    temperature: float = 0.2


def move_batch(batch, device):
    """Moves tensors in dicts, lists and tuples."""
    if torch.is_tensor(batch):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: move_batch(value, device) for key, value in batch.items()}
    return [move_batch(value, device) for value in batch] if isinstance(batch, list) else batch


class FeatureEmbedding(nn.Module):
    """One flat table for all fields, rows found through offsets."""

    def __init__(self, fields):
        super().__init__()
        sizes = [each.vocabulary for each in fields]
        self.table = nn.Embedding(sum(sizes), fields[0].dim)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        self.register_buffer("starts", torch.from_numpy(starts), persistent=False)

    def forward(self, columns):
        return self.table(columns + self.starts.unsqueeze(0))


class FieldWeights(nn.Module):
    """Pairwise weights of a field-weighted factorization machine."""

    def __init__(self, count):
        super().__init__()
        rows, columns = torch.triu_indices(count, count, offset=1)
        self.rows, self.columns = rows, columns
        self.strength = nn.Parameter(torch.ones(len(rows)))
        self.prior = 1.0 / torch.arange(1, len(rows) + 1).float()

    def pairs(self, embedded):
        return (embedded[:, self.rows] * embedded[:, self.columns]).sum(-1)

    def forward(self, embedded):
        return (self.pairs(embedded) * self.strength).sum(-1)

    def penalty(self):
        return ((self.strength - self.prior) ** 2).sum()  # raises


class RankerBase(nn.Module):
    """Template: embed, interact, and score."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = FeatureEmbedding(config.fields)

    @property
    def device(self):
        return next(self.parameters()).device

    def interact(self, embedded):
        raise NotImplementedError

    def forward(self, batch):
        return self.interact(self.embed(batch["columns"]))

    def training_loss(self, batch):
        logits = self(batch)
        return F.binary_cross_entropy_with_logits(logits, batch["label"], weight=batch.get("weight"))


@register("fwfm")
class FwFM(RankerBase):
    def __init__(self, config):
        super().__init__(config)
        self.weights = FieldWeights(len(config.fields))

    def interact(self, embedded):
        return self.weights(embedded)

    def regularized_loss(self, batch, strength=0.1):
        return self.training_loss(batch) + strength * self.weights.penalty()


@register("mmoe")
class MultiGateExperts(RankerBase):
    def __init__(self, config, experts=3, tasks=2):
        super().__init__(config)
        width = sum(each.dim for each in config.fields)
        self.places = [torch.device("cuda", index) for index in range(experts)]
        self.experts = nn.ModuleList([nn.Linear(width, 4) for _ in range(experts)])
        self.gates = nn.ModuleList([nn.Linear(width, experts) for _ in range(tasks)])
        self.towers = nn.ModuleList([nn.Linear(4, 1) for _ in range(tasks)])

    def spread(self):
        self.to(self.places[0])
        for expert, place in zip(self.experts, self.places):
            expert.to(place)
        return self

    def expert_outputs(self, flat, gather=True):
        outputs = []
        for expert, place in zip(self.experts, self.places):
            hidden = torch.relu(expert(flat.to(place, non_blocking=True)))
            outputs.append(hidden.to(flat.device) if gather else hidden)
        return outputs

    def interact(self, embedded):
        flat = embedded.flatten(1)
        stacked = torch.stack(self.expert_outputs(flat), dim=1)
        return [self.mix(flat, stacked, task) for task in range(len(self.gates))]

    def mix(self, flat, stacked, task):
        gate = self.gates[task](flat).softmax(-1).unsqueeze(-1)
        return self.towers[task]((gate * stacked).sum(1)).squeeze(-1)

    def diversity(self, batch):
        flat = self.embed(batch["columns"]).flatten(1)
        outputs = self.expert_outputs(flat, gather=False)
        total = flat.new_zeros(())
        for left, right in zip(outputs, outputs[1:]):
            total = total + F.cosine_similarity(left, right).mean()  # raises
        return total


class InterestExtractor(nn.Module):
    """GRU over a click history of varying length, as DIEN has it."""

    def __init__(self, num_items, dim):
        super().__init__()
        self.items = nn.Embedding(num_items, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def lengths(self, history):
        return (history != 0).sum(1).clamp(min=1)

    def _run(self, history, lengths):
        packed = pack_padded_sequence(self.items(history), lengths, batch_first=True, enforce_sorted=False)  # raises
        states, last = self.gru(packed)
        return pad_packed_sequence(states, batch_first=True)[0], last[0]

    def forward(self, history):
        return self._run(history, self.lengths(history).cpu())

    def last_interest(self, history):
        return self._run(history, self.lengths(history))[1]

    def attention(self, history, target):
        states, _ = self(history)
        lengths = self.lengths(history)
        scores = torch.einsum("bld,bd->bl", states, self.items(target))
        steps = torch.arange(states.size(1), device=states.device)
        scores = scores.masked_fill(steps[None] >= lengths[:, None], torch.tensor(-1e9))
        return torch.einsum("bl,bld->bd", scores.softmax(-1), states)


class NegativeQueue:
    """Item vectors of earlier batches, for in-batch negatives."""

    def __init__(self, size, dim):
        self.size = size
        self.vectors = torch.zeros(size, dim)
        self.ids = torch.full((size,), -1)
        self.head = 0

    def push(self, vectors, ids):
        count = vectors.size(0)
        stop = min(self.head + count, self.size)
        kept = stop - self.head
        self.vectors[self.head:stop] = vectors[:kept].detach()
        self.ids[self.head:stop] = ids[:kept]
        self.head = stop % self.size

    def view(self, device=None):
        filled = self.ids >= 0
        vectors, ids = self.vectors[filled], self.ids[filled]
        return move_batch([vectors, ids], device or vectors.device)


class TwoTower(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.user = nn.Embedding(config.num_users, config.dim)
        self.item = nn.Embedding(config.num_items, config.dim)
        self.queue = NegativeQueue(16, config.dim)
        self.log_q = None

    def set_popularity(self, counts: np.ndarray):
        shares = torch.as_tensor(counts / counts.sum(), dtype=torch.float32)
        self.log_q = shares.clamp(min=1e-6).log()

    def encode(self, batch):
        return F.normalize(self.user(batch["user"]), dim=-1), F.normalize(self.item(batch["item"]), dim=-1)

    def corrected_loss(self, batch):
        users, items = self.encode(batch)
        logits = users @ items.t() / self.config.temperature
        logits = logits - self.log_q[batch["item"]][None]  # raises
        return F.cross_entropy(logits, torch.arange(len(users), device=logits.device))

    def queued_loss(self, batch, mask_same=False):
        users, items = self.encode(batch)
        vectors, ids = self.queue.view(users.device)
        logits = torch.cat([users @ items.t(), users @ vectors.t()], dim=1)
        if mask_same:
            same = batch["item"].unsqueeze(1) == ids.unsqueeze(0)
            logits[:, len(items):].masked_fill_(same, -1e4)
        self.queue.push(items, batch["item"])
        return F.cross_entropy(logits, torch.arange(len(users), device=users.device))

    def queue_margin(self, batch):
        users, items = self.encode(batch)
        vectors, _ = self.queue.view()
        positive = (users * items).sum(-1)
        return F.relu(1 - positive[:, None] + users @ vectors.t()).mean()  # raises


class CausalMaskMixin:
    """Keeps causal masks per length and device."""

    _masks: Dict = {}

    def causal_mask(self, length, device):
        key = (length, device)
        if key not in self._masks:
            self._masks[key] = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        return self._masks[key]


class SASRec(CausalMaskMixin, nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.items = nn.Embedding(config.num_items, config.dim, padding_idx=0)
        self.position = nn.Embedding(config.max_len, config.dim)
        self.attention = nn.MultiheadAttention(config.dim, 2, batch_first=True)
        self.seen = defaultdict(list)

    def encode(self, history):
        steps = torch.arange(history.size(1), device=history.device)
        hidden = self.items(history) * math.sqrt(self.config.dim) + self.position(steps)
        mask = self.causal_mask(history.size(1), history.device)
        return self.attention(hidden, hidden, hidden, attn_mask=mask, need_weights=False)[0]

    def encode_reversed(self, history):
        steps = torch.arange(history.size(1) - 1, -1, -1)
        return self.items(history) + self.position(steps)  # raises

    def observe(self, user, history):
        self.seen[user].append(history.cpu())

    def recommend(self, users, history, top=3):
        scores = self.encode(history)[:, -1] @ self.items.weight.t()
        for row, user in enumerate(users):
            if self.seen[user]:
                scores[row, torch.cat(self.seen[user]).unique()] = float("-inf")
        return scores.topk(top).indices

    def bpr(self, history, positive, sampler):
        final = self.encode(history)[:, -1]
        negative = sampler.draw(len(positive)).to(positive.device)
        gap = (final * (self.items(positive) - self.items(negative))).sum(-1)
        return -F.logsigmoid(gap).mean()


class PopularitySampler:
    def __init__(self, counts, power=0.75, seed=3):
        self.weights = torch.as_tensor(counts, dtype=torch.float32) ** power
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, count):
        return torch.multinomial(self.weights, count, replacement=True, generator=self.generator)

    def uniform(self, count, device):
        return torch.randint(1, len(self.weights), (count,), generator=self.generator, device=device)  # raises


class LightGCN(nn.Module):
    """Propagation over the user-item graph."""

    def __init__(self, config, edges):
        super().__init__()
        self.split = [config.num_users, config.num_items]
        self.nodes = nn.Embedding(sum(self.split), config.dim)
        self.edges = edges
        self._adjacency: Optional[torch.Tensor] = None

    def adjacency(self):
        if self._adjacency is None:
            users, items = self.edges
            size = sum(self.split)
            both = torch.stack([torch.cat([users, items + self.split[0]]), torch.cat([items + self.split[0], users])])
            degree = torch.bincount(both[0], minlength=size).clamp(min=1).float()
            values = degree[both[0]].rsqrt() * degree[both[1]].rsqrt()
            self._adjacency = torch.sparse_coo_tensor(both, values, (size, size)).coalesce()
        return self._adjacency

    def _apply(self, fn):
        super()._apply(fn)
        self._adjacency = fn(self.adjacency())
        return self

    def propagate(self, layers=2):
        outputs = [self.nodes.weight]
        for _ in range(layers):
            outputs.append(torch.sparse.mm(self._adjacency, outputs[-1]))
        return torch.stack(outputs).mean(0).split(self.split)

    def smoothness(self):
        users, items = self.propagate(1)
        weights = torch.ones(self.edges.size(1))
        distance = (users[self.edges[0]] - items[self.edges[1]]).pow(2).sum(-1)
        return torch.dot(weights, distance)  # raises


class RetrievalIndex:
    """Blocks of item vectors, searched one after another."""

    def __init__(self, block=16):
        self.block = block
        self.blocks = OrderedDict()

    def build(self, vectors):
        for start in range(0, len(vectors), self.block):
            self.blocks[start] = vectors[start:start + self.block].detach().cpu()
        return self

    def search(self, queries, top):
        scores, ids = [], []
        for start, block in self.blocks.items():
            value, index = (queries @ block.to(queries).t()).topk(top)
            scores.append(value)
            ids.append(index + start)
        best, order = torch.cat(scores, 1).topk(top)
        return best, torch.cat(ids, 1).gather(1, order)

    def rescore(self, queries, ids):
        flat = torch.cat(list(self.blocks.values()))
        return torch.bmm(flat[ids.cpu()], queries.unsqueeze(-1)).squeeze(-1)  # raises


class RankingMetrics:
    def __init__(self, cutoffs=(1, 3)):
        self.cutoffs = cutoffs
        self.hits = None
        self.discount = 1.0 / torch.log2(torch.arange(2, 2 + max(cutoffs)).float())
        self.per_item = torch.zeros(40)

    def update(self, ranked, target):
        matched = ranked == target.unsqueeze(1)
        found = torch.stack([matched[:, :cutoff].any(1).float().sum() for cutoff in self.cutoffs])
        self.hits = found if self.hits is None else self.hits + found
        return matched

    def ndcg(self, ranked, target):
        matched = self.update(ranked, target)
        return (matched.float() @ self.discount[:matched.size(1)].type_as(self.hits)).mean()

    def coverage(self, ranked):
        counts = torch.bincount(ranked.flatten(), minlength=len(self.per_item))
        self.per_item += counts  # raises
        return (self.per_item > 0).float().mean()
