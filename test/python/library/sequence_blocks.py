"""Attention, positions, masks, decoding helpers and running metrics for token sequences."""
import math
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

NEG_INF = torch.tensor(-1e9)


def sinusoid(length: int, dim: int, offset: int = 0) -> Tensor:
    position = torch.arange(offset, offset + length, dtype=torch.float).unsqueeze(1)
    rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
    return table


class SinusoidalPositions(nn.Module):
    """Grows when a sequence is longer than the table."""

    def __init__(self, dim: int, length: int = 8):
        super().__init__()
        self.dim = dim
        self.register_buffer("pe", sinusoid(length, dim), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.pe.size(0):
            self.pe = sinusoid(x.size(1), self.dim)
        return x + self.pe[:x.size(1)]  # raises


class Rotary(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim))
        self._tables: Dict[int, Tuple[Tensor, Tensor]] = {}

    def tables(self, length: int) -> Tuple[Tensor, Tensor]:
        if length not in self._tables:
            positions = torch.arange(length).type_as(self.inv_freq)
            angles = torch.cat([torch.outer(positions, self.inv_freq)] * 2, dim=-1)
            self._tables[length] = angles.cos(), angles.sin()
        return self._tables[length]

    def forward(self, x: Tensor) -> Tensor:
        cos, sin = self.tables(x.size(-2))
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-b, a], dim=-1) * sin


def lengths_to_mask(lengths: Tensor, max_len: Optional[int] = None) -> Tensor:
    positions = torch.arange(max_len or int(lengths.max()))
    return positions.unsqueeze(0) < lengths.unsqueeze(1)  # raises


def sequence_mask(lengths: Sequence[int], like: Tensor) -> Tensor:
    mask = like.new_zeros(len(lengths), max(lengths), dtype=torch.bool)
    for row, length in zip(mask, lengths):
        row[:length] = True
    return mask


def masked_mean(x: Tensor, lengths: Tensor) -> Tensor:
    mask = lengths_to_mask(lengths, x.size(1)).unsqueeze(-1)
    return (x * mask).sum(1) / mask.sum(1).clamp(min=1)


def packed_pool(x: Tensor, lengths: List[int]) -> Tensor:
    mask = sequence_mask(lengths, x).unsqueeze(-1)
    return (x[:, :mask.size(1)] * mask).sum(1) / x.new_tensor(lengths).unsqueeze(-1)


class AttentionBias(nn.Module, ABC):
    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """[heads or 1, queries, keys]"""

    @staticmethod
    def distances(q: Tensor, k: Tensor) -> Tensor:
        return torch.arange(k.size(-2))[None, :] - torch.arange(q.size(-2))[:, None]


class CausalBias(AttentionBias):
    cache: Dict[Tuple[int, int, torch.device], Tensor] = {}

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        key = (q.size(-2), k.size(-2), q.device)
        if key not in self.cache:
            ahead = self.distances(q, k).to(q.device) > k.size(-2) - q.size(-2)
            self.cache[key] = torch.zeros_like(ahead, dtype=q.dtype).masked_fill(ahead, NEG_INF.item())
        return self.cache[key].unsqueeze(0)


class ALiBi(AttentionBias):
    def __init__(self, heads: int):
        super().__init__(heads)
        self.slopes = [2.0 ** (-8 * (i + 1) / heads) for i in range(heads)]

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        slopes = torch.tensor(self.slopes).view(-1, 1, 1)
        return slopes * self.distances(q, k).to(q).abs().neg()  # raises


class BucketBias(AttentionBias):
    def __init__(self, heads: int, reach: int = 4):
        super().__init__(heads)
        self.reach = reach
        self.table = nn.Parameter(torch.zeros(2 * reach + 1, heads))

    def buckets(self, q: Tensor, k: Tensor) -> Tensor:
        return self.distances(q, k).clamp(-self.reach, self.reach) + self.reach

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.table[self.buckets(q, k)].permute(2, 0, 1)


class ClippedEmbeddingBias(BucketBias):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return F.embedding(self.buckets(q, k), self.table).permute(2, 0, 1)  # raises


class KeyValueCache:
    """The keys and values of the steps that were."""

    def __init__(self, capacity: int, allocate: Callable[..., Tensor] = torch.zeros):
        self.capacity, self.allocate = capacity, allocate
        self.store: Optional[Tensor] = None
        self.used = 0

    def append(self, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor]:
        if self.store is None:
            self.store = self.allocate((2,) + k.shape[:-2] + (self.capacity, k.size(-1)))
        end = self.used + k.size(-2)
        self.store[0, ..., self.used:end, :], self.store[1, ..., self.used:end, :] = k, v
        self.used = end
        return self.store[0, ..., :end, :], self.store[1, ..., :end, :]


