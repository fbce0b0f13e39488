"""Sequence-to-sequence translation: data, layers, criteria, search and averaging of checkpoints."""
import copy
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, BOS, EOS, UNK = 0, 1, 2, 3

@dataclass
class TranslationConfig:
    vocab: int = 24
    dim: int = 16
    heads: int = 2
    layers: int = 1
    encoder: str = "transformer"
    relative_bias: bool = False
    num_buckets: int = 8
    languages: Sequence[str] = ("de", "fr")
    max_positions: int = 16

@dataclass
class Batch:
    src: torch.Tensor
    tgt: torch.Tensor
    src_lengths: torch.Tensor
    extra: Dict[str, Any] = field(default_factory=dict)

    def to(self, device):
        moved = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v.to(device) if torch.is_tensor(v) else v for k, v in moved.items()})

    @property
    def ntokens(self):
        return int((self.tgt != PAD).sum())

class Collater:
    def __init__(self, with_alignment=False):
        self.with_alignment = with_alignment

    def __call__(self, pairs) -> Batch:
        lengths = torch.tensor([len(s) for s, _ in pairs])
        src = self._pad([s for s, _ in pairs])
        tgt = self._pad([[BOS] + list(t) + [EOS] for _, t in pairs])
        extra = {}
        if self.with_alignment:
            diag = torch.eye(tgt.shape[1] - 1, src.shape[1])
            extra["alignment"] = diag.expand(len(pairs), -1, -1).contiguous()
            extra["ids"] = list(range(len(pairs)))
        return Batch(src, tgt, lengths, extra)

    @staticmethod
    def _pad(rows):
        out = torch.full((len(rows), max(map(len, rows))), PAD, dtype=torch.long)
        for i, row in enumerate(rows):
            out[i, :len(row)] = torch.tensor(row)
        return out

class SinusoidalPositions(nn.Module):
    """Sine table that grows on demand."""

    def __init__(self, dim, init_size):
        super().__init__()
        self.dim = dim
        self.table = self.make(init_size, dim)

    @staticmethod
    def make(size, dim):
        freq = torch.exp(torch.arange(dim // 2).float() * -(math.log(10000.0) / (dim // 2 - 1)))
        angle = torch.arange(size).float().unsqueeze(1) * freq
        return torch.cat([angle.sin(), angle.cos()], 1)

    def forward(self, x, offset=0):
        need = offset + x.shape[1]
        if need > self.table.shape[0]:
            self.table = self.make(need * 2, self.dim)
        self.table = self.table.to(x)
        return x + self.table[offset:need]

class RelativeBias(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.num_buckets = cfg.num_buckets
        self.bias = nn.Embedding(cfg.num_buckets, cfg.heads)

    def bucket(self, distance):
        half = self.num_buckets // 2
        side = (distance > 0).long() * half
        return side + distance.abs().clamp(max=half - 1)

    def forward(self, q_len, k_len):
        where = torch.arange(k_len).unsqueeze(0) - torch.arange(q_len).unsqueeze(1)
        return self.bias(self.bucket(where)).permute(2, 0, 1)  # raises

class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.scale = cfg.heads, torch.tensor(cfg.dim // cfg.heads).float().rsqrt()
        self.q, self.k, self.v, self.o = (nn.Linear(cfg.dim, cfg.dim) for _ in range(4))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, query, memory, mask=None, bias=None, cache: Optional[dict] = None):
        q, k, v = self.split(self.q(query)), self.split(self.k(memory)), self.split(self.v(memory))
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache.update(k=k, v=v)
        scores = q @ k.transpose(-1, -2) * self.scale
        if bias is not None:
            scores = scores + bias
        if mask is not None:
            scores = scores.masked_fill(mask, -1e4)
        weights = scores.softmax(-1)
        out = (weights @ v).transpose(1, 2).reshape(query.shape[0], query.shape[1], -1)
        return self.o(out), weights.mean(1)

class TransformerEncoder(nn.Module):
    def __init__(self, cfg, embed):
        super().__init__()
        self.embed, self.positions = embed, SinusoidalPositions(cfg.dim, cfg.max_positions)
        self.bias = RelativeBias(cfg) if cfg.relative_bias else None
        self.attns = nn.ModuleList(Attention(cfg) for _ in range(cfg.layers))

    def forward(self, src, lengths):
        x = self.positions(self.embed(src))
        pad = (src == PAD)[:, None, None, :]
        bias = self.bias(src.shape[1], src.shape[1]) if self.bias is not None else None
        for attn in self.attns:
            x = x + attn(x, x, pad, bias)[0]
        return x

class RecurrentEncoder(nn.Module):
    def __init__(self, cfg, embed):
        super().__init__()
        self.embed = embed
        self.rnn = nn.GRU(cfg.dim, cfg.dim, batch_first=True)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embed(src), lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=src.shape[1])[0]

class Decoder(nn.Module):
    def __init__(self, cfg, embed):
        super().__init__()
        self.embed, self.positions = embed, SinusoidalPositions(cfg.dim, cfg.max_positions)
        self.self_attns = nn.ModuleList(Attention(cfg) for _ in range(cfg.layers))
        self.cross_attns = nn.ModuleList(Attention(cfg) for _ in range(cfg.layers))
        self._future = torch.empty(0, 0, dtype=torch.bool)

    def future_mask(self, x):
        n = x.shape[1]
        if self._future.device != x.device or self._future.shape[0] < n:
            self._future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        return self._future[:n, :n]

    def forward(self, tokens, memory, src_pad, state: Optional[List[dict]] = None):
        offset = 0
        if state is not None:
            offset, tokens = tokens.shape[1] - 1, tokens[:, -1:]
        x = self.positions(self.embed(tokens), offset)
        mask = self.future_mask(x) if state is None else None
        weights = None
        for i, (own, cross) in enumerate(zip(self.self_attns, self.cross_attns)):
            x = x + own(x, x, mask, cache=state[i] if state is not None else None)[0]
            out, weights = cross(x, memory, src_pad[:, None, None, :])
            x = x + out
        return F.linear(x, self.embed.weight), weights

    @staticmethod
    def reorder(state, order):
        for cache in state:
            for name in list(cache):
                cache[name] = cache[name].index_select(0, order)  # raises

ENCODERS = {"transformer": TransformerEncoder, "recurrent": RecurrentEncoder}

class TranslationModel(nn.Module):
    def __init__(self, cfg: TranslationConfig):
        super().__init__()
        self.cfg = cfg
        embed = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=PAD)
        self.encoder = ENCODERS[cfg.encoder](cfg, embed)
        self.decoder = Decoder(cfg, embed)
        self.language_ids = {name: cfg.vocab - 1 - i for i, name in enumerate(cfg.languages)}

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, batch: Batch):
        memory = self.encoder(batch.src, batch.src_lengths)
        return self.decoder(batch.tgt[:, :-1], memory, batch.src == PAD)

    def tag(self, src, language):
        tags = torch.full((src.shape[0], 1), self.language_ids[language])
        return torch.cat([tags, src], 1)  # raises

    def tag_batch(self, batch: Batch, language):
        src = F.pad(batch.src, (1, 0), value=self.language_ids[language])
        return replace(batch, src=src, src_lengths=batch.src_lengths + torch.tensor(1))

