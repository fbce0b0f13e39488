"""Building blocks to pretrain masked and replaced-token language models."""
import math
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

IGNORE = -100
POSITIONS: Dict[str, Callable[..., nn.Module]] = {}


def register_position(name):
    def wrap(cls):
        POSITIONS[name] = cls
        return cls
    return wrap


@dataclass
class PretrainConfig:
    vocab_size: int = 40
    hidden: int = 16
    heads: int = 2
    layers: int = 2
    max_positions: int = 32
    position: str = "alibi"
    mask_token: int = 3
    special_tokens: Tuple[int, ...] = (0, 1, 2, 3)
    mlm_probability: float = 0.3
    languages: List[str] = field(default_factory=lambda: ["en", "sw"])


class PositionBias(nn.Module):
    """Base of all attention biases: (heads, queries, keys)."""

    def __init__(self, config: PretrainConfig):
        super().__init__()
        self.config = config

    def distances(self, queries: int, keys: int, device=None) -> Tensor:
        rows = torch.arange(queries, device=device).unsqueeze(1)
        columns = torch.arange(keys, device=device).unsqueeze(0)
        return columns - rows

    def forward(self, hidden: Tensor) -> Tensor:
        raise NotImplementedError


@register_position("alibi")
class AlibiBias(PositionBias):
    def __init__(self, config):
        super().__init__(config)
        steps = torch.arange(1, config.heads + 1, dtype=torch.float)
        self.register_buffer("slopes", torch.pow(2.0, -8.0 * steps / config.heads), persistent=False)

    def forward(self, hidden):
        length = hidden.size(1)
        distance = self.distances(length, length, hidden.device).abs().neg()
        return self.slopes[:, None, None] * distance


@register_position("t5")
class BucketedBias(PositionBias):
    buckets, furthest = 8, 16

    def __init__(self, config):
        super().__init__(config)
        self.table = nn.Embedding(self.buckets, config.heads)

    def bucket(self, distance: Tensor) -> Tensor:
        half = self.buckets // 2
        sign = (distance > 0).long() * half
        size = distance.abs()
        exact = half // 2
        scaled = exact + (torch.log(size.float().clamp(min=1) / exact) / math.log(self.furthest / exact) * exact).long()
        return sign + torch.where(size < exact, size, scaled.clamp(max=half - 1))

    def forward(self, hidden):
        buckets = self.bucket(self.distances(hidden.size(1), hidden.size(1)))
        return self.table(buckets).permute(2, 0, 1)  # raises


class RotaryCache:
    def __init__(self, dim: int, base: float = 10000.0):
        self.dim, self.base = dim, base
        self._tables: "OrderedDict[int, Tensor]" = OrderedDict()

    def table(self, length: int, device) -> Tensor:
        if length not in self._tables:
            frequencies = self.base ** (-torch.arange(0, self.dim, 2, device=device).float() / self.dim)
            self._tables[length] = torch.outer(torch.arange(length, device=device).float(), frequencies)
        return self._tables[length]

    def rotate(self, x: Tensor) -> Tensor:
        angle = self.table(x.size(-2), x.device)
        first, second = x.chunk(2, dim=-1)
        sine, cosine = angle.sin(), angle.cos()
        return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)  # raises


class SinusoidalPositions(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weights = self.build(config.max_positions, config.hidden)

    @staticmethod
    def build(count, dim):
        angle = torch.arange(count).unsqueeze(1) * torch.exp(-torch.arange(0, dim, 2) * math.log(1e4) / dim)
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    def forward(self, hidden):
        if hidden.size(1) > self.weights.size(0):
            self.weights = self.build(hidden.size(1), hidden.size(2))
        self.weights = self.weights.to(hidden)
        return hidden + self.weights[: hidden.size(1)]


class EncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden)
        self.out = nn.Linear(config.hidden, config.hidden)
        self.norm = nn.LayerNorm(config.hidden)

    def forward(self, x, bias=None, padding=None, past=None):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = past.extend(k, v)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        if bias is not None:
            scores = scores + bias
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], -1e4)  # raises
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return self.norm(x + self.out(mixed))


