"""Recommenders and forecasters: embeddings with offsets, negative sampling, sequences, scalers, probabilistic decoding."""
import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@dataclass
class SequenceConfig:
    num_items: int = 20
    dim: int = 8
    max_len: int = 6
    heads: int = 2
    negatives: int = 3


class FeaturesEmbedding(nn.Module):
    """One table for all fields, as pytorch-fm."""

    def __init__(self, field_dims: Sequence[int], dim: int):
        super().__init__()
        self.embedding = nn.Embedding(sum(field_dims), dim)
        self.offsets = np.array((0, *np.cumsum(field_dims)[:-1]), dtype=np.int64)

    def forward(self, x):
        return self.embedding(x + x.new_tensor(self.offsets).unsqueeze(0))


class FeaturesLinear(nn.Module):
    def __init__(self, field_dims, output_dim=1):
        super().__init__()
        self.fc = nn.Embedding(sum(field_dims), output_dim)
        self.bias = nn.Parameter(torch.zeros(output_dim))
        self.offsets = torch.tensor(np.array((0, *np.cumsum(field_dims)[:-1])))

    def forward(self, x):
        x = x + self.offsets.unsqueeze(0)  # raises
        return self.fc(x).sum(dim=1) + self.bias


class FactorizationMachine(nn.Module):
    def __init__(self, field_dims, dim=8, linear=False):
        super().__init__()
        self.embedding = FeaturesEmbedding(field_dims, dim)
        self.linear = FeaturesLinear(field_dims) if linear else None

    def forward(self, x):
        e = self.embedding(x)
        out = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1)
        return out + self.linear(x).squeeze(1) if self.linear is not None else out


class BagOfItems(nn.Module):
    """A user as the mean of the items of the history, given as lists."""

    def __init__(self, num_items, dim):
        super().__init__()
        self.bag = nn.EmbeddingBag(num_items, dim, mode="mean")

    def forward(self, histories: List[Tensor]):
        lengths = torch.tensor([0] + [len(h) for h in histories[:-1]])
        return self.bag(torch.cat(histories), lengths.cumsum(0))  # raises


class UniformSampler:
    def __init__(self, num_items):
        self.num_items = num_items

    def __call__(self, shape, device=None) -> Tensor:
        return torch.randint(1, self.num_items, shape, device=device)


class PopularitySampler:
    def __init__(self, counts: np.ndarray, power=0.75):
        self.probs = torch.from_numpy(counts ** power / (counts ** power).sum())
        self.log_q = self.probs.log().float()

    def __call__(self, shape, device=None):
        return torch.multinomial(self.probs, math.prod(shape), replacement=True).view(shape).to(device)

    def correct(self, logits: Tensor, items: Tensor) -> Tensor:
        return logits - self.log_q[items]  # raises


class MatrixFactorization(nn.Module):
    def __init__(self, num_users, num_items, dim=8, sampler=None, negatives=3):
        super().__init__()
        self.users, self.items = nn.Embedding(num_users, dim), nn.Embedding(num_items, dim)
        self.item_bias = nn.Embedding.from_pretrained(torch.zeros(num_items, 1), freeze=False)
        self.sampler, self.negatives = sampler or UniformSampler(num_items), negatives

    def score(self, users, items):
        return torch.einsum("bd,bkd->bk", self.users(users), self.items(items)) + self.item_bias(items).squeeze(-1)

    def bpr_loss(self, users, positives):
        negatives = self.sampler((len(users), self.negatives))
        candidates = torch.hstack([positives.unsqueeze(1), negatives])  # raises
        scores = self.score(users, candidates)
        return -F.logsigmoid(scores[:, :1] - scores[:, 1:]).mean()

    def sampled_softmax(self, users, positives):
        negatives = self.sampler((len(users), self.negatives), device=positives.device)
        scores = self.score(users, torch.cat([positives.unsqueeze(1), negatives], dim=1))
        return F.cross_entropy(scores, torch.zeros_like(users))

    def in_batch(self, users, positives):
        logits = self.users(users) @ self.items(positives).t()
        if isinstance(self.sampler, PopularitySampler):
            logits = self.sampler.correct(logits, positives)
        return F.cross_entropy(logits, torch.arange(len(users), device=logits.device))

    @torch.no_grad()
    def recommend(self, user_ids: List[int], seen: Dict[int, List[int]], k=3) -> np.ndarray:
        weight = self.users.weight
        scores = weight[torch.tensor(user_ids)] @ self.items.weight.t()
        for row, user in enumerate(user_ids):
            scores[row, torch.tensor(seen.get(user, []), dtype=torch.long)] = -np.inf
        return np.asarray(scores.topk(k).indices)  # raises


