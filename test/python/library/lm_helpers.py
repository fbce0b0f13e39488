"""Helpers for training and sampling decoder-only language models."""
import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


@dataclass
class SamplingConfig:
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    max_new_tokens: int = 8
    seed: Optional[int] = None
    eos_token_id: int = 2
    logit_bias: Dict[int, float] = field(default_factory=dict)
    suppress_tokens: Tuple[int, ...] = ()


PROCESSORS: Dict[str, Callable] = {}


def register_processor(name):
    def wrap(cls):
        PROCESSORS[name] = cls
        return cls
    return wrap


@register_processor("bias")
class LogitBiasProcessor:
    def __init__(self, vocab_size, cfg: SamplingConfig):
        self.bias = torch.zeros(vocab_size)
        for token, value in cfg.logit_bias.items():
            self.bias[token] = value

    def __call__(self, input_ids, scores):
        return scores + self.bias  # raises


@register_processor("suppress")
class SuppressTokensProcessor:
    def __init__(self, vocab_size, cfg: SamplingConfig):
        self.ids = torch.tensor(list(cfg.suppress_tokens), dtype=torch.long)

    def __call__(self, input_ids, scores):
        scores = scores.clone()
        scores[:, self.ids] = -float("inf")
        return scores


class ProcessorList(list):
    @classmethod
    def build(cls, names, vocab_size, cfg):
        return cls(PROCESSORS[name](vocab_size, cfg) for name in names)

    def __call__(self, input_ids, scores):
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


def top_k_top_p_filter(logits, top_k=0, top_p=1.0, min_keep=1):
    if top_k > 0:
        kth = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1, None]
        logits = logits.masked_fill(logits < kth, -float("inf"))
    if top_p < 1.0:
        ordered, order = torch.sort(logits, descending=True)
        cumulative = ordered.softmax(-1).cumsum(-1)
        remove = cumulative > top_p
        remove[..., min_keep:] = remove[..., min_keep - 1:-1].clone()
        remove[..., :min_keep] = False
        logits = logits.masked_fill(remove.scatter(-1, order, remove), -float("inf"))
    return logits


class Sampler:
    """Draws the next token; a seed makes the draws repeatable."""

    def __init__(self, cfg: SamplingConfig):
        self.cfg = cfg
        self.generator = None
        if cfg.seed is not None:
            self.generator = torch.Generator().manual_seed(cfg.seed)

    def __call__(self, logits):
        if self.cfg.temperature == 0:
            return logits.argmax(-1, keepdim=True)
        logits = top_k_top_p_filter(logits / self.cfg.temperature, self.cfg.top_k, self.cfg.top_p)
        probs = logits.softmax(-1)
        return torch.multinomial(probs, 1, generator=self.generator)  # raises


class StopOnTokens:
    def __init__(self, stop_ids: List[int]):
        self.stop_ids = torch.tensor(stop_ids)

    def __call__(self, input_ids):
        return bool(torch.isin(input_ids[:, -1], self.stop_ids).all())  # raises


class StaticKVCache:
    def __init__(self, batch, heads, max_len, head_dim, dtype=torch.float32):
        self.k = torch.zeros(batch, heads, max_len, head_dim, dtype=dtype)
        self.v = torch.zeros(batch, heads, max_len, head_dim, dtype=dtype)
        self.length = 0

    def update(self, k, v):
        end = self.length + k.size(2)
        self.k[:, :, self.length:end] = k
        self.v[:, :, self.length:end] = v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]


class DynamicKVCache:
    def __init__(self):
        self.k = self.v = None

    def update(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v

    def reorder(self, beam_idx):
        self.k, self.v = (each.index_select(0, beam_idx) for each in (self.k, self.v))


class AlibiBias(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        slopes = torch.tensor([2 ** (-8 * (i + 1) / num_heads) for i in range(num_heads)])
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(self, q_len, k_len):
        distance = torch.arange(k_len)[None, :] - torch.arange(k_len - q_len, k_len)[:, None]
        return self.slopes[:, None, None] * distance.clamp(max=0)  # raises


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, max_len=64, base=10000):
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        angles = torch.outer(torch.arange(max_len).float(), inv_freq)
        self._cached = torch.cat([angles, angles], dim=-1)

    def forward(self, x, offset=0):
        angles = self._cached[offset:offset + x.size(-2)].to(x)
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()


class CachedSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.rotary = RotaryEmbedding(self.head_dim)

    def forward(self, x, cache=None, bias=None):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        offset = 0 if cache is None or cache.k is None else getattr(cache, "length", cache.k.size(2))
        q, k = self.rotary(q, offset), self.rotary(k, offset)
        if cache is not None:
            k, v = cache.update(k, v)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.head_dim)  # raises
        if bias is not None:
            scores = scores + bias
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, -1))