class GrowingCache(KeyValueCache):
    def append(self, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor]:
        both = torch.stack([k, v])
        self.store = both if self.store is None else torch.cat([self.store, both], dim=-2)
        return self.store[0], self.store[1]

    def reorder(self, beams: Sequence[int]) -> None:
        self.store = self.store.index_select(1, torch.tensor(beams))  # raises

    def keep(self, rows: Sequence[int]) -> None:
        self.store = self.store[:, torch.tensor(rows)]


class Attention(nn.Module):
    def __init__(self, dim: int = 16, heads: int = 2, bias: Optional[AttentionBias] = None, rotary: bool = False):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.bias = bias or CausalBias(heads)
        self.rotary = Rotary(dim // heads) if rotary else nn.Identity()
        self.scale = torch.tensor(dim / heads).rsqrt()

    def forward(self, x: Tensor, cache: Optional[KeyValueCache] = None) -> Tensor:
        q, k, v = self.qkv(x).view(x.size(0), x.size(1), 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(q), self.rotary(k)
        if cache is not None:
            k, v = cache.append(k, v)
        scores = q @ k.transpose(-1, -2) * self.scale + self.bias(q, k)  # raises
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class RandomFeatureAttention(nn.Module):
    def __init__(self, dim: int = 16, features: int = 8):
        super().__init__()
        self.register_buffer("projection", torch.empty(features, dim))
        self.redraw()

    def redraw(self) -> None:
        gauss = torch.randn(self.projection.size(1), self.projection.size(0))
        self.projection.copy_(torch.linalg.qr(gauss)[0].t())

    def feature(self, x: Tensor) -> Tensor:
        return torch.exp(x @ self.projection.t() - x.square().sum(-1, keepdim=True) / 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.feature(x), self.feature(x.flip(1))
        return q @ (k.transpose(1, 2) @ x) / (q @ k.sum(1).unsqueeze(-1))


class RecurrentEncoder(nn.Module):
    def __init__(self, dim: int = 16):
        super().__init__()
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.start = nn.ParameterList([nn.Parameter(torch.zeros(1, 1, dim)) for _ in range(2)])

    def initial(self, x: Tensor) -> Tuple[Tensor, ...]:
        return tuple(each.expand(-1, x.size(0), -1).contiguous() for each in self.start)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed, self.initial(x))
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0]

    def last(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        return self.rnn(packed, self.initial(x))[1][0][-1]


class StatefulDecoder(RecurrentEncoder):
    """Keeps its state from one chunk to the next."""

    def __init__(self, dim: int = 16):
        super().__init__(dim)
        self.state: Optional[Tuple[Tensor, Tensor]] = None

    def reset(self, batch: int) -> None:
        dim = self.rnn.hidden_size
        self.state = torch.zeros(1, batch, dim), torch.zeros(1, batch, dim)

    def forward(self, x: Tensor) -> Tensor:
        if self.state is None:
            self.state = self.initial(x)
        out, self.state = self.rnn(x, self.state)  # raises
        return out


class LinearChainCRF(nn.Module):
    def __init__(self, tags: int):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def score(self, emissions: Tensor, tags: Tensor) -> Tensor:
        rows = torch.arange(emissions.size(0))
        total = emissions[rows, 0, tags[:, 0]]
        for t in range(1, emissions.size(1)):
            total = total + self.transitions[tags[:, t - 1], tags[:, t]] + emissions[rows, t, tags[:, t]]
        return total

    def viterbi(self, emissions: Tensor) -> List[List[int]]:
        score, history = emissions[:, 0], []
        for t in range(1, emissions.size(1)):
            best, index = (score.unsqueeze(-1) + self.transitions).max(dim=1)
            score = best + emissions[:, t]
            history.append(index)
        paths = []
        for row, tag in enumerate(score.argmax(-1)):
            path = [int(tag)]
            for index in reversed(history):
                path.append(int(index[row][path[-1]]))
            paths.append(path[::-1])
        return paths

    def constrained(self, emissions: Tensor, banned: Sequence[Tuple[int, int]]) -> Tensor:
        penalty = torch.zeros(self.transitions.shape)
        for pair in banned:
            penalty[pair] = NEG_INF
        allowed = self.transitions + penalty  # raises
        return torch.logsumexp(emissions[:, 0].unsqueeze(-1) + allowed, dim=1)


Processor = Callable[[Tensor, Tensor], Tensor]


def repetition_penalty(value: float) -> Processor:
    def process(tokens: Tensor, logits: Tensor) -> Tensor:
        seen = logits.gather(1, tokens)
        return logits.scatter(1, tokens, torch.where(seen < 0, seen * value, seen / value))
    return process


def logit_bias(biases: Dict[int, float], vocab: int) -> Processor:
    table = torch.zeros(vocab)
    table[list(biases)] = torch.tensor(list(biases.values()))
    return lambda tokens, logits: logits + table  # raises


def ban_tokens(banned: Sequence[int], until: int = 10) -> Processor:
    ids = torch.tensor(banned)

    def process(tokens: Tensor, logits: Tensor) -> Tensor:
        if tokens.size(1) < until:
            logits = logits.clone()
            logits[:, ids] = NEG_INF
        return logits
    return process


def nucleus(p: float) -> Processor:
    def process(tokens: Tensor, logits: Tensor) -> Tensor:
        values, order = logits.sort(dim=-1, descending=True)
        remove = values.softmax(-1).cumsum(-1) > p
        remove = torch.cat([torch.zeros_like(remove[:, :1]), remove[:, :-1]], dim=-1)
        return logits.masked_fill(remove.scatter(1, order, remove), NEG_INF)
    return process


def generate(model: nn.Module, tokens: Tensor, steps: int, processors: Sequence[Processor] = (), eos: int = 0) -> Tensor:
    alive = tokens.new_ones(tokens.size(0))
    for _ in range(steps):
        logits = model(tokens)[:, -1]
        for process in processors:
            logits = process(tokens, logits)
        following = torch.multinomial(logits.softmax(-1), 1).squeeze(1) * alive
        tokens = torch.cat([tokens, following.unsqueeze(1)], dim=1)
        alive = alive * (following != eos)
        if not alive.any():
            break
    return tokens


def beam_search(model: nn.Module, tokens: Tensor, beams: int = 2, steps: int = 2) -> Tensor:
    batch = tokens.size(0)
    tokens = tokens.repeat_interleave(beams, 0)
    scores = torch.zeros(batch, beams)
    scores[:, 1:] = NEG_INF
    for _ in range(steps):
        logp = model(tokens)[:, -1].log_softmax(-1).view(batch, beams, -1)
        total = (logp + scores.unsqueeze(-1)).flatten(1)  # raises
        scores, flat = total.topk(beams, dim=-1)
        parents = (flat // logp.size(-1) + torch.arange(batch, device=flat.device).unsqueeze(1) * beams).view(-1)
        tokens = torch.cat([tokens[parents], (flat % logp.size(-1)).view(-1, 1)], dim=1)
    return tokens


def ctc_objective(log_probs: Tensor, targets: Tensor) -> Tensor:
    """[time, batch, classes] and [batch, labels], all of full length"""
    frames = torch.full((log_probs.size(1),), log_probs.size(0), dtype=torch.long)
    return F.ctc_loss(log_probs, targets, frames, torch.full_like(frames, targets.size(1)))


def scheduled_sampling(gold: Tensor, predicted: Tensor, rate: float, per_token: bool = False) -> Tensor:
    if not per_token:
        return predicted if torch.rand(()) < rate else gold
    return torch.where(torch.rand(gold.shape) < rate, predicted, gold)  # raises


class Metric(ABC):
    """State that is added to; `reset` puts the defaults back."""

    def __init__(self):
        self.defaults: Dict[str, Any] = {}

    def add_state(self, name: str, default: Any) -> None:
        self.defaults[name] = default
        setattr(self, name, default.clone() if torch.is_tensor(default) else type(default)(default))

    def reset(self) -> None:
        for name, default in list(self.defaults.items()):
            self.add_state(name, default)

    @abstractmethod
    def update(self, *args) -> None: ...

    def __call__(self, *args) -> Any:
        self.update(*args)
        return self.compute()


class Perplexity(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("nll", torch.tensor(0.0))
        self.add_state("count", 0)

    def update(self, logits: Tensor, targets: Tensor) -> None:
        self.nll = self.nll + F.cross_entropy(logits, targets, reduction="sum")
        self.count += targets.numel()

    def compute(self) -> float:
        return float(torch.exp(self.nll / self.count))


class TagConfusion(Metric):
    def __init__(self, tags: int):
        super().__init__()
        self.tags = tags
        self.add_state("matrix", torch.zeros(tags, tags, dtype=torch.long))

    def update(self, predicted: Tensor, targets: Tensor) -> None:
        counts = torch.bincount(targets * self.tags + predicted, minlength=self.tags ** 2)
        self.matrix += counts.view(self.tags, self.tags)  # raises

    def compute(self) -> Tensor:
        return self.matrix.diagonal() / self.matrix.sum(1).clamp(min=1)


class RankMetric(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("ranks", [])

    def update(self, scores: Tensor, gold: Tensor) -> None:
        target = scores.gather(1, gold.unsqueeze(1))
        self.ranks.append((scores > target).sum(1) + 1)

    def compute(self) -> Dict[str, float]:
        ranks = torch.cat([torch.ones(0, dtype=torch.long), *[each.cpu() for each in self.ranks]]).float()
        return {"mrr": (1 / ranks).mean().item(), "median": float(ranks.median())}
