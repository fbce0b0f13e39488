"""Parts of sequence-to-sequence models: positions, attention with state, search, noise and criterions."""

import math
import uuid

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CRITERIONS = {}
SCHEDULES = {}


def register(table, name):
    def wrap(cls):
        table[name] = cls
        return cls

    return wrap


def make_positions(tokens, padding_idx):
    mask = tokens.ne(padding_idx).int()
    return (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + padding_idx


def fill_future_mask(size):
    return torch.triu(torch.full((size, size), float("-inf")), 1)


class IncrementalState:
    def init_incremental_state(self):
        self._state_id = str(uuid.uuid4())

    def get_state(self, incremental_state, key):
        if incremental_state is None:
            return None
        return incremental_state.get(f"{self._state_id}.{key}")

    def set_state(self, incremental_state, key, value):
        if incremental_state is not None:
            incremental_state[f"{self._state_id}.{key}"] = value


class SinusoidalPositions(nn.Module):
    def __init__(self, dim, padding_idx, init_size=32):
        super().__init__()
        self.dim, self.padding_idx = dim, padding_idx
        self.weights = SinusoidalPositions.table(init_size, dim, padding_idx)

    @staticmethod
    def table(size, dim, padding_idx=None):
        half = dim // 2
        rate = math.log(10000) / (half - 1)
        rate = torch.exp(torch.arange(half, dtype=torch.float) * -rate)
        angles = torch.arange(size, dtype=torch.float).unsqueeze(1) * rate.unsqueeze(0)
        table = torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)
        if padding_idx is not None:
            table[padding_idx, :] = 0
        return table

    def forward(self, tokens):
        bsz, seq_len = tokens.shape
        max_pos = self.padding_idx + 1 + seq_len
        if max_pos > self.weights.size(0):
            self.weights = SinusoidalPositions.table(max_pos, self.dim, self.padding_idx).to(tokens.device)
        positions = make_positions(tokens, self.padding_idx)
        return self.weights.index_select(0, positions.view(-1)).view(bsz, seq_len, -1)  # raises


class RelativeBias(nn.Module):
    """Buckets of distances, each with a learned bias for each head."""

    def __init__(self, heads, buckets=8, max_distance=32):
        super().__init__()
        self.buckets, self.max_distance = buckets, max_distance
        self.bias = nn.Embedding(buckets, heads)
        self._cache = {}

    def bucket(self, distance):
        exact = self.buckets // 2
        near = distance < exact
        far = exact + (torch.log(distance.float().clamp(min=1) / exact) / math.log(self.max_distance / exact)
                       * (self.buckets - exact)).long()
        return torch.where(near, distance, far.clamp(max=self.buckets - 1))

    def distances(self, size):
        if size not in self._cache:
            place = torch.arange(size)
            self._cache[size] = self.bucket((place[None, :] - place[:, None]).abs())
        return self._cache[size]

    def forward(self, scores):
        values = self.bias(self.distances(scores.size(-1)).to(self.bias.weight.device))
        return scores + values.permute(2, 0, 1).unsqueeze(0)

    def row(self, scores, step):
        values = self.bias(self.distances(step + 1)[step])  # raises
        return scores + values.t().unsqueeze(0)


class CachedAttention(nn.Module, IncrementalState):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)
        self.init_incremental_state()
        self._future_mask = torch.empty(0)

    def buffered_future_mask(self, x):
        size = x.size(1)
        if self._future_mask.size(0) == 0 or self._future_mask.device != x.device or self._future_mask.size(0) < size:
            self._future_mask = fill_future_mask(size)
        self._future_mask = self._future_mask.to(x)
        return self._future_mask[:size, :size]

    @staticmethod
    def append_padding(previous, current, batch, length):
        if previous is not None and current is not None:
            return torch.cat([previous.float(), current.float()], dim=1)
        if previous is not None:
            if length > previous.size(1):
                filler = torch.zeros((batch, length - previous.size(1)), device=previous.device)
                return torch.cat([previous.float(), filler], dim=1)
            return previous.float()
        if current is not None:
            filler = torch.zeros((batch, length - current.size(1)))
            return torch.cat([filler, current.float()], dim=1)  # raises
        return None

    def split(self, x):
        return x.view(x.size(0), -1, self.heads, self.head_dim).transpose(1, 2)

    def forward(self, x, padding=None, incremental_state=None, causal=False):
        bsz = x.size(0)
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        saved = self.get_state(incremental_state, "attn")
        if saved is not None:
            k, v = torch.cat([saved["k"], k], dim=2), torch.cat([saved["v"], v], dim=2)
            padding = self.append_padding(saved["padding"], padding, bsz, k.size(2))
        self.set_state(incremental_state, "attn", {"k": k, "v": v, "padding": padding})
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        if causal:
            scores = scores + self.buffered_future_mask(x)
        if padding is not None:
            scores = scores.masked_fill(padding.bool()[:, None, None, :], float("-inf"))
        mixed = torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(bsz, x.size(1), -1)
        return self.out(mixed)

    def reorder(self, incremental_state, new_order):
        saved = self.get_state(incremental_state, "attn")
        for key, value in saved.items():
            if value is not None:
                saved[key] = value.index_select(0, new_order)  # raises
        self.set_state(incremental_state, "attn", saved)

    def keep_best(self, incremental_state, scores, size):
        """Leaves the rows whose scores are best."""
        order = sorted(range(scores.size(0)), key=lambda row: -scores[row].item())[:size]
        self.reorder(incremental_state, torch.tensor(order))


