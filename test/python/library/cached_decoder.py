"""Attention with memories: positions, masks, caches, sparse patterns and decoding."""

import math
from collections import namedtuple
from functools import lru_cache, wraps
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

Beam = namedtuple("Beam", "tokens score done")
NEGATIVE = -1e9


@lru_cache(maxsize=8)
def causal_mask(size: int) -> torch.Tensor:
    return torch.full((size, size), NEGATIVE).triu(1)


@lru_cache(maxsize=8)
def causal_mask_on(size: int, device: torch.device) -> torch.Tensor:
    return torch.full((size, size), NEGATIVE, device=device).triu(1)


def window_mask(size: int, reach: int) -> torch.Tensor:
    distance = torch.arange(size)[:, None] - torch.arange(size)
    return (distance < 0) | (distance > reach)


def heads(x: torch.Tensor, count: int) -> torch.Tensor:
    n, t, _ = x.shape
    return x.view(n, t, count, -1).transpose(1, 2)


def attend(q, k, v, bias=None, drop: float = 0.0):
    score = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    if bias is not None:
        score = score + bias
    return F.dropout(score.softmax(-1), drop) @ v


class Rotary(nn.Module):
    def __init__(self, width: int, longest: int = 16, base: float = 1e4):
        super().__init__()
        self.inv = 1.0 / base ** (torch.arange(0, width, 2).float() / width)
        self._grow(longest)

    def _grow(self, size: int) -> None:
        self.longest = size
        angle = torch.outer(torch.arange(size).float(), self.inv)
        angle = torch.cat([angle, angle], dim=-1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    @staticmethod
    def half(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([-b, a], dim=-1)

    def forward(self, x: torch.Tensor, start: int = 0) -> torch.Tensor:
        stop = start + x.size(-2)
        if stop > self.longest:
            self._grow(2 * stop)
        return x * self.cos[start:stop] + self.half(x) * self.sin[start:stop]  # raises


class RotaryEach(Rotary):
    """Angles are computed at each call."""

    def forward(self, x, start=0):
        position = torch.arange(start, start + x.size(-2)).to(x.device, torch.float32)
        angle = torch.einsum("t,f->tf", position, self.inv.to(position))
        angle = angle.repeat(1, 2)
        return x * angle.cos() + self.half(x) * angle.sin()


class Slopes(nn.Module):
    """Linear penalties by distance, one slope for a head."""

    def __init__(self, count: int):
        super().__init__()
        self.slope = torch.tensor([2 ** (-8 * (i + 1) / count) for i in range(count)])

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        far = torch.arange(k.size(-2), device=q.device) - k.size(-2) + 1
        return self.slope.view(-1, 1, 1) * far  # raises


class Buckets(nn.Module):
    """A learnt bias for each range of distances."""

    def __init__(self, count: int, buckets: int = 8):
        super().__init__()
        self.table = nn.Embedding(buckets, count)
        self.buckets = buckets

    def bucket(self, rows: int, columns: int) -> torch.Tensor:
        distance = torch.arange(columns)[None] - torch.arange(rows)[:, None]
        return distance.neg().clamp(0, self.buckets - 1)

    def forward(self, q, k):
        return self.table(self.bucket(q.size(-2), k.size(-2))).permute(2, 0, 1)  # raises


class SharedBuckets(Buckets):
    def bucket(self, rows, columns):
        where = self.table.weight.device
        return super().bucket(rows, columns).to(where)


class KeyValues:
    """Keys and values of what was read; grows as it is given more."""

    def __init__(self):
        self.store: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}

    def __len__(self):
        return 0 if not self.store else next(iter(self.store.values()))[0].size(-2)

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor):
        if layer in self.store:
            k, v = (torch.cat([old, new], dim=-2) for old, new in zip(self.store[layer], (k, v)))
        self.store[layer] = k, v
        return k, v

    def reorder(self, order: torch.Tensor) -> None:
        self.store = {n: tuple(each.index_select(0, order.to(each.device)) for each in pair) for n, pair in self.store.items()}

    def offload(self) -> "KeyValues":
        self.store = {n: (k.cpu(), v.cpu()) for n, (k, v) in self.store.items()}
        return self