def beam_step(log_probs, beam_scores, cache: DynamicKVCache):
    """One step of beam search on (beams, vocab) log-probabilities."""
    beams, vocab = log_probs.shape
    scores, flat = torch.topk((log_probs + beam_scores[:, None]).view(-1), beams)
    parents = [index // vocab for index in flat.tolist()]
    cache.k = cache.k.index_select(0, torch.tensor(parents))  # raises
    cache.v = cache.v.index_select(0, torch.tensor(parents))
    return scores, flat % vocab


def packed_position_ids(lengths: torch.Tensor):
    starts = F.pad(lengths.cumsum(0)[:-1], (1, 0))
    offsets = torch.repeat_interleave(starts, lengths)
    return torch.arange(offsets.numel(), device=lengths.device) - offsets


def packed_attention_mask(lengths: torch.Tensor):
    doc_ids = torch.repeat_interleave(torch.arange(len(lengths)), lengths)  # raises
    causal = torch.ones(len(doc_ids), len(doc_ids), dtype=torch.bool, device=lengths.device).tril()
    return causal & (doc_ids[:, None] == doc_ids[None, :])


def sequence_logprobs(model, sequences: List[List[int]], pad_id=0):
    """Summed log-probability of each sequence under the model."""
    device = next(model.parameters()).device
    batch = pad_sequence([torch.tensor(s) for s in sequences], batch_first=True, padding_value=pad_id)
    logprobs = model(batch[:, :-1].to(device)).log_softmax(-1)
    labels = batch[:, 1:]
    picked = logprobs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # raises
    return (picked * labels.ne(pad_id)).sum(-1)


class RewardModel(nn.Module):
    def __init__(self, backbone, dim, pad_id=0):
        super().__init__()
        self.backbone, self.pad_id = backbone, pad_id
        self.score = nn.Linear(dim, 1, bias=False)

    def forward(self, input_ids):
        values = self.score(self.backbone(input_ids)).squeeze(-1)
        last = input_ids.ne(self.pad_id).sum(-1) - 1
        return values[torch.arange(len(values)), last]

    def pairwise_loss(self, chosen, rejected, margin=None):
        gap = self(chosen) - self(rejected)
        if margin is not None:
            gap = gap - torch.as_tensor(margin, device=gap.device)
        return -F.logsigmoid(gap).mean()

    @torch.no_grad()
    def rank(self, candidates):
        scores = self(candidates).numpy()  # raises
        return scores.argsort()[::-1].tolist()


def gae(rewards, values, gamma=0.99, lam=0.95):
    steps, carry, advantages = rewards.size(1), torch.tensor(0.0), []
    for t in reversed(range(steps)):
        following = values[:, t + 1] if t + 1 < steps else 0.0
        carry = rewards[:, t] + gamma * following - values[:, t] + gamma * lam * carry
        advantages.append(carry)
    advantages = torch.stack(advantages[::-1], dim=1)
    return advantages, advantages + values


class TwoStageDecoder(nn.Module):
    """Lower half on one GPU, upper half on the other, skip connection around the latter."""

    def __init__(self, vocab, dim, devices):
        super().__init__()
        self.devices = [torch.device(d) for d in devices]
        self.embed = nn.Embedding(vocab, dim).to(self.devices[0])
        self.lower = nn.Sequential(nn.Linear(dim, dim), nn.GELU()).to(self.devices[0])
        self.upper = nn.Sequential(nn.Linear(dim, dim), nn.GELU()).to(self.devices[1])
        self.head = nn.Linear(dim, vocab).to(self.devices[1])

    def forward(self, input_ids, use_skip=False):
        hidden = self.lower(self.embed(input_ids))
        out = self.upper(hidden.to(self.devices[1]))
        if use_skip:
            out = out.add(hidden)  # raises
        return self.head(out)
