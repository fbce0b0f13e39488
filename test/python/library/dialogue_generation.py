"""Dialogue generation: histories, an encoder-decoder with caches, decoding strategies, rerankers and objectives."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Type

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

NEAR_INF = 1e20


def recursive_to(item: Any, device) -> Any:
    if isinstance(item, torch.Tensor):
        return item.to(device, non_blocking=True)
    if isinstance(item, dict):
        return type(item)((k, recursive_to(v, device)) for k, v in item.items())
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(recursive_to(v, device) for v in item))
    if isinstance(item, (list, tuple)):
        return type(item)(recursive_to(v, device) for v in item)
    return item


class EncoderState(NamedTuple):
    outputs: torch.Tensor
    mask: torch.Tensor
    hidden: torch.Tensor


@dataclass
class DialogueConfig:
    vocab_size: int = 20
    dim: int = 8
    max_turns: int = 4
    max_length: int = 6
    pad: int = 0
    start: int = 1
    end: int = 2
    use_cuda: bool = True
    blocked: Tuple[int, ...] = (3, 5)

    @property
    def device(self) -> torch.device:
        return torch.device("cuda" if self.use_cuda and torch.cuda.is_available() else "cpu")


@dataclass
class Batch:
    text: torch.Tensor
    lengths: torch.Tensor
    speakers: torch.Tensor
    labels: Optional[torch.Tensor] = None
    extras: Dict[str, torch.Tensor] = field(default_factory=OrderedDict)

    def to(self, device) -> "Batch":
        return Batch(**{k: recursive_to(v, device) for k, v in vars(self).items() if k != "extras"}, extras=self.extras)


class History:
    """Turns of one conversation."""

    def __init__(self, config: DialogueConfig):
        self.config = config
        self.turns: List[List[int]] = []

    def add(self, reply) -> "History":
        if isinstance(reply, torch.Tensor):
            reply = [t for t in reply.tolist() if t != self.config.pad]
        self.turns = [*self.turns, list(reply)][-self.config.max_turns:]
        return self

    def tokens(self) -> torch.Tensor:
        return torch.tensor([token for turn in self.turns for token in turn])

    def speakers(self) -> torch.Tensor:
        return torch.cat([torch.full((len(turn),), k % 2) for k, turn in enumerate(self.turns)])


class Batchifier:
    def __init__(self, config: DialogueConfig):
        self.config = config

    def __call__(self, histories: Sequence[History], labels: Optional[Sequence[Sequence[int]]] = None) -> Batch:
        pieces = [h.tokens() for h in histories]
        batch = Batch(
            text=pad_sequence(pieces, batch_first=True, padding_value=self.config.pad),
            lengths=torch.tensor([len(p) for p in pieces]),
            speakers=pad_sequence([h.speakers() for h in histories], batch_first=True),
        )
        if labels is not None:
            rows = [torch.tensor([*row, self.config.end]) for row in labels]
            batch.labels = pad_sequence(rows, batch_first=True, padding_value=self.config.pad)
        batch.extras["turns"] = torch.tensor([len(h.turns) for h in histories])
        return batch.to(self.config.device)


class TurnEmbedding(nn.Module):
    """Words, speakers and positions; optionally how old a turn is."""

    def __init__(self, config: DialogueConfig, kind: str = "learned"):
        super().__init__()
        self.kind = kind
        self.words = nn.Embedding(config.vocab_size, config.dim, padding_idx=config.pad)
        self.speakers = nn.Embedding(2, config.dim)
        self.places = nn.Embedding(64, config.dim)
        self._tables: Dict[int, torch.Tensor] = {}

    def _table(self, length: int) -> torch.Tensor:
        if length not in self._tables:
            dim = self.words.embedding_dim
            angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, dim, 2) * (-math.log(1e4) / dim))
            self._tables[length] = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        return self._tables[length]

    def positions(self, text: torch.Tensor) -> torch.Tensor:
        if self.kind == "learned":
            return self.places(torch.arange(text.shape[1], device=text.device))
        return self._table(text.shape[1])

    def forward(self, text: torch.Tensor, speakers: Optional[torch.Tensor] = None) -> torch.Tensor:
        embedded = self.words(text)
        if speakers is not None:
            embedded = embedded + self.speakers(speakers)
        return embedded + self.positions(text)  # raises

    def prefix(self, embedded: torch.Tensor, step: int) -> torch.Tensor:
        return embedded + self._table(step + 1)[step].to(embedded.device)


class DialogueModel(nn.Module):
    def __init__(self, config: DialogueConfig, positions: str = "learned"):
        super().__init__()
        self.config = config
        self.embedding = TurnEmbedding(config, positions)
        self.encoder = nn.GRU(config.dim, config.dim, batch_first=True)
        self.decoder = nn.GRU(config.dim, config.dim, batch_first=True)
        self.output = nn.Linear(2 * config.dim, config.vocab_size)
        self.register_buffer("START", torch.tensor([config.start]))

    @property
    def device(self):
        return self.START.device

    def encode(self, batch: Batch) -> EncoderState:
        embedded = self.embedding(batch.text, batch.speakers)
        packed = pack_padded_sequence(embedded, batch.lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, hidden = self.encoder(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return EncoderState(outputs, batch.text != self.config.pad, hidden)

    def encode_sorted(self, batch: Batch) -> EncoderState:
        lengths, order = batch.lengths.sort(descending=True)
        embedded = self.embedding(batch.text, batch.speakers)[order]
        packed = pack_padded_sequence(embedded, lengths, batch_first=True)  # raises
        outputs, hidden = self.encoder(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        back = order.argsort()
        return EncoderState(outputs[back], batch.text != self.config.pad, hidden[:, back])

    def decode(self, inputs: torch.Tensor, state: EncoderState, incr: Optional[torch.Tensor] = None):
        hidden = state.hidden if incr is None else incr
        outputs, hidden = self.decoder(self.embedding.words(inputs), hidden.contiguous())
        scores = outputs @ state.outputs.transpose(1, 2)
        scores = scores.masked_fill(~state.mask[:, None], -NEAR_INF)
        context = torch.softmax(scores, dim=-1) @ state.outputs
        return self.output(torch.cat([outputs, context], dim=-1)), hidden

    def forward(self, batch: Batch) -> torch.Tensor:
        state = self.encode(batch)
        starts = self.START.expand(len(batch.text), 1)
        logits, _ = self.decode(torch.cat([starts, batch.labels[:, :-1]], dim=1), state)
        return logits

    @staticmethod
    def reorder(state: EncoderState, incr: torch.Tensor, index: torch.Tensor) -> Tuple[EncoderState, torch.Tensor]:
        picked = EncoderState(state.outputs[index], state.mask[index], state.hidden[:, index])
        return picked, incr.index_select(1, index.to(incr.device))


class LogitsFilter(ABC):
    """One step in the chain that the scores of the next token pass through."""

    registry: Dict[str, Type["LogitsFilter"]] = {}

    def __init_subclass__(cls, name: str = "", **kwargs):
        super().__init_subclass__(**kwargs)
        LogitsFilter.registry[name] = cls

    def __init__(self, config: DialogueConfig, **options):
        self.config = config
        self.options = options
        self.setup()

    def setup(self) -> None:
        pass

    @abstractmethod
    def __call__(self, prefix: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        ...


class BlockedWords(LogitsFilter, name="blocked"):
    def setup(self):
        self.ids = torch.tensor(self.config.blocked)

    def __call__(self, prefix, scores):
        scores[:, self.ids] = -NEAR_INF
        return scores


class WordBias(LogitsFilter, name="bias"):
    def setup(self):
        self.bias = torch.zeros(self.config.vocab_size)
        for token, value in self.options.get("bias", {}).items():
            self.bias[token] = value

    def __call__(self, prefix, scores):
        return scores + self.bias  # raises


class NGramBlock(LogitsFilter, name="ngram"):
    def _banned(self, row: Sequence[int], n: int) -> List[int]:
        last = tuple(row[len(row) - n + 1:])
        return [row[k + n - 1] for k in range(len(row) - n + 1) if tuple(row[k:k + n - 1]) == last]

    def __call__(self, prefix, scores):
        for k, row in enumerate(prefix.cpu().numpy().tolist()):
            banned = self._banned(row, self.options.get("n", 2))
            scores[k, banned] = -NEAR_INF
        return scores


class RepetitionPenalty(LogitsFilter, name="repetition"):
    def setup(self):
        self.factor = torch.tensor(self.options.get("factor", 1.3))

    def __call__(self, prefix, scores):
        seen = scores.gather(1, prefix)
        seen = torch.where(seen < 0, seen * self.factor, seen / self.factor)
        return scores.scatter(1, prefix, seen)


class TypicalFilter(LogitsFilter, name="typical"):
    def __call__(self, prefix, scores):
        logp = F.log_softmax(scores, dim=-1)
        entropy = -(logp * logp.exp()).nansum(-1, keepdim=True)
        order = (-entropy - logp).abs().argsort(dim=-1)
        mass = logp.exp().gather(-1, order).cumsum(-1)
        last = (mass < self.options.get("mass", 0.9)).sum(-1)
        keep = torch.arange(scores.shape[-1])[None, :] <= last[:, None].cpu()
        drop = torch.zeros_like(keep).scatter(1, order, ~keep)  # raises
        return scores.masked_fill(drop, -NEAR_INF)


class TreeSearch(ABC):
    """Template of the decoding of one reply."""

    def __init__(self, config: DialogueConfig, filters: Iterable[LogitsFilter] = ()):
        self.config = config
        self.filters = list(filters)
        self.eos_tail: List[torch.Tensor] = []

    @abstractmethod
    def select(self, logp: torch.Tensor, cumulative: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rows to go on with, the new tokens and the scores."""

    width = 1

    @torch.no_grad()
    def generate(self, model: DialogueModel, batch: Batch) -> Tuple[torch.Tensor, torch.Tensor]:
        state = recursive_to(model.encode(batch), model.device)
        rows = torch.arange(1).repeat_interleave(self.width)
        state, incr = model.reorder(state, state.hidden, rows)
        prefix = model.START.expand(self.width, 1)
        cumulative = torch.full((self.width,), -NEAR_INF, device=model.device)
        cumulative[0] = 0.0
        for _ in range(self.config.max_length):
            logits, incr = model.decode(prefix[:, -1:], state, incr)
            scores = logits[:, -1]
            for each in self.filters:
                scores = each(prefix, scores)
            rows, tokens, cumulative = self.select(F.log_softmax(scores, dim=-1), cumulative)
            prefix = torch.cat([prefix[rows], tokens[:, None]], dim=1)
            incr = incr[:, rows]
            if (tokens == self.config.end).all():
                break
        return prefix, cumulative


