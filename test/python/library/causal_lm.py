"""Causal language modelling: rotary tables, masks, key/value caches, generation processors and losses."""
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class CausalLMConfig:
    vocab_size: int = 40
    hidden_size: int = 32
    num_heads: int = 4
    num_layers: int = 2
    max_positions: int = 16
    position_type: str = "rope"
    rope_type: str = "default"
    rope_theta: float = 10000.0
    rope_factor: float = 2.0
    sliding_window: Optional[int] = None
    pad_token_id: int = 0
    eos_token_id: int = 2

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads


@dataclass
class CausalLMOutput:
    logits: torch.Tensor
    loss: Optional[torch.Tensor] = None
    past_key_values: Optional["Cache"] = None

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


ROPE_INIT: Dict[str, Callable] = {}


def register_rope(name: str):
    def wrap(function):
        ROPE_INIT[name] = function
        return function
    return wrap


@register_rope("default")
def _default_frequencies(config, device=None, seq_len=None):
    exponents = torch.arange(0, config.head_dim, 2, device=device).float() / config.head_dim
    return 1.0 / (config.rope_theta ** exponents)


@register_rope("dynamic")
def _dynamic_frequencies(config, device=None, seq_len=None):
    seq_len = max(seq_len or 0, config.max_positions)
    grown = config.rope_factor * seq_len / config.max_positions - (config.rope_factor - 1)
    base = config.rope_theta * grown ** (config.head_dim / (config.head_dim - 2))
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.int64).float().to(device)
    return 1.0 / (base ** (steps / config.head_dim))


