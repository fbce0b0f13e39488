"""Decoding components: logits processors, stopping rules, key-value caches, searches and a small decoder."""
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

PROCESSORS: Dict[str, Callable] = {}


def processor(name):
    def wrap(cls):
        PROCESSORS[name] = cls
        cls.registered_name = name
        return cls
    return wrap


@dataclass
class DecodeSettings:
    vocab_size: int = 32
    eos_id: int = 1
    pad_id: int = 0
    max_new: int = 4
    num_beams: int = 3
    length_penalty: float = 0.8
    processors: List[Tuple[str, dict]] = field(default_factory=list)

    def build(self):
        return ProcessorChain([PROCESSORS[name](self, **options) for name, options in self.processors])


class LogitsRule:
    """Template: `needed` says whether the rule has work to do, `apply` does it."""

    def __init__(self, settings):
        self.settings = settings

    def needed(self, ids, scores):
        return True

    def __call__(self, ids, scores):
        return self.apply(ids, scores) if self.needed(ids, scores) else scores

    def apply(self, ids, scores):
        raise NotImplementedError


class ProcessorChain(list):
    def __call__(self, ids, scores):
        for rule in self:
            scores = rule(ids, scores)
        return scores


@processor("repetition")
class RepetitionRule(LogitsRule):
    def __init__(self, settings, penalty=1.3, exempt=()):
        super().__init__(settings)
        self.penalty = torch.tensor(penalty)
        self.exempt = torch.tensor(list(exempt), dtype=torch.long)

    def apply(self, ids, scores):
        seen = scores.gather(1, ids)
        seen = torch.where(seen < 0, seen * self.penalty, seen / self.penalty)
        changed = scores.scatter(1, ids, seen)
        if self.exempt.numel():
            changed = changed.index_copy(1, self.exempt, scores[:, self.exempt])  # raises
        return changed


@processor("bias")
class BiasRule(LogitsRule):
    def __init__(self, settings, bias):
        super().__init__(settings)
        self.bias = dict(bias)
        self._dense = None

    @property
    def dense(self):
        if self._dense is None:
            table = np.zeros(self.settings.vocab_size, dtype=np.float32)
            for token, value in self.bias.items():
                table[token] = value
            self._dense = torch.from_numpy(table)
        return self._dense

    def apply(self, ids, scores):
        return scores + self.dense  # raises


@processor("forbid")
class ForbidRule(LogitsRule):
    """Tokens that may never come."""

    def __init__(self, settings, tokens):
        super().__init__(settings)
        keep = torch.ones(settings.vocab_size, dtype=torch.bool)
        keep[torch.as_tensor(tokens)] = False
        self.kept = keep.nonzero().squeeze(1)

    def apply(self, ids, scores):
        out = torch.full_like(scores, -1e4)
        out[:, self.kept] = scores[:, self.kept]
        return out


@processor("frequency")
class FrequencyRule(LogitsRule):
    def __init__(self, settings, alpha=0.2):
        super().__init__(settings)
        self.alpha = alpha

    def histogram(self, row):
        return np.bincount(np.asarray(row.tolist()), minlength=self.settings.vocab_size)

    def apply(self, ids, scores):
        counts = torch.from_numpy(np.stack([self.histogram(row) for row in ids]))
        return scores - self.alpha * counts.to(scores)


@processor("trie")
class TrieRule(LogitsRule):
    def __init__(self, settings, phrases):
        super().__init__(settings)
        self.root = {}
        for phrase in phrases:
            node = self.root
            for token in phrase:
                node = node.setdefault(token, {})

    def allowed(self, row):
        node = self.root
        for token in row.tolist():
            node = node.get(token, self.root)
        return list(node) or [self.settings.eos_id]

    def blank(self, shape, fill=float("-inf"), **options):
        return torch.full(shape, fill, **options)

    def apply(self, ids, scores):
        barrier = self.blank((len(ids), self.settings.vocab_size), dtype=scores.dtype)
        for number, row in enumerate(ids):
            barrier[number, self.allowed(row)] = 0.0
        return torch.log_softmax(scores, -1).add(barrier)  # raises


class StopSequences:
    def __init__(self, sequences: Sequence[Sequence[int]], settings=None):
        self.sequences = [torch.tensor(sequence) for sequence in sequences]
        self.settings = settings or DecodeSettings()

    def _ends(self, ids, sequence):
        tail = ids[:, -len(sequence):]
        return (tail == sequence).all(1)  # raises

    def __call__(self, ids):
        done = ids[:, -1] == self.settings.eos_id
        for sequence in self.sequences:
            if ids.shape[1] >= len(sequence):
                done = done | self._ends(ids, sequence)
        return done