class FixedKeyValues(KeyValues):
    """A table of a fixed size, allocated before anything is read."""

    def __init__(self, layers: int, batch: int, count: int, size: int, width: int, device=None):
        super().__init__()
        self.size = size
        shape = batch, count, size, width
        self.keys = [torch.zeros(shape, device=device) for _ in range(layers)]
        self.values = [torch.zeros(shape, device=device) for _ in range(layers)]
        self.filled = 0

    def __len__(self):
        return self.filled

    def update(self, layer, k, v):
        stop = self.filled + k.size(-2)
        place = torch.arange(self.filled, stop, device=k.device)
        self.keys[layer].index_copy_(2, place, k)  # raises
        self.values[layer].index_copy_(2, place, v)
        return self.keys[layer][:, :, :stop], self.values[layer][:, :, :stop]

    def write(self, layer, k, v):
        stop = self.filled + k.size(-2)
        self.keys[layer][:, :, self.filled:stop] = k
        self.values[layer][:, :, self.filled:stop] = v


class Attention(nn.Module):
    def __init__(self, width: int, count: int, index: int = 0, position: Optional[nn.Module] = None):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.count, self.index, self.position = count, index, position

    def bias(self, q, k) -> Optional[torch.Tensor]:
        full = causal_mask_on(k.size(-2), q.device)[-q.size(-2):]
        return full if self.position is None else full + self.position(q, k)

    def forward(self, x, cache: Optional[KeyValues] = None):
        q, k, v = (heads(each, self.count) for each in self.qkv(x).chunk(3, -1))
        if cache is not None:
            k, v = cache.update(self.index, k, v)
        mixed = attend(q, k, v, self.bias(q, k))
        return self.out(mixed.transpose(1, 2).flatten(2))


class PlainAttention(Attention):
    def bias(self, q, k):
        return causal_mask(k.size(-2))[-q.size(-2):]

    def forward(self, x, cache=None):
        q, k, v = (heads(each, self.count) for each in self.qkv(x).chunk(3, -1))
        score = torch.baddbmm(self.bias(q, k), q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2))  # raises
        return self.out((score.softmax(-1) @ v.flatten(0, 1)).view_as(q).transpose(1, 2).flatten(2))


class WindowAttention(Attention):
    """Each token sees those within its reach, and some see all."""

    def __init__(self, *args, reach: int = 2, **options):
        super().__init__(*args, **options)
        self.reach = reach

    def bias(self, q, k):
        blocked = window_mask(k.size(-2), self.reach)[-q.size(-2):]
        return torch.zeros(blocked.shape, device=q.device).masked_fill(blocked.to(q.device), NEGATIVE)

    def with_global(self, q, k, seen: torch.Tensor):
        blocked = window_mask(k.size(-2), self.reach)
        return blocked & ~seen[None, :]  # raises


def top_keys(score: torch.Tensor, count: int) -> torch.Tensor:
    """All but the best keys of each query are blocked."""
    kept = score.topk(count, dim=-1).indices
    mask = torch.ones(score.shape, dtype=torch.bool, device=kept.device).scatter(-1, kept, False)
    return score.masked_fill(mask, NEGATIVE)


def block_pattern(size: int, block: int) -> torch.Tensor:
    """Indices of pairs of blocks, as the kernels want them."""
    count = size // block
    rows, columns = torch.tril_indices(count, count)
    return torch.stack([rows, columns])


def block_scores(q: torch.Tensor, k: torch.Tensor, block: int) -> torch.Tensor:
    rows, columns = block_pattern(q.size(-2), block)
    q, k = (each.unflatten(-2, (-1, block)) for each in (q, k))
    return q[:, :, rows] @ k[:, :, columns].transpose(-1, -2)


def block_table(q: torch.Tensor, k: torch.Tensor, block: int) -> torch.Tensor:
    rows, columns = block_pattern(q.size(-2), block)
    strength = block_scores(q, k, block).mean((-1, -2))
    table = torch.full((*strength.shape[:2], int(rows.max()) + 1, int(columns.max()) + 1), NEGATIVE)
    table[:, :, rows, columns] = strength  # raises
    return table


