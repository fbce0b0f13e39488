"""Generation of token sequences: logits processors, constraints, key/value caches, beams, speculative decoding."""
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Dict, List, Optional, Tuple

import torch
from torch import LongTensor, Tensor, nn


@dataclass
class GenerationConfig:
    max_new_tokens: int = 6
    eos_token_id: Tuple[int, ...] = (1,)
    pad_token_id: int = 0
    temperature: float = 1.0
    seed: Optional[int] = None


class LogitsProcessor:
    """Is called with the tokens so far and with the scores of the next one."""


class LogitsProcessorList(list):
    def __call__(self, input_ids, scores):
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


class RepetitionPenalty(LogitsProcessor):
    def __init__(self, penalty=1.2):
        self.penalty = penalty

    def __call__(self, input_ids, scores):
        score = torch.gather(scores, 1, input_ids)
        score = torch.where(score < 0, score * self.penalty, score / self.penalty)
        return scores.scatter(1, input_ids, score)


class TopKTopP(LogitsProcessor):
    def __init__(self, top_k=0, top_p=1.0):
        self.top_k, self.top_p = top_k, torch.tensor(top_p)

    def __call__(self, input_ids, scores):
        if self.top_k > 0:
            kth = scores.topk(min(self.top_k, scores.shape[-1]))[0][..., -1:]
            scores = scores.masked_fill(scores < kth, -float("inf"))
        ordered, indices = torch.sort(scores, descending=False)
        remove = ordered.softmax(-1).cumsum(-1) <= 1 - self.top_p
        remove[..., -1:] = False
        return scores.masked_fill(remove.scatter(1, indices, remove), -float("inf"))


class SuppressTokens(LogitsProcessor):
    def __init__(self, tokens: List[int], begin_index: Optional[int] = None):
        self.tokens = torch.tensor(tokens)
        self.begin_index = begin_index

    def __call__(self, input_ids, scores):
        scores = scores.clone()
        if self.begin_index is None or input_ids.shape[1] == self.begin_index:
            scores[:, self.tokens] = -float("inf")
        return scores


class ForbidAfter(LogitsProcessor):
    """Forbids some tokens after a trigger."""

    def __init__(self, trigger: int, tokens: List[int]):
        self.trigger, self.tokens = trigger, torch.tensor(tokens)

    def __call__(self, input_ids, scores):
        rows = input_ids[:, -1] == self.trigger
        blocked = scores.index_fill(1, self.tokens, -float("inf"))  # raises
        return torch.where(rows.unsqueeze(1), blocked, scores)


class NoBadWords(LogitsProcessor):
    def __init__(self, bad_words: List[List[int]], vocab_size: int):
        self.sequences = [word for word in bad_words if len(word) > 1]
        self.static_mask = torch.zeros(vocab_size, dtype=torch.bool)
        self.static_mask[[word[0] for word in bad_words if len(word) == 1]] = True

    def __call__(self, input_ids, scores):
        for row, ids in enumerate(input_ids.tolist()):
            for word in self.sequences:
                if ids[-len(word) + 1:] == word[:-1]:
                    scores[row, word[-1]] = -float("inf")
        return scores.masked_fill(self.static_mask, -float("inf"))  # raises


class LogitBias(LogitsProcessor):
    def __init__(self, bias: Dict[int, float], vocab_size: int):
        self.bias = torch.zeros(vocab_size)
        for token, value in bias.items():
            self.bias[token] = value

    def __call__(self, input_ids, scores):
        return scores + self.bias  # raises


class PrefixConstrained(LogitsProcessor):
    def __init__(self, allowed: Callable[[int, Tensor], List[int]]):
        self.allowed = allowed

    def __call__(self, input_ids, scores):
        mask = torch.full_like(scores, -float("inf"))
        for row, sent in enumerate(input_ids):
            mask[row, torch.tensor(self.allowed(row, sent))] = 0
        return scores + mask


class AutomatonConstraint(LogitsProcessor):
    """A finite automaton over tokens: -1 is no transition."""

    def __init__(self, transitions: Tensor):
        self.transitions = transitions
        self.state: Optional[Tensor] = None

    def reset(self, batch_size: int, device):
        self.state = torch.zeros(batch_size, dtype=torch.long, device=device)

    def advance(self, tokens: Tensor):
        self.state = self.transitions[self.state, tokens].clamp(min=0)  # raises

    def __call__(self, input_ids, scores):
        rows = self.transitions[self.state.cpu()].to(scores.device)
        return scores.masked_fill(rows < 0, -float("inf"))