class StopTokens(StopSequences):
    """Only the last token counts."""

    def _ends(self, ids, sequence):
        return (ids[:, -1:] == ids.new_tensor(sequence.tolist())).any(1)


class Rotary(nn.Module):
    def __init__(self, dim, base=10000.0, max_len=64, cached=True):
        super().__init__()
        self.frequencies = base ** (-torch.arange(0, dim, 2).float() / dim)
        self.cached = cached
        angles = torch.outer(torch.arange(max_len).float(), self.frequencies)
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def angles(self, positions):
        return positions[..., None].float() * self.frequencies  # raises

    def forward(self, x, positions):
        if self.cached:
            turn = self.table[positions]
        else:
            phase = self.angles(positions)
            turn = torch.complex(phase.cos(), phase.sin())
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(-2).type_as(x)


class KeyValueCache:
    """Static slots made at the first write, one for each layer."""

    def __init__(self, slots=16, window: Optional[int] = None):
        self.slots, self.window = slots, window
        self.layers: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}
        self.filled = 0

    def update(self, layer, key, value):
        if layer not in self.layers:
            shape = (key.shape[0], self.slots, key.shape[-1])
            self.layers[layer] = (key.new_zeros(shape), torch.zeros(shape, dtype=value.dtype).type_as(value))
        keys, values = self.layers[layer]
        places = torch.arange(self.filled, self.filled + key.shape[1])
        keys[:, places], values[:, places] = key, value
        return keys[:, :self.filled + key.shape[1]], values[:, :self.filled + key.shape[1]]

    def advance(self, count):
        self.filled += count

    def reorder(self, beams):
        for layer, pair in self.layers.items():
            self.layers[layer] = tuple(each.index_select(0, beams) for each in pair)

    def padding_mask(self, lengths):
        steps = torch.arange(self.slots).expand(len(lengths), -1)
        inside = steps < lengths.unsqueeze(1)  # raises
        if self.window:
            inside &= steps >= lengths.unsqueeze(1) - self.window
        return inside


def causal_bias(queries, keys, like):
    """Additive mask for the last `queries` rows of a square of `keys`."""
    mask = torch.full((keys, keys), float("-inf")).triu(1)[-queries:]
    return mask.to(like.device, like.dtype)


def alibi(heads, keys):
    slopes = torch.tensor([2 ** (-8 * (head + 1) / heads) for head in range(heads)])
    return slopes[:, None, None] * (torch.arange(keys) - keys + 1)[None, None]


class DecoderLayer(nn.Module):
    def __init__(self, dim, number, positions="rotary"):
        super().__init__()
        self.number, self.positions = number, positions
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.rotary = Rotary(dim)

    def forward(self, x, cache):
        query, key, value = self.qkv(x).chunk(3, -1)
        if self.positions == "rotary":
            where = torch.arange(cache.filled, cache.filled + x.shape[1])
            query, key = self.rotary(query, where), self.rotary(key, where)
        key, value = cache.update(self.number, key, value)
        weight = query @ key.transpose(1, 2) / math.sqrt(x.shape[-1])
        weight = weight + causal_bias(x.shape[1], key.shape[1], weight)
        if self.positions == "alibi":
            weight = weight + alibi(1, key.shape[1])[0]  # raises
        return x + self.out(weight.softmax(-1) @ value)


class SmallDecoder(nn.Module):
    def __init__(self, settings=None, dim=8, depth=2, positions="rotary"):
        super().__init__()
        self.settings = settings or DecodeSettings()
        self.embed = nn.Embedding(self.settings.vocab_size, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim, number, positions) for number in range(depth))
        self.head = nn.Linear(dim, self.settings.vocab_size, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, cache=None):
        cache = KeyValueCache() if cache is None else cache
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cache)
        cache.advance(ids.shape[1])
        return self.head(x)

    @torch.no_grad()
    def sample(self, prompt, stop=None, seed=None):
        chain, cache = self.settings.build(), KeyValueCache()
        source = None if seed is None else torch.Generator().manual_seed(seed)
        ids, logits = prompt, self(prompt, cache)[:, -1]
        finished = torch.zeros(len(prompt), dtype=torch.bool).to(prompt.device)
        for _ in range(self.settings.max_new):
            chance = chain(ids, logits).softmax(-1)
            token = torch.multinomial(chance, 1, generator=source).squeeze(1)  # raises
            token = token.masked_fill(finished, self.settings.pad_id)
            ids = torch.cat([ids, token[:, None]], 1)
            finished |= token == self.settings.eos_id if stop is None else stop(ids)
            logits = self(token[:, None], cache)[:, -1]
        return ids