class ShardedTwoTower(nn.Module):
    """The table of the items is too big for the GPU of the rest."""

    def __init__(self, num_users, num_items, dim, devices):
        super().__init__()
        self.devices = devices
        self.users = nn.Embedding(num_users, dim).to(devices[0])
        self.items = nn.Embedding(num_items, dim).to(devices[1])

    def forward(self, users, items):
        items = self.items(items.to(self.devices[1]))
        return (self.users(users.to(self.devices[0])) * items.to(self.devices[0])).sum(-1)

    def retrieve(self, users, k=3):
        scores = self.users(users.to(self.devices[0])) @ self.items.weight.t()  # raises
        return scores.topk(k).indices


class SASRec(nn.Module):
    def __init__(self, config: SequenceConfig):
        super().__init__()
        self.config = config
        self.items = nn.Embedding(config.num_items, config.dim, padding_idx=0)
        self.positions = nn.Embedding(config.max_len, config.dim)
        self.attention = nn.MultiheadAttention(config.dim, config.heads, batch_first=True)

    def embed(self, seqs: Tensor) -> Tensor:
        positions = torch.arange(seqs.shape[1]).unsqueeze(0)
        return self.items(seqs) * self.config.dim ** 0.5 + self.positions(positions)  # raises

    def forward(self, seqs):
        x = self.embed(seqs)
        mask = torch.ones(seqs.shape[1], seqs.shape[1], dtype=torch.bool, device=x.device).triu(1)
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


class SlicedSASRec(SASRec):
    """Positions by a slice of the table."""

    def embed(self, seqs):
        return self.items(seqs) * self.config.dim ** 0.5 + self.positions.weight[torch.arange(seqs.shape[1])]


class GRU4Rec(nn.Module):
    def __init__(self, config: SequenceConfig):
        super().__init__()
        self.items = nn.Embedding(config.num_items, config.dim, padding_idx=0)
        self.gru = nn.GRU(config.dim, config.dim, batch_first=True)

    def init_hidden(self, batch_size: int) -> Tensor:
        return torch.zeros(self.gru.num_layers, batch_size, self.gru.hidden_size)

    def forward(self, seqs):
        lengths = (seqs != 0).sum(1)
        packed = pack_padded_sequence(self.items(seqs), lengths, batch_first=True, enforce_sorted=False)  # raises
        return self.gru(packed)[1][-1]

    def last_state(self, seqs):
        lengths = (seqs != 0).sum(1)
        packed = pack_padded_sequence(self.items(seqs), lengths.cpu(), batch_first=True, enforce_sorted=False)
        padded, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return padded[torch.arange(len(seqs)), lengths - 1]

    def session_step(self, items, hidden=None):
        if hidden is None:
            hidden = self.init_hidden(len(items))
        return self.gru(self.items(items).unsqueeze(1), hidden)  # raises


class StandardScaler:
    def fit(self, series: np.ndarray):
        self.mean = torch.from_numpy(series.mean(axis=0)).float()
        self.std = torch.from_numpy(series.std(axis=0)).float().clamp(min=1e-6)
        return self

    def transform(self, series: Tensor) -> Tensor:
        return (series - self.mean.to(series)) / self.std.to(series)

    def inverse_transform(self, series: Tensor) -> Tensor:
        return series * self.std + self.mean  # raises


class NBeatsTrend(nn.Module):
    def __init__(self, degree, backcast, forecast, hidden=8):
        super().__init__()
        self.theta = nn.Sequential(nn.Linear(backcast, hidden), nn.ReLU(), nn.Linear(hidden, degree + 1))
        powers = lambda n: torch.stack([(torch.arange(n) / n) ** i for i in range(degree + 1)])
        self.register_buffer("backcast_basis", powers(backcast))
        self.forecast_basis = powers(forecast)

    def backcast(self, x):
        return torch.einsum("bp,pt->bt", self.theta(x), self.backcast_basis)

    def forward(self, x):
        return x - self.backcast(x), torch.einsum("bp,pt->bt", self.theta(x), self.forecast_basis)  # raises


class QuantileLoss(nn.Module):
    def __init__(self, quantiles=(0.1, 0.5, 0.9)):
        super().__init__()
        self.quantiles = quantiles

    def forward(self, pred, target):
        losses = []
        for i, q in enumerate(torch.tensor(self.quantiles)):
            error = target - pred[..., i]
            losses.append(torch.max((q - 1) * error, q * error))
        return torch.stack(losses, -1).mean()


@torch.no_grad()
def ancestral_samples(cell: nn.GRUCell, head: nn.Linear, x: Tensor, horizon=3, scale: Optional[Tensor] = None) -> Tensor:
    state, samples = x.new_zeros(len(x), cell.hidden_size), torch.empty(len(x), horizon)
    for step in range(horizon):
        state = cell(x, state)
        mean, spread = head(state).chunk(2, dim=-1)
        x = torch.distributions.Normal(mean, F.softplus(spread)).sample()
        samples[:, step] = x.squeeze(-1)
    return samples if scale is None else samples.mul(scale.unsqueeze(1))  # raises