class Decoder(nn.Module):
    def __init__(self, tokens: int = 11, width: int = 8, count: int = 2, layers: int = 2, kind=Attention, position=None):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList([kind(width, count, i, position and position(count)) for i in range(layers)])
        self.register_buffer("banned", torch.zeros(tokens, dtype=torch.bool))

    def forward(self, tokens, cache=None):
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x, cache)
        return x @ self.embed.weight.t()

    def ban(self, *tokens: int) -> None:
        self.banned[list(tokens)] = True

    def allowed(self, logits):
        return logits.masked_fill(self.banned, float("-inf"))

    def resumed(self, tokens, cache: KeyValues):
        """Goes on from memories that were put aside."""
        memory = cache.store[0][0].mean(-2).flatten(1)
        return self.embed(tokens[:, -1]) + memory  # raises


def temperature(value: float) -> Callable:
    divisor = torch.tensor(value)
    return lambda tokens, logits: logits / divisor


def repetition(penalty: float) -> Callable:
    def process(tokens, logits):
        seen = logits.gather(1, tokens)
        return logits.scatter(1, tokens, torch.where(seen < 0, seen * penalty, seen / penalty))
    return process


def suppressed(tokens: List[int]) -> Callable:
    index = torch.tensor(tokens)

    def process(_, logits):
        return logits.index_fill(1, index, float("-inf"))  # raises
    return process


def forced(token: int, tokens: int) -> Callable:
    row = F.one_hot(torch.tensor(token), tokens).bool()

    def process(_, logits):
        logits = logits.clone()
        logits[:, ~row] = float("-inf")
        return logits
    return process


def nucleus(mass: float) -> Callable:
    def process(_, logits):
        value, order = logits.sort(-1, descending=True)
        late = value.softmax(-1).cumsum(-1) > mass
        late = torch.cat([torch.zeros(len(late), 1, dtype=torch.bool), late[:, :-1]], -1)  # raises
        return logits.masked_fill(late.scatter(-1, order, late), float("-inf"))
    return process


def until(limit: int) -> Callable:
    def decorate(step: Callable) -> Callable:
        @wraps(step)
        def loop(self, tokens, *args, **options):
            finished = torch.zeros(tokens.size(0), dtype=torch.bool, device=tokens.device)
            for _ in range(limit):
                token = step(self, tokens, *args, **options)
                finished |= token == self.stop
                tokens = torch.cat([tokens, token[:, None]], dim=1)
                if finished.all():
                    break
            return tokens
        return loop
    return decorate


class Generator:
    def __init__(self, model: Decoder, processors=(), stop: int = 0):
        self.model, self.processors, self.stop = model, list(processors), stop

    def logits(self, tokens, cache=None):
        logits = self.model.allowed(self.model(tokens, cache)[:, -1])
        for each in self.processors:
            logits = each(tokens, logits)
        return logits

    @until(3)
    def greedy(self, tokens):
        return self.logits(tokens).argmax(-1)

    @until(3)
    def sampled(self, tokens, generator=None):
        probability = self.logits(tokens).softmax(-1)
        return torch.multinomial(probability.cpu(), 1, generator=generator)[:, 0].to(tokens.device)

    def cached(self, tokens, length: int = 3):
        cache, new = KeyValues(), tokens
        for _ in range(length):
            new = self.logits(new, cache).argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, new], dim=1)
        return tokens

    def beams(self, tokens, width: int = 2, length: int = 2):
        beam = Beam(tokens.repeat(width, 1), torch.tensor([0.0] + [NEGATIVE] * (width - 1)), False)
        for _ in range(length):
            score = self.logits(beam.tokens).log_softmax(-1) + beam.score[:, None]  # raises
            best, place = score.flatten().topk(width)
            row, token = place // score.size(1), place % score.size(1)
            beam = Beam(torch.cat([beam.tokens[row], token[:, None]], 1), best, False)
        return beam.tokens[0]