class PrefixState:
    """Keys and values of one layer, allocated up front and filled step by step."""

    def __init__(self, batch, heads, capacity, width, like: Tensor):
        options = {"device": like.device, "dtype": like.dtype}
        self.keys = torch.zeros(batch, heads, capacity, width, **options)
        self.values = torch.zeros(batch, heads, capacity, width, **options)
        self.used = 0

    def extend(self, k, v):
        stop = self.used + k.size(2)
        self.keys[:, :, self.used:stop] = k
        self.values[:, :, self.used:stop] = v
        self.used = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]


class Bottleneck(nn.Sequential):
    def __init__(self, hidden, size=4):
        super().__init__(nn.Linear(hidden, size), nn.GELU(), nn.Linear(size, hidden))


class Encoder(nn.Module):
    def __init__(self, config: PretrainConfig):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden)
        self.bias = POSITIONS[config.position](config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = nn.Linear(config.hidden, config.vocab_size, bias=False)
        self.decoder.weight = self.embed.weight
        self.language_adapters = {name: Bottleneck(config.hidden) for name in config.languages}

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def encode(self, ids, padding=None):
        hidden = self.embed(ids)
        bias = self.bias(hidden)
        for layer in self.layers:
            hidden = layer(hidden, bias, padding)
        return hidden

    def encode_language(self, ids, language):
        hidden = self.encode(ids)
        return hidden + self.language_adapters[language](hidden)  # raises

    def forward(self, ids, padding=None):
        return self.decoder(self.encode(ids, padding))

    @torch.no_grad()
    def stream(self, chunks: List[Tensor]) -> Tensor:
        first = self.embed(chunks[0])
        width = self.config.hidden // self.config.heads
        total = sum(chunk.size(1) for chunk in chunks)
        states = [PrefixState(first.size(0), self.config.heads, total, width, like=first) for _ in self.layers]
        outputs = []
        for chunk in chunks:
            hidden = self.embed(chunk)
            for layer, state in zip(self.layers, states):
                hidden = layer(hidden, past=state)
            outputs.append(self.decoder(hidden[:, -1]))
        return torch.stack(outputs, dim=1)


class PipelinedEncoder(Encoder):
    """First half of the layers on one GPU, the rest on another."""

    def place(self, first="cuda:0", second="cuda:1"):
        self.stages = (torch.device(first), torch.device(second))
        self.to(self.stages[0])
        self.cut = len(self.layers) // 2
        for layer in self.layers[self.cut:]:
            layer.to(self.stages[1])
        return self

    def encode(self, ids, padding=None):
        hidden = self.embed(ids.to(self.stages[0]))
        bias = self.bias(hidden)
        for number, layer in enumerate(self.layers):
            if number == self.cut:
                hidden, bias = hidden.to(self.stages[1]), bias.to(self.stages[1])
            hidden = layer(hidden, bias, padding)
        return hidden.to(self.stages[0])


class MaskingStrategy:
    """Template: subclasses choose positions, the base corrupts them."""

    def __init__(self, config: PretrainConfig):
        self.config = config

    def protected(self, ids):
        return torch.isin(ids, torch.tensor(self.config.special_tokens, device=ids.device))

    def choose(self, ids, word_ids) -> Tensor:
        raise NotImplementedError

    def __call__(self, ids, word_ids=None):
        chosen = self.choose(ids, word_ids) & ~self.protected(ids)  # raises
        labels = ids.masked_fill(~chosen, IGNORE)
        return ids.masked_fill(chosen, self.config.mask_token), labels


class TokenMasking(MaskingStrategy):
    def choose(self, ids, word_ids):
        return torch.bernoulli(torch.full(ids.shape, self.config.mlm_probability, device=ids.device)).bool()


class WholeWordMasking(MaskingStrategy):
    def choose(self, ids, word_ids):
        words = np.asarray(word_ids)
        rng = np.random.default_rng(0)
        picked = rng.random(words.max() + 1) < self.config.mlm_probability
        return torch.from_numpy(picked[words])


class SpanMasking(MaskingStrategy):
    def choose(self, ids, word_ids):
        chosen = torch.zeros(ids.shape, dtype=torch.bool)
        for row in range(ids.size(0)):
            start = int(torch.randint(0, ids.size(1) - 2, ()))
            chosen[row, start:start + 2] = True
        return chosen.to(ids.device)


class BalancedLoss(nn.Module):
    """Cross entropy in which frequent words count less."""

    def __init__(self, config, power=0.5):
        super().__init__()
        self.counts = Counter()
        self.config, self.power = config, power
        self.register_buffer("floor", torch.full((config.vocab_size,), 0.1))

    def observe(self, ids: Tensor):
        self.counts.update(ids.flatten().tolist())

    @property
    def weight(self) -> Tensor:
        counts = torch.tensor([self.counts[token] + 1.0 for token in range(self.config.vocab_size)])
        return counts.pow(-self.power)

    def forward(self, logits, labels, clipped=False):
        if clipped:
            weight = torch.max(self.floor, self.weight.to(self.floor))
        else:
            weight = self.weight
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=weight, ignore_index=IGNORE)  # raises