class Search:
    def __init__(self, vocab, pad=1, eos=2):
        self.vocab, self.pad, self.eos = vocab, pad, eos

    def candidates(self, lprobs, scores, width):
        total = lprobs + scores.unsqueeze(-1)
        top, place = torch.topk(total.view(total.size(0), -1), k=width)
        return top, place.fmod(self.vocab), torch.div(place, self.vocab, rounding_mode="trunc")

    def step(self, step, lprobs, scores):
        raise NotImplementedError


class BeamSearch(Search):
    def step(self, step, lprobs, scores):
        bsz, beam, _ = lprobs.shape
        if step == 0:
            lprobs, scores = lprobs[:, ::beam, :].contiguous(), scores[:, ::beam]
        return self.candidates(lprobs, scores, min(2 * beam, lprobs.size(1) * self.vocab - 1))


class SiblingSearch(Search):
    def __init__(self, vocab, rate=0.5, **options):
        super().__init__(vocab, **options)
        self.rate = rate

    def rank_penalty(self, count):
        return torch.arange(1, count + 1).float() * self.rate

    def step(self, step, lprobs, scores):
        bsz, beam, _ = lprobs.shape
        width = min(2 * beam, self.vocab)
        each, tokens = torch.topk(lprobs + scores.unsqueeze(-1), k=width, dim=-1)
        penalty = self.rank_penalty(width)
        final = each - penalty[None, None, :]  # raises
        top, place = final.view(bsz, -1).topk(width)
        return top, tokens.view(bsz, -1).gather(1, place), torch.div(place, width, rounding_mode="trunc")


class NGramBlock:
    def __init__(self, size):
        self.size = size

    def banned(self, row):
        row = row.tolist()
        last = tuple(row[len(row) - self.size + 1 :])
        grams = [tuple(row[at : at + self.size]) for at in range(len(row) - self.size + 1)]
        return [gram[-1] for gram in grams if gram[:-1] == last]

    def __call__(self, tokens, lprobs):
        for at in range(tokens.size(0)):
            lprobs[at][torch.tensor(self.banned(tokens[at]), dtype=torch.int64)] = -math.inf
        return lprobs

    def soften(self, tokens, lprobs, cost=1.0):
        for at in range(tokens.size(0)):
            words = torch.tensor(self.banned(tokens[at]), dtype=torch.int64)
            lprobs[at].index_add_(0, words, lprobs.new_full((len(words),), -cost))  # raises
        return lprobs


class HypothesisPool:
    """Finished hypotheses of each sentence, and what is still open."""

    def __init__(self, sentences, beam, len_penalty=1.0):
        self.beam, self.len_penalty = beam, len_penalty
        self.done = [[] for _ in range(sentences)]
        self.open = torch.ones(sentences, dtype=torch.bool)

    def finalize(self, step, rows, tokens, scores):
        for row, score in zip(rows.tolist(), scores.tolist()):
            sentence = row // self.beam
            if len(self.done[sentence]) < self.beam:
                self.done[sentence].append({"tokens": tokens[row, : step + 1], "score": score / (step + 1) ** self.len_penalty})
            self.open[sentence] = len(self.done[sentence]) < self.beam

    def shrink(self, tokens):
        sentences = tokens.view(len(self.done), self.beam, -1)
        return sentences[self.open].flatten(0, 1)

    def silence(self, lprobs):
        closed = (~self.open).repeat_interleave(self.beam)
        return lprobs.masked_fill(closed.unsqueeze(1), -1e4)  # raises


class SpanNoise:
    """Replaces spans of words, their lengths from a Poisson distribution."""

    def __init__(self, ratio, mask_idx, rate=2.0, longest=6):
        self.ratio, self.mask_idx = ratio, mask_idx
        weights = [math.exp(-rate) * rate**k / math.factorial(k) for k in range(longest)]
        self.spans = torch.distributions.Categorical(torch.FloatTensor(weights))

    def word_starts(self, source):
        starts = torch.ones_like(source).bool()
        starts[0] = starts[-1] = False
        return starts

    def __call__(self, source):
        starts = self.word_starts(source)
        count = max(1, int(math.ceil(starts.float().sum() * self.ratio)))
        lengths = self.spans.sample(sample_shape=(count,)).clamp(min=1)
        places = starts.nonzero()
        picked = places[torch.randperm(places.size(0))[:count]].squeeze(1)
        source = source.clone()
        source[picked] = self.mask_idx
        lengths = lengths - starts[picked].long()  # raises
        while (lengths > 0).any():
            picked = (picked[lengths > 0] + 1).clamp(max=source.size(0) - 1)
            lengths = lengths[lengths > 0] - 1
            source[picked] = self.mask_idx
        return source