class GreedySearch(TreeSearch):
    def select(self, logp, cumulative):
        best, tokens = logp.max(dim=-1)
        return torch.arange(len(tokens)), tokens, cumulative + best


class BeamSearch(TreeSearch):
    width = 3

    def select(self, logp, cumulative):
        total = (logp + cumulative[:, None]).view(-1)
        best, flat = torch.topk(total, self.width)
        return torch.div(flat, logp.shape[-1], rounding_mode="floor"), flat % logp.shape[-1], best


class NucleusSampling(TreeSearch):
    def __init__(self, *args, seed: int = 0, top_p: float = 0.9, **kwargs):
        super().__init__(*args, **kwargs)
        self.top_p = top_p
        self.generator = torch.Generator().manual_seed(seed)

    def select(self, logp, cumulative):
        probs, order = logp.exp().sort(dim=-1, descending=True)
        probs[probs.cumsum(-1) - probs > self.top_p] = 0
        choice = torch.multinomial(probs, 1, generator=self.generator)  # raises
        tokens = order.gather(1, choice)
        return torch.arange(len(tokens)), tokens[:, 0], cumulative + logp.gather(1, tokens)[:, 0]


class ReplyReranker(nn.Module):
    """Orders candidate replies of a context by dot products; embeddings of fixed candidates are kept."""

    def __init__(self, model: DialogueModel):
        super().__init__()
        self.model = model
        self.mixing = nn.Parameter(torch.ones(1))
        self._kept: Optional[torch.Tensor] = None

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens.to(self.model.device)
        mask = (tokens != self.model.config.pad).unsqueeze(-1)
        return (self.model.embedding.words(tokens) * mask).sum(1) / mask.sum(1).clamp(min=1)

    @torch.no_grad()
    def keep(self, candidates: torch.Tensor, chunk: int = 2) -> None:
        self._kept = torch.cat([self.embed(part).cpu() for part in candidates.split(chunk)])

    def rank(self, context: torch.Tensor, candidates: torch.Tensor) -> List[List[int]]:
        scores = self.embed(context) @ self.embed(candidates).T * self.mixing
        return scores.argsort(dim=-1, descending=True).tolist()

    def rank_kept(self, context: torch.Tensor, top: int = 2) -> np.ndarray:
        scores = torch.matmul(self.embed(context), self._kept.T)  # raises
        return scores.topk(top, dim=-1).indices.cpu().numpy()

    def kept_subset(self, ids: Sequence[int]) -> torch.Tensor:
        return self._kept[list(ids)].to(self.mixing.device) * self.mixing