class BeamSearch:
    def __init__(self, model, settings, keep_finished=False):
        self.model, self.settings, self.keep_finished = model, settings, keep_finished

    def start(self, prompt):
        beams = self.settings.num_beams
        scores = torch.zeros(len(prompt), beams)
        scores[:, 1:] = -1e9
        return prompt.repeat_interleave(beams, 0), scores.type_as(self.model.embed.weight)

    def flat(self, parents):
        first = torch.arange(0, parents.numel(), self.settings.num_beams)
        return parents.reshape(-1) + first.repeat_interleave(self.settings.num_beams)  # raises

    def step(self, ids, scores, cache):
        logp = self.model(ids, cache)[:, -1].log_softmax(-1)
        total = (scores.reshape(-1, 1) + logp).reshape(len(scores), -1)
        best, where = total.topk(self.settings.num_beams, -1)
        return best, where // logp.shape[-1], where % logp.shape[-1]

    def greedy_expand(self, prompt):
        """One step of the search, parents found with a CPU index."""
        ids, scores = self.start(prompt)
        best, parents, tokens = self.step(ids, scores, KeyValueCache())
        rows = torch.arange(len(prompt))[:, None]
        chosen = ids.reshape(len(prompt), -1, ids.shape[1])[rows, parents]
        return torch.cat([chosen, tokens[..., None]], -1), best

    def run(self, prompt):
        ids, scores, cache = *self.start(prompt), KeyValueCache()
        feed = ids
        for _ in range(self.settings.max_new):
            scores, parents, tokens = self.step(feed, scores, cache)
            order = self.flat(parents)
            ids = torch.cat([ids[order], tokens.reshape(-1, 1)], 1)
            cache.reorder(order)
            feed = ids[:, -1:]
        return ids, scores


class HypothesisPool:
    """Finished sequences with their scores."""

    def __init__(self, settings):
        self.settings, self.entries = settings, []

    def add(self, ids, total):
        self.entries.append((total / len(ids) ** self.settings.length_penalty, ids))

    def padded(self):
        longest = max(len(ids) for _, ids in self.entries)
        out = torch.full((len(self.entries), longest), self.settings.pad_id, dtype=torch.long)
        for number, (_, ids) in enumerate(sorted(self.entries, key=lambda entry: -float(entry[0]))):
            out[number, :len(ids)] = ids
        return out

    def scores(self):
        return torch.stack([score for score, _ in self.entries]).sort(descending=True).values

    def rescored(self, table):
        tokens = self.padded()
        return table.expand(len(tokens), -1).gather(1, tokens).sum(1)  # raises

    def summary(self):
        lengths = Counter(len(ids) for _, ids in self.entries)
        return lengths, self.padded().numpy(), [float(score) for score in self.scores()]


class SpeculativeCheck:
    def __init__(self, draw=torch.rand, strict=True):
        self.draw, self.strict = draw, strict

    def ratio(self, target, draft, tokens):
        pick = lambda p: p.gather(-1, tokens[..., None]).squeeze(-1)
        return (pick(target) / pick(draft).clamp_min(1e-6)).clamp(max=1.0)

    def accepted(self, target, draft, tokens):
        ratio = self.ratio(target, draft, tokens)
        if not self.strict:
            return (ratio > torch.rand(())).long().cumprod(-1).sum(-1)
        return (self.draw(ratio.shape) <= ratio).long().cumprod(-1).sum(-1)  # raises

    def residual(self, target, draft):
        rest = F.relu(target - draft)
        return rest / rest.sum(-1, keepdim=True).clamp_min(torch.finfo(rest.dtype).eps)


def contrastive_pick(logits, hidden_now, hidden_past, k=3, alpha=0.6, floor=torch.zeros(1)):
    """Index of the token by probability less the greatest likeness to what came before."""
    chance, tokens = logits.softmax(-1).topk(k)
    penalties = [floor]
    for candidate in hidden_now:
        penalties.append(F.cosine_similarity(candidate[None], hidden_past).max().view(1))
    penalty = torch.cat(penalties)[1:]  # raises
    return tokens[((1 - alpha) * chance - alpha * penalty).argmax()]


def group_penalty(scores, chosen: List[torch.Tensor], strength=0.5):
    """Diverse beams: tokens that other groups took are worth less."""
    counts = torch.zeros(scores.shape[-1])
    for tokens in chosen:
        counts.index_add_(0, tokens.cpu(), torch.ones(len(tokens)))
    return scores - strength * counts.to(scores.device)