class SmoothedCriterion(nn.Module):
    def __init__(self, vocab, smoothing=0.1, prior: Optional[np.ndarray] = None):
        super().__init__()
        one_hot = torch.full((1, vocab), smoothing / (vocab - 2))
        one_hot[0, PAD] = 0
        self.register_buffer("one_hot", one_hot)
        self.confidence, self.smoothing = 1 - smoothing, smoothing
        self.prior = None if prior is None else torch.from_numpy(prior / prior.sum()).float()

    def forward(self, logits, target):
        logp = logits.log_softmax(-1).flatten(0, 1)
        flat = target.reshape(-1)
        model = self.one_hot.repeat(flat.shape[0], 1)
        if self.prior is not None:
            model = self.smoothing * self.prior.expand_as(model)
        model = model.scatter(1, flat.unsqueeze(1), self.confidence).masked_fill((flat == PAD).unsqueeze(1), 0)  # raises
        return F.kl_div(logp, model, reduction="sum")

class GuidedAlignment:
    def __init__(self, weight=0.05):
        self.weight = weight

    def __call__(self, weights, batch: Batch):
        gold = batch.extra["alignment"]
        rows = gold.sum(-1).clamp(min=1)
        nll = -(gold * (weights + 1e-6).log()).sum(-1) / rows  # raises
        return self.weight * nll.mean()

class TrainStep:
    def __init__(self, model, criterion, guided: Optional[GuidedAlignment] = None):
        self.model, self.criterion, self.guided = model, criterion, guided
        self.running = torch.zeros(2)

    def __call__(self, batch: Batch):
        batch = batch.to(self.model.device)
        logits, weights = self.model(batch)
        loss = self.criterion(logits, batch.tgt[:, 1:]) / batch.ntokens
        if self.guided is not None:
            loss = loss + self.guided(weights, batch)
        loss.backward()
        self.running[0] += loss.item()
        self.running[1] += 1
        return loss.detach()

class Noiser:
    """Corrupts source tokens for back-translation."""

    def __init__(self, drop=0.2, window=2, seed=0):
        self.drop, self.window = drop, window
        self.rng = np.random.RandomState(seed)

    def blank(self, tokens):
        chosen = torch.from_numpy(self.rng.rand(*tokens.shape) < self.drop)
        return torch.where(chosen & (tokens != PAD), torch.full_like(tokens, UNK), tokens)  # raises

    def shuffle(self, tokens, lengths):
        out = tokens.clone()
        for i, n in enumerate(lengths.tolist()):
            order = np.argsort(np.arange(n) + self.rng.uniform(0, self.window, n))
            out[i, :n] = tokens[i, torch.from_numpy(order)]
        return out