@register_rope("yarn")
def _yarn_frequencies(config, device=None, seq_len=None):
    extrapolated = _default_frequencies(config, device)
    interpolated = extrapolated / config.rope_factor
    low, high = 0.5, config.head_dim / 2 - 1
    ramp = torch.clamp((torch.arange(config.head_dim // 2).float() - low) / (high - low), 0, 1)
    return interpolated * ramp + extrapolated * (1 - ramp)  # raises


class RotaryEmbedding(nn.Module):
    def __init__(self, config: CausalLMConfig):
        super().__init__()
        self.config = config
        self.rope_init = ROPE_INIT[config.rope_type]
        self.max_seq_len_cached = config.max_positions
        self.register_buffer("inv_freq", self.rope_init(config), persistent=False)
        self.original_inv_freq = self.inv_freq

    def _frequency_update(self, seq_len: int, device) -> None:
        if seq_len > self.max_seq_len_cached:
            self.inv_freq = self.rope_init(self.config, device, seq_len=seq_len)
            self.max_seq_len_cached = seq_len
        elif seq_len <= self.config.max_positions < self.max_seq_len_cached:
            self.inv_freq = self.original_inv_freq
            self.max_seq_len_cached = self.config.max_positions

    @torch.no_grad()
    def forward(self, x, position_ids):
        if self.config.rope_type != "default":
            self._frequency_update(int(position_ids.max()) + 1, x.device)
        freqs = position_ids[:, :, None].float() * self.inv_freq[None, None, :]  # raises
        table = torch.cat((freqs, freqs), dim=-1)
        return table.cos().to(x.dtype), table.sin().to(x.dtype)


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


@lru_cache(maxsize=16)
def sinusoid_table(length: int, dim: int) -> torch.Tensor:
    angle = np.arange(length)[:, None] / np.power(10000, 2 * (np.arange(dim)[None] // 2) / dim)
    angle[:, 0::2], angle[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    return torch.from_numpy(angle.astype(np.float32))


class SinusoidalPositions(nn.Module):
    def __init__(self, config: CausalLMConfig, residual: bool = True):
        super().__init__()
        self.config, self.residual = config, residual

    def lookup(self, hidden, offset):
        length = hidden.shape[1]
        return sinusoid_table(self.config.max_positions, hidden.shape[-1])[offset:offset + length]

    def forward(self, hidden, offset: int = 0):
        table = self.lookup(hidden, offset)
        if not self.residual:
            return table.expand_as(hidden).type_as(hidden)
        return hidden + table  # raises


class AlibiBias(nn.Module):
    def __init__(self, num_heads: int, learned: bool = False):
        super().__init__()
        slopes = torch.tensor([2 ** (-8 * (i + 1) / num_heads) for i in range(num_heads)])
        self.slopes = nn.Parameter(slopes) if learned else slopes
        self.num_heads = num_heads

    def forward(self, attention_mask):
        positions = (attention_mask.cumsum(dim=-1) - 1) * attention_mask
        return self.slopes.view(1, -1, 1, 1) * positions[:, None, None, :].float()  # raises


class AttentionMaskConverter:
    def __init__(self, sliding_window: Optional[int] = None):
        self.sliding_window = sliding_window

    @classmethod
    def from_config(cls, config: CausalLMConfig):
        return cls(config.sliding_window)

    def _make_causal(self, shape, dtype, device, past=0):
        batch, target = shape
        floor = torch.finfo(dtype).min
        mask = torch.full((target, target), floor)
        steps = torch.arange(mask.size(-1))
        mask.masked_fill_(steps < (steps + 1).view(-1, 1), 0)
        mask = mask.to(device=device, dtype=dtype)
        if past > 0:
            mask = torch.cat([torch.zeros(target, past, dtype=dtype, device=device), mask], dim=-1)
        if self.sliding_window is not None:
            band = torch.ones(target, target + past, dtype=torch.bool).tril(past - self.sliding_window)
            mask = mask.masked_fill(band, floor)  # raises
        return mask[None, None].expand(batch, 1, target, target + past)

    def to_4d(self, attention_mask, query_length, dtype):
        batch, key_length = attention_mask.shape
        causal = self._make_causal((batch, query_length), dtype, attention_mask.device, key_length - query_length)
        hidden = attention_mask[:, None, None, :] == 0
        return causal.masked_fill(hidden, torch.finfo(dtype).min)


def document_ids(cu_seqlens):
    lengths = cu_seqlens[1:] - cu_seqlens[:-1]
    return torch.repeat_interleave(torch.arange(lengths.numel()), lengths)  # raises


def packed_positions(cu_seqlens):
    ends = cu_seqlens.tolist()
    pieces = [torch.arange(stop - start) for start, stop in zip(ends, ends[1:])]
    return torch.cat(pieces).unsqueeze(0).to(cu_seqlens.device)


class Cache:
    def __init__(self):
        self.layers: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}

    def update(self, key, value, layer: int, positions=None):
        if layer in self.layers:
            old_key, old_value = self._load(layer, key.device)
            key, value = torch.cat([old_key, key], dim=2), torch.cat([old_value, value], dim=2)
        self._store(layer, key, value)
        return key, value

    def _load(self, layer, device):
        return self.layers[layer]

    def _store(self, layer, key, value):
        self.layers[layer] = (key, value)

    def get_seq_length(self, layer: int = 0) -> int:
        return self.layers[layer][0].shape[2] if layer in self.layers else 0

    def reorder(self, beam_idx):
        for layer, states in self.layers.items():
            self.layers[layer] = tuple(state.index_select(0, beam_idx.to(state.device)) for state in states)


class OffloadedCache(Cache):
    def _load(self, layer, device):
        return tuple(state.to(device, non_blocking=True) for state in self.layers[layer])

    def _store(self, layer, key, value):
        self.layers[layer] = (key.detach().cpu(), value.detach().cpu())


class QuantizedCache(Cache):
    @staticmethod
    def _quantize(state):
        scale = state.abs().amax(dim=-1, keepdim=True).clamp(min=1e-6) / 127
        return (state / scale).round().to(torch.int8).cpu(), scale.cpu()

    def _load(self, layer, device):
        return tuple(codes.to(device).float() * scale for codes, scale in self.quantized[layer])  # raises

    def _store(self, layer, key, value):
        self.quantized = getattr(self, "quantized", {})
        self.quantized[layer] = (self._quantize(key), self._quantize(value))
        self.layers[layer] = (self.quantized[layer][0][0], self.quantized[layer][1][0])


class StaticCache(Cache):
    def __init__(self, max_length: int):
        super().__init__()
        self.max_length = max_length

    def _allocate(self, state):
        batch, heads, _, dim = state.shape
        return torch.zeros(batch, heads, self.max_length, dim, dtype=state.dtype)

    def update(self, key, value, layer, positions=None):
        if layer not in self.layers:
            self.layers[layer] = (self._allocate(key), self._allocate(value))
        for buffer, state in zip(self.layers[layer], (key, value)):
            buffer.index_copy_(2, positions, state)  # raises
        return self.layers[layer]


class LogitsProcessor:
    def __call__(self, input_ids, scores):
        raise NotImplementedError


class SequenceBiasProcessor(LogitsProcessor):
    def __init__(self, bias: Dict[int, float]):
        self.bias, self.table = bias, None

    def _prepare(self, scores):
        if self.table is None:
            self.table = torch.zeros(scores.shape[-1], dtype=scores.dtype)
            self.table[list(self.bias)] = torch.tensor(list(self.bias.values()), dtype=scores.dtype)

    def __call__(self, input_ids, scores):
        self._prepare(scores)
        return scores + self.table  # raises


class NoBadWordsProcessor(SequenceBiasProcessor):
    def __init__(self, words: List[int]):
        super().__init__({word: float("-inf") for word in words})

    def _prepare(self, scores):
        super()._prepare(scores)
        self.table = self.table.to(scores.device)


class SuppressTokensProcessor(LogitsProcessor):
    def __init__(self, tokens: List[int], begin_index: Optional[int] = None):
        self.tokens, self.begin_index = torch.tensor(tokens), begin_index

    def __call__(self, input_ids, scores):
        if self.begin_index is None:
            scores[:, self.tokens] = -float("inf")
        elif input_ids.shape[-1] == self.begin_index:
            vocab = torch.arange(scores.shape[-1], device=scores.device)
            scores = scores.masked_fill(torch.isin(vocab, self.tokens), -float("inf"))  # raises
        return scores


class RepetitionPenaltyProcessor(LogitsProcessor):
    def __init__(self, penalty: float):
        self.penalty = torch.tensor(penalty)

    def __call__(self, input_ids, scores):
        picked = torch.gather(scores, 1, input_ids)
        picked = picked * self.penalty * (picked < 0) + picked / self.penalty * (picked >= 0)
        return scores.scatter(1, input_ids, picked)


class WatermarkProcessor(LogitsProcessor):
    def __init__(self, greenlist_ratio=0.5, bias=2.0, key=15485863):
        self.ratio, self.bias, self.key = greenlist_ratio, bias, key
        self.rng = torch.Generator()

    def _greenlist(self, token: int, scores):
        self.rng.manual_seed(self.key * token % (2 ** 31))
        order = torch.randperm(scores.shape[-1], generator=self.rng, device=scores.device)  # raises
        return order[:int(self.ratio * order.numel())]

    def __call__(self, input_ids, scores):
        for row in range(input_ids.shape[0]):
            scores[row, self._greenlist(int(input_ids[row, -1]), scores)] += self.bias
        return scores


class EosCriterion:
    def __init__(self, eos_token_id):
        self.eos = torch.tensor(eos_token_id if isinstance(eos_token_id, list) else [eos_token_id])

    def __call__(self, input_ids):
        self.eos = self.eos.to(input_ids.device)
        return torch.isin(input_ids[:, -1], self.eos)


class MaxLengthCriterion:
    def __init__(self, max_length: int):
        self.max_length = max_length

    def __call__(self, input_ids):
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= self.max_length, dtype=torch.bool)


class StoppingCriteriaList(list):
    def __call__(self, input_ids):
        done = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
        for criterion in self:
            done = done | criterion(input_ids)  # raises
        return done


class BeamScorer:
    def __init__(self, batch_size: int, num_beams: int, group_offset: bool = True):
        self.batch_size, self.num_beams, self.group_offset = batch_size, num_beams, group_offset
        self.lengths = torch.zeros(batch_size, num_beams)

    def step(self, log_probs, beam_scores):
        vocab = log_probs.shape[-1]
        total = (log_probs + beam_scores.view(-1, 1)).view(self.batch_size, self.num_beams * vocab)
        best, index = total.topk(self.num_beams, dim=-1)
        beams, tokens = torch.div(index, vocab, rounding_mode="floor"), index % vocab
        self.lengths += 1
        if self.group_offset:
            first = torch.arange(self.batch_size).unsqueeze(1) * self.num_beams
            beams = beams + first  # raises
        return best.view(-1), tokens.view(-1), beams.view(-1)


class CausalLoss:
    ignore_index = -100

    def shift(self, logits, labels):
        labels = labels.to(logits.device)
        return logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1)

    def __call__(self, logits, labels, **kwargs):
        return self.reduce(*self.shift(logits, labels), **kwargs)

    def reduce(self, logits, labels):
        return F.cross_entropy(logits, labels, ignore_index=self.ignore_index)


class ClassWeightedLoss(CausalLoss):
    def __init__(self, weights: List[float]):
        self.weights = torch.as_tensor(weights)

    def reduce(self, logits, labels):
        return F.cross_entropy(logits, labels, weight=self.weights, ignore_index=self.ignore_index)  # raises


class PackedLoss(CausalLoss):
    def reduce(self, logits, labels, cu_seqlens=None):
        starts = torch.zeros(labels.numel() + 1, dtype=torch.bool)
        for end in cu_seqlens[1:-1].tolist():
            starts[end] = True
        return super().reduce(logits, labels.masked_fill(starts[1:], self.ignore_index))  # raises


class MultiTokenLoss(CausalLoss):
    def __call__(self, heads: List[torch.Tensor], labels):
        losses = []
        for depth, logits in enumerate(heads):
            tail = labels.new_full((labels.shape[0], depth), self.ignore_index)
            losses.append(super().__call__(logits, torch.cat([labels[:, depth:], tail], dim=1)))
        return sum(losses) / torch.tensor(len(losses))


class DecoderLayer(nn.Module):
    def __init__(self, config: CausalLMConfig, index: int):
        super().__init__()
        self.config, self.index = config, index
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)
        self.scale = torch.tensor(math.sqrt(config.head_dim))

    def forward(self, hidden, mask, rotary, cache=None):
        batch, length, _ = hidden.shape
        q, k, v = self.qkv(hidden).view(batch, length, self.config.num_heads, -1).transpose(1, 2).chunk(3, dim=-1)
        q, k = apply_rotary(q, k, *rotary)
        if cache is not None:
            k, v = cache.update(k, v, self.index)
        weights = (q @ k.transpose(-1, -2) / self.scale + mask).softmax(dim=-1)
        return hidden + self.out((weights @ v).transpose(1, 2).reshape(batch, length, -1))


class CausalLM(nn.Module):
    def __init__(self, config: CausalLMConfig):
        super().__init__()
        self.config, self.loss_function = config, CausalLoss()
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, i) for i in range(config.num_layers))
        self.rotary = RotaryEmbedding(config)
        self.masks = AttentionMaskConverter.from_config(config)

    def forward(self, input_ids, attention_mask=None, labels=None, past_key_values=None):
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        if attention_mask is None:
            attention_mask = input_ids.new_ones(input_ids.shape[0], past + input_ids.shape[1])
        positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, past:]
        hidden = self.embed(input_ids)
        mask, rotary = self.masks.to_4d(attention_mask, input_ids.shape[1], hidden.dtype), self.rotary(hidden, positions)
        for layer in self.layers:
            hidden = layer(hidden, mask, rotary, past_key_values)
        logits = hidden @ self.embed.weight.t()
        loss = None if labels is None else self.loss_function(logits, labels)
        return CausalLMOutput(logits, loss, past_key_values)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=4, processors=(), cache=None):
        cache = Cache() if cache is None else cache
        unfinished = torch.ones(input_ids.shape[0], dtype=torch.long, device=input_ids.device)
        eos, step_ids = EosCriterion(self.config.eos_token_id), input_ids
        for _ in range(max_new_tokens):
            scores = self(step_ids, past_key_values=cache).logits[:, -1]
            for processor in processors:
                scores = processor(input_ids, scores)
            step_ids = (scores.argmax(-1) * unfinished + self.config.pad_token_id * (1 - unfinished)).unsqueeze(1)
            input_ids = torch.cat([input_ids, step_ids], dim=1)
            unfinished = unfinished * (~eos(input_ids)).long()
        return input_ids