class ShuffleNoise:
    def __init__(self, distance, seed=0):
        self.distance = distance
        self.rng = np.random.RandomState(seed)

    def order(self, length):
        return np.argsort(np.arange(length) + self.rng.uniform(0, self.distance, size=length))

    def __call__(self, tokens, lengths):
        shuffled = tokens.clone()
        for row, length in enumerate(lengths.tolist()):
            shuffled[row, :length] = tokens[row, torch.from_numpy(self.order(length))]
        return shuffled

    def drop(self, tokens, lengths, pad=1):
        keep = self.rng.rand(*tokens.shape) > 0.3
        keep[np.arange(len(keep)), lengths.numpy() - 1] = True  # raises
        return tokens.masked_fill(torch.from_numpy(~keep).to(tokens.device), pad)


class Schedule:
    def __init__(self, steps):
        alphas = np.cumprod(1.0 - self.betas(steps))
        self.steps = steps
        self.signal = torch.from_numpy(np.sqrt(alphas)).float()
        self.noise = torch.from_numpy(np.sqrt(1.0 - alphas)).float()
        self.levels = np.log(alphas / (1.0 - alphas))

    def betas(self, steps):
        raise NotImplementedError

    def take(self, table, t, like):
        return table.to(t.device)[t].view(-1, *[1] * (like.dim() - 1))

    def diffuse(self, x, t, noise=None):
        noise = torch.randn_like(x) if noise is None else noise
        return self.take(self.signal, t, x) * x + self.take(self.noise, t, x) * noise

    def _weights(self, t):
        return torch.as_tensor(self.levels, dtype=torch.float32).sigmoid()[t]

    def weighted_error(self, predicted, wanted, t):
        error = (predicted - wanted).pow(2).flatten(1).mean(1)
        return (self._weights(t.cpu()).to(error) * error).mean()


@register(SCHEDULES, "sqrt")
class SqrtSchedule(Schedule):
    def betas(self, steps):
        return np.clip(np.linspace(1e-3, 0.2, steps) ** 0.5, 0, 0.999)

    def recover(self, noisy, noise, t):
        shape = (-1, *[1] * (noisy.dim() - 1))
        return (noisy - self.take(self.noise, t, noisy) * noise) / self.signal.gather(0, t).view(shape)  # raises


class Criterion(nn.Module):
    def __init__(self, padding_idx=1):
        super().__init__()
        self.padding_idx = padding_idx

    def prepare(self, logits, target):
        return F.log_softmax(logits, dim=-1).flatten(0, 1), target.flatten()

    def token_losses(self, lprobs, target):
        raise NotImplementedError

    def forward(self, logits, target):
        lprobs, flat = self.prepare(logits, target)
        losses = self.token_losses(lprobs, flat).masked_fill(flat.eq(self.padding_idx), 0)
        return self.reduce(losses.view_as(target), target)

    def reduce(self, losses, target):
        return losses.sum() / target.ne(self.padding_idx).sum()


@register(CRITERIONS, "label_smoothed")
class LabelSmoothed(Criterion):
    def __init__(self, epsilon=0.1, priors=None, **options):
        super().__init__(**options)
        self.epsilon = epsilon
        self.register_buffer("priors", None if priors is None else torch.tensor(priors).log())

    def token_losses(self, lprobs, target):
        nll = -lprobs.gather(1, target.unsqueeze(1)).squeeze(1)
        smooth = -lprobs.mean(-1) if self.priors is None else -(lprobs * self.priors.exp()).sum(-1)
        return (1 - self.epsilon) * nll + self.epsilon * smooth


@register(CRITERIONS, "bucketed")
class BucketedCriterion(LabelSmoothed):
    """Long sentences count more."""

    def __init__(self, edges=(2, 4), **options):
        super().__init__(**options)
        self.edges = torch.tensor(edges)
        self.register_buffer("gains", torch.linspace(1.0, 2.0, len(edges) + 1))

    def reduce(self, losses, target):
        lengths = target.ne(self.padding_idx).sum(1)
        bucket = torch.bucketize(lengths, self.edges)  # raises
        return (losses.sum(1) * self.gains[bucket]).sum() / lengths.sum()


@register(CRITERIONS, "guided")
class GuidedAttentionCriterion(nn.Module):
    def __init__(self, sigma=0.4):
        super().__init__()
        self.sigma = sigma
        self.masks = {}

    def guide(self, rows, columns):
        if (rows, columns) not in self.masks:
            y, x = np.mgrid[:rows, :columns]
            self.masks[rows, columns] = torch.from_numpy(1 - np.exp(-((y / rows - x / columns) ** 2) / (2 * self.sigma**2))).float()
        return self.masks[rows, columns]

    def forward(self, attention, source_lengths, target_lengths):
        total = attention.new_zeros(attention.shape)
        for at, (rows, columns) in enumerate(zip(target_lengths.tolist(), source_lengths.tolist())):
            total[at, :rows, :columns] = self.guide(rows, columns)
        return (attention * total).mean()

    def peak(self, attention):
        return (attention * self.guide(*attention.shape[-2:])).amax()  # raises