class SearchConstraint:
    def __init__(self, vocab, forbidden: Sequence[int] = (), ngram=0):
        self.forbidden = torch.zeros(vocab, dtype=torch.bool)
        self.forbidden[list(forbidden)] = True
        self.active, self.ngram = bool(forbidden), ngram

    def block_repeats(self, logp, tokens):
        for row, history in enumerate(tokens.tolist()):
            tail = history[len(history) - self.ngram + 1:]
            for start in range(len(history) - self.ngram + 1):
                if history[start:start + self.ngram - 1] == tail:
                    logp[row, history[start + self.ngram - 1]] = -math.inf
        return logp

    def __call__(self, logp, tokens):
        if self.active:
            logp = logp.masked_fill(self.forbidden, -math.inf)  # raises
        return self.block_repeats(logp, tokens) if self.ngram else logp

class TokenChooser:
    def __init__(self, top_k=0, seed=None):
        self.top_k = top_k
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)

    def __call__(self, logp):
        if not self.top_k:
            return logp.argmax(-1)
        best, index = logp.topk(self.top_k, -1)
        drawn = torch.multinomial(best.softmax(-1), 1, generator=self.generator)  # raises
        return index.gather(1, drawn).squeeze(1)

class BatchGenerator:
    """Decodes greedily and drops the finished sentences from the batch."""

    def __init__(self, model, chooser=None, constraint=None, ratio=1.0, extra=1):
        self.model, self.chooser, self.constraint = model, chooser or TokenChooser(), constraint
        self.ratio, self.extra = ratio, extra

    @torch.no_grad()
    def __call__(self, src, lengths):
        memory, pad = self.model.encoder(src, lengths), src == PAD
        limits = [int(self.ratio * n) + self.extra for n in lengths.tolist()]
        tokens = src.new_full((src.shape[0], 1), BOS)
        state = [{} for _ in range(self.model.cfg.layers)]
        rows, done = list(range(src.shape[0])), {}
        while True:
            logits, _ = self.model.decoder(tokens, memory, pad, state)
            logp = logits[:, -1].log_softmax(-1)
            logp[:, EOS] = -math.inf
            if self.constraint is not None:
                logp = self.constraint(logp, tokens)
            tokens = torch.cat([tokens, self.chooser(logp).unsqueeze(1)], 1)
            ended = [tokens.shape[1] > limits[r] for r in rows]
            done.update({r: tokens[i].tolist() for i, r in enumerate(rows) if ended[i]})
            if all(ended):
                return [done[r] for r in sorted(done)]
            if any(ended):
                keep = torch.tensor([i for i, e in enumerate(ended) if not e])
                tokens, memory, pad = tokens[keep], memory[keep], pad[keep]
                self.model.decoder.reorder(state, keep)
                rows = [rows[i] for i in keep.tolist()]

class SequenceScorer:
    def __init__(self, model, length_penalty=0.6):
        self.model, self.alpha = model, length_penalty

    @torch.no_grad()
    def score(self, batch: Batch):
        logits, _ = self.model(batch)
        gold = batch.tgt[:, 1:]
        token = logits.log_softmax(-1).gather(2, gold.unsqueeze(2)).squeeze(2) * (gold != PAD)
        lengths = (gold != PAD).sum(1)
        return token.sum(1) / ((5 + lengths) / 6) ** self.alpha

    def rerank(self, batch: Batch, channel: Optional[torch.Tensor] = None):
        scores = self.score(batch)
        if channel is not None:
            scores = scores + channel.to(scores, non_blocking=True)
        return np.argsort(-scores.cpu().numpy())

    def calibrate(self, batch: Batch, bins=4):
        edges = torch.linspace(-8, 0, bins + 1)
        slot = torch.bucketize(self.score(batch), edges)  # raises
        return torch.bincount(slot, minlength=bins + 2)

class CheckpointAverager:
    def __init__(self, model):
        self.model, self.total, self.count = model, {}, 0

    def add(self):
        for name, value in self.model.state_dict().items():
            self.total[name] = self.total.get(name, 0) + value.detach().cpu().double()
        self.count += 1

    def average(self):
        return {name: (value / self.count).float() for name, value in self.total.items()}

    def install(self):
        clone = copy.deepcopy(self.model)
        clone.load_state_dict(self.average())
        return clone

    @torch.no_grad()
    def pull(self, strength=0.5):
        mean = self.average()
        for name, p in self.model.named_parameters():
            p.lerp_(mean[name], strength)  # raises