class UnlikelihoodLoss(nn.Module):
    """Cross entropy and a penalty on repeated tokens, with running token statistics."""

    def __init__(self, config: DialogueConfig, alpha: float = 0.5):
        super().__init__()
        self.config, self.alpha = config, alpha
        self.register_buffer("counts", torch.zeros(config.vocab_size))
        self.rare = torch.ones(config.vocab_size)

    def likelihood(self, logits: torch.Tensor, labels: torch.Tensor, rare: bool = False) -> torch.Tensor:
        weight = self.rare if rare else None
        flat = logits.flatten(0, 1)
        return F.cross_entropy(flat, labels.flatten(), weight=weight, ignore_index=self.config.pad)  # raises

    def repeats(self, labels: torch.Tensor) -> torch.Tensor:
        same = labels[:, :, None] == labels[:, None, :]
        before = torch.ones(labels.shape[1], labels.shape[1], device=labels.device).tril(-1).bool()
        return (same & before).any(-1) & (labels != self.config.pad)

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> Dict[str, torch.Tensor]:
        loss = self.likelihood(logits, labels)
        chosen = F.softmax(logits, -1).gather(-1, labels[..., None])[..., 0]
        penalty = -torch.log(1 - chosen + 1e-6) * self.repeats(labels)
        self.counts += torch.bincount(labels.flatten(), minlength=self.config.vocab_size)
        return {"loss": loss + self.alpha * penalty.mean(), "penalty": penalty.detach().mean()}

    def frequency_gap(self, reference: np.ndarray) -> float:
        used = self.counts / self.counts.sum().clamp(min=1)
        return float((used - torch.from_numpy(reference).float()).abs().sum())  # raises


class TurnWeighting:
    """Weights examples by how many turns their context has."""

    def __init__(self, decay: float = 0.9):
        self.decay = torch.tensor(decay)

    def __call__(self, batch: Batch, losses: torch.Tensor) -> torch.Tensor:
        weights = self.decay ** batch.extras["turns"]
        return (losses * weights).sum() / weights.sum()  # raises

    def uniform(self, losses: torch.Tensor) -> torch.Tensor:
        return (losses * self.decay).mean()