class ReplacedTokenTask(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.generator = Encoder(config)
        self.discriminator = Encoder(config)
        self.head = nn.Linear(config.hidden, 1)
        self.masking = SpanMasking(config)
        self._clean = None

    def prepare(self, batch):
        self._clean = batch["input_ids"]
        masked, labels = self.masking(self._clean)
        device = self.generator.device
        return masked.to(device), labels.to(device)

    def sample(self, logits):
        noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)))
        return (logits + noise).argmax(-1)

    def forward(self, batch):
        masked, labels = self.prepare(batch)
        sampled = self.sample(self.generator(masked))
        corrupted = torch.where(labels != IGNORE, sampled, masked)
        replaced = corrupted.ne(self._clean)  # raises
        scores = self.head(self.discriminator.encode(corrupted)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(scores, replaced.float())


class BlockPacker:
    """Joins documents into blocks and keeps the rest for the next call."""

    def __init__(self, block_size):
        self.block_size = block_size
        self.rest = torch.empty(1, 0, dtype=torch.long)

    def add(self, document: Tensor) -> List[Tensor]:
        joined = torch.cat([self.rest, document.view(1, -1)], dim=1)  # raises
        pieces = joined.split(self.block_size, dim=1)
        self.rest = pieces[-1]
        return list(pieces[:-1])


class DomainPerplexity:
    def __init__(self, domains: List[str]):
        self.domains = domains
        self.sums = torch.zeros(len(domains))
        self.counts = torch.zeros(len(domains))

    def update(self, losses: Tensor, domain: Tensor):
        losses, domain = losses.detach().cpu(), domain.cpu()
        self.sums.index_add_(0, domain, losses)
        self.counts.index_add_(0, domain, torch.ones_like(losses))

    def update_weighted(self, losses, domain, tokens):
        self.sums.index_add_(0, domain.cpu(), (losses * tokens).detach().cpu())
        self.counts += torch.bincount(domain, tokens, minlength=len(self.domains))  # raises

    def compute(self):
        return dict(zip(self.domains, (self.sums / self.counts.clamp(min=1)).exp().tolist()))


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), master=False):
        super().__init__(params, dict(lr=lr, betas=betas, master=master))

    def initialise(self, state, p, master):
        state["step"] = torch.zeros(())
        state["mean"] = torch.zeros(p.shape, dtype=torch.float32) if master else torch.zeros_like(p)
        state["square"] = torch.zeros_like(state["mean"])

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    self.initialise(state, p, group["master"])
                state["step"] += 1
                state["mean"].mul_(first).add_(p.grad, alpha=1 - first)  # raises
                state["square"].mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
                update = state["mean"] / (1 - first ** state["step"]) / (state["square"].sqrt() + 1e-6)
                ratio = p.norm() / update.norm().clamp(min=1e-6)
                p.add_(update * ratio, alpha=-group["lr"])


class MaskedAccuracy:
    def __init__(self):
        self.hits: List[np.ndarray] = []

    def add(self, logits, labels):
        kept = labels != IGNORE
        right = logits.argmax(-1)[kept] == labels[kept]
        self.hits.append(right.cpu().numpy())

    def confusion(self, logits, labels, classes):
        kept = labels != IGNORE
        table = np.zeros((classes, classes), dtype=np.int64)
        guesses = logits.detach().argmax(-1)[kept]
        np.add.at(table, (labels[kept].tolist(), guesses.numpy()), 1)  # raises
        return table
