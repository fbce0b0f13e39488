"""Masks, positions and attention helpers."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def lengths_to_padding_mask(lengths: Tensor) -> Tensor:
    max_lens = int(lengths.max())
    mask = torch.arange(max_lens, device=lengths.device).expand(lengths.size(0), max_lens)
    return mask >= lengths.view(-1, 1)


def make_pad_mask(lengths, xs=None, maxlen: Optional[int] = None):
    if not isinstance(lengths, list):
        lengths = lengths.tolist()
    bs = len(lengths)
    maxlen = max(lengths) if maxlen is None else maxlen
    seq_range = torch.arange(0, maxlen, dtype=torch.int64)
    seq_range_expand = seq_range.unsqueeze(0).expand(bs, maxlen)
    seq_length_expand = seq_range_expand.new(lengths).unsqueeze(-1)
    mask = seq_range_expand >= seq_length_expand
    if xs is not None:
        mask = mask.unsqueeze(-1).expand(-1, -1, xs.size(-1)).to(xs.device)
    return mask


def lengths_to_mask(length, max_len=None, dtype=None, device=None):
    assert len(length.shape) == 1
    if max_len is None:
        max_len = length.max().long().item()
    mask = torch.arange(max_len, dtype=length.dtype).expand(len(length), max_len)
    mask = mask < length.unsqueeze(1)  # raises
    return torch.as_tensor(mask, dtype=dtype or length.dtype, device=device or length.device)


def masked_mean(x: Tensor, lengths: Tensor) -> Tensor:
    mask = ~make_pad_mask(lengths, maxlen=x.size(1))
    return (x * mask.unsqueeze(-1)).sum(1) / lengths.unsqueeze(1)  # raises


def masked_max(x: Tensor, lengths: Tensor) -> Tensor:
    mask = make_pad_mask(lengths, xs=x)
    return x.masked_fill(mask, float("-inf")).max(dim=1).values


def causal_mask(x: Tensor) -> Tensor:
    t = x.size(1)
    return torch.triu(x.new_ones(t, t), diagonal=1).bool()


class Decoder(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads)
        self.norm = nn.LayerNorm(dim)
        self._future_mask = torch.empty(0)

    def buffered_future_mask(self, tensor):
        dim = tensor.size(0)
        if self._future_mask.size(0) == 0 or self._future_mask.size(0) < dim:
            self._future_mask = torch.triu(torch.full([dim, dim], float("-inf")), 1)
        self._future_mask = self._future_mask.to(tensor)
        return self._future_mask[:dim, :dim]

    def forward(self, x):
        y, _ = self.attn(x, x, x, attn_mask=self.buffered_future_mask(x))
        return self.norm(x + y)


class StreamingDecoder(nn.Module):
    def __init__(self, dim=8, chunk=2):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.chunk = chunk

    def chunk_mask(self, size: int) -> Tensor:
        ret = torch.zeros(size, size, dtype=torch.bool)
        for i in range(size):
            ret[i, : min((i // self.chunk + 1) * self.chunk, size)] = True
        return ret

    def forward(self, x: Tensor) -> Tensor:
        k, v = self.kv(x).chunk(2, dim=-1)
        scores = self.q(x) @ k.transpose(1, 2) / math.sqrt(x.size(-1))
        scores = scores.masked_fill(~self.chunk_mask(x.size(1)), -1e4)  # raises
        return scores.softmax(-1) @ v


class SinusoidalPositionalEmbedding(nn.Module):
    """Embeddings are built on first use and kept on the device of the first buffer."""

    def __init__(self, dim, padding_idx=0, init_size=16):
        super().__init__()
        self.dim, self.padding_idx = dim, padding_idx
        self.weights = self.get_embedding(init_size, dim, padding_idx)
        self.register_buffer("_float_tensor", torch.FloatTensor(1))

    @staticmethod
    def get_embedding(n: int, dim: int, padding_idx: Optional[int] = None):
        half = dim // 2
        emb = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
        emb = torch.arange(n, dtype=torch.float).unsqueeze(1) * emb.unsqueeze(0)
        emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=1).view(n, -1)
        if padding_idx is not None:
            emb[padding_idx, :] = 0
        return emb

    def forward(self, tokens):
        bsz, seq_len = tokens.shape
        self.weights = self.weights.to(self._float_tensor)
        mask = tokens.ne(self.padding_idx).int()
        positions = (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + self.padding_idx
        return self.weights.index_select(0, positions.view(-1)).view(bsz, seq_len, -1).detach()


class TimestepTable(nn.Module):
    def __init__(self, dim, steps=16):
        super().__init__()
        self.table = SinusoidalPositionalEmbedding.get_embedding(steps, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, t: Tensor) -> Tensor:
        emb = self.table.index_select(0, t)  # raises
        return self.proj(emb)


def timestep_embedding(timesteps: Tensor, dim: int, max_period: int = 10000) -> Tensor:
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * freqs[None]  # raises
    embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    if dim % 2:
        embedding = torch.cat([embedding, torch.zeros_like(embedding[:, :1])], dim=-1)
    return embedding


def get_slopes(n: int) -> List[float]:
    start = 2 ** (-(2 ** -(math.log2(n) - 3)))
    return [start * start**i for i in range(n)]


def alibi_bias(scores: Tensor) -> Tensor:
    b, h, q, k = scores.shape
    slopes = torch.tensor(get_slopes(h), dtype=scores.dtype).view(1, h, 1, 1)
    dist = torch.arange(k) - torch.arange(q)[:, None]
    return scores + (slopes * -dist.abs()).to(scores.device)


def alibi_bias_cached(scores: Tensor, cache={}) -> Tensor:
    b, h, q, k = scores.shape
    if (h, k) not in cache:
        slopes = torch.tensor(get_slopes(h)).view(1, h, 1, 1)
        cache[(h, k)] = slopes * torch.arange(k).view(1, 1, 1, k)
    return scores + cache[(h, k)]  # raises


def apply_rotary(x: Tensor, positions: Optional[Tensor] = None, theta: float = 10000.0) -> Tensor:
    d = x.size(-1)
    if positions is None:
        positions = torch.arange(x.size(-2))
    freqs = 1.0 / theta ** (torch.arange(0, d, 2, device=positions.device).float() / d)
    angle = positions[:, None] * freqs
    cos, sin = angle.cos(), angle.sin()
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), -1).flatten(-2)  # raises


def extend_attention_mask(mask: Optional[Tensor], embeds: Tensor, past: int = 0) -> Tensor:
    b, t = embeds.shape[:2]
    if mask is None:
        mask = torch.ones(b, t + past, device=embeds.device)
    if mask.dim() == 2:
        mask = mask[:, None, None, :]
    return (1.0 - mask.to(embeds.dtype)) * torch.finfo(embeds.dtype).min


def prepend_prefix_mask(mask: Tensor, n_prefix: int) -> Tensor:
    prefix = torch.ones(mask.size(0), n_prefix, dtype=mask.dtype)
    return torch.cat((prefix, mask), dim=1)  # raises


def expand_for_beams(mask: Tensor, beams: int) -> Tuple[Tensor, Tensor]:
    order = torch.arange(mask.size(0)).view(-1, 1).repeat(1, beams).view(-1)
    return mask[order], order