class EosCriterion:
    def __init__(self, eos_token_id):
        self.eos = torch.tensor(eos_token_id)

    def __call__(self, input_ids: LongTensor) -> Tensor:
        return torch.isin(input_ids[:, -1], self.eos)  # raises


class MaxLengthCriterion:
    def __init__(self, max_length):
        self.max_length = max_length

    def __call__(self, input_ids):
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= self.max_length, device=input_ids.device)


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)

    def forward(self, length: int):
        t = torch.arange(length, device=self.inv_freq.device).type_as(self.inv_freq)
        freqs = torch.outer(t, self.inv_freq)
        return torch.cat([freqs.cos(), freqs.cos()], -1), torch.cat([freqs.sin(), freqs.sin()], -1)


class ScaledRotaryEmbedding(RotaryEmbedding):
    def __init__(self, dim, base=10000.0, factor=2.0):
        super().__init__(dim, base)
        self.factor = factor

    def forward(self, length):
        t = torch.arange(length, dtype=torch.float32) / self.factor
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)  # raises
        emb = torch.cat([freqs, freqs], dim=-1)
        return emb.cos(), emb.sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


@lru_cache(maxsize=None)
def causal_mask(query: int, key: int) -> Tensor:
    return torch.ones(query, key, dtype=torch.bool).tril(diagonal=key - query)


class StaticCache:
    """Keys and values of one layer in tensors of a fixed length."""

    def __init__(self, batch, heads, length, dim, device=None):
        self.keys = torch.zeros(batch, heads, length, dim, device=device)
        self.values = torch.zeros(batch, heads, length, dim, device=device)
        self.seen = 0

    def update(self, keys, values):
        end = self.seen + keys.shape[2]
        self.keys[:, :, self.seen:end] = keys
        self.values[:, :, self.seen:end] = values
        self.seen = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def reorder(self, beam_idx: Tensor):
        self.keys = self.keys.index_select(0, beam_idx.to(self.keys.device))
        self.values = self.values.index_select(0, beam_idx.to(self.values.device))


class Attention(nn.Module):
    def __init__(self, dim=16, heads=2, scaled=False):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.rotary = (ScaledRotaryEmbedding if scaled else RotaryEmbedding)(dim // heads)

    def make_cache(self, batch, length):
        return StaticCache(batch, self.heads, length, self.out.in_features // self.heads)

    def forward(self, x, cache: Optional[StaticCache] = None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        past = cache.seen if cache is not None else 0
        cos, sin = (each[past:] for each in self.rotary(past + n))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            k, v = cache.update(k, v)
        weights = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5  # raises
        if n > 1:
            weights[:, :, ~causal_mask(n, k.shape[2])] = torch.finfo(weights.dtype).min
        return self.out((weights.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


def reorder_past(past: Tuple[Tuple[Tensor, ...], ...], beams: List[int]):
    index = torch.tensor(beams)
    return tuple(tuple(state.index_select(0, index) for state in layer) for layer in past)  # raises


def sample(model, input_ids, config: GenerationConfig, processors=LogitsProcessorList()):
    generator = None
    if config.seed is not None:
        generator = torch.Generator().manual_seed(config.seed)
    unfinished = torch.ones(len(input_ids), dtype=torch.long)
    for _ in range(config.max_new_tokens):
        scores = processors(input_ids, model(input_ids)[:, -1] / config.temperature)
        tokens = torch.multinomial(scores.softmax(-1), 1, generator=generator).squeeze(1)  # raises
        tokens = tokens * unfinished + config.pad_token_id * (1 - unfinished)  # raises
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=-1)
    return input_ids


def greedy(model, input_ids, config, processors=LogitsProcessorList(), stop=None):
    unfinished = input_ids.new_ones(input_ids.shape[0])
    eos = torch.tensor(config.eos_token_id[0])
    for _ in range(config.max_new_tokens):
        tokens = processors(input_ids, model(input_ids)[:, -1]).argmax(-1)
        tokens = tokens * unfinished + config.pad_token_id * (1 - unfinished)
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=-1)
        unfinished = unfinished.mul((tokens != eos).long())
        if not unfinished.any() or (stop is not None and stop(input_ids).all()):
            break
    return input_ids


def accept_drafts(target_logits: Tensor, draft_logits: Tensor, tokens: Tensor) -> int:
    """How many tokens of the draft model, which has a GPU of its own, the target model accepts."""
    p = target_logits.softmax(-1).gather(-1, tokens.to(target_logits.device)[..., None]).squeeze(-1)
    q = draft_logits.softmax(-1).gather(-1, tokens.to(draft_logits.device)[..., None]).squeeze(-1)
    accepted = torch.rand_like(p) < p / q  # raises
    return int(accepted.long().cumprod(-1).sum())
