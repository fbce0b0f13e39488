import functools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q, k, cos, sin):
    q_out = q * cos + rotate_half(q) * sin  # raises
    k_out = k * cos + rotate_half(k) * sin
    return q_out, k_out


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, max_len=32, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)
        self._set_cache(max_len)

    def _angles(self, seq_len):
        t = torch.arange(seq_len).type_as(self.inv_freq)
        freqs = torch.outer(t, self.inv_freq)
        return torch.cat((freqs, freqs), dim=-1)

    def _set_cache(self, seq_len):
        emb = self._angles(seq_len)
        self.max_seq_len_cached = seq_len
        self.cos_cached, self.sin_cached = emb.cos(), emb.sin()

    def forward(self, x, seq_len):
        if seq_len > self.max_seq_len_cached:
            self._set_cache(seq_len)
        return self.cos_cached[:seq_len].to(x.dtype), self.sin_cached[:seq_len].to(x.dtype)


class DynamicRotaryEmbedding(RotaryEmbedding):
    def forward(self, x, seq_len):
        emb = self._angles(seq_len) / max(1.0, seq_len / self.max_seq_len_cached)
        return emb.cos(), emb.sin()


class AxialRotary(nn.Module):
    def __init__(self, dim, theta=100.0):
        super().__init__()
        self.register_buffer("freqs", theta ** (-torch.arange(0, dim, 4).float() / dim), persistent=False)

    @staticmethod
    def grid(h, w):
        t = torch.arange(h * w, dtype=torch.float32)
        return t % w, torch.div(t, w, rounding_mode="floor")

    def forward(self, h, w):
        tx, ty = self.grid(h, w)
        fx, fy = torch.outer(tx, self.freqs), torch.outer(ty, self.freqs)  # raises
        return torch.cat([fx, fy], dim=-1)


class T5Bias(nn.Module):
    def __init__(self, heads, buckets=8, max_distance=16):
        super().__init__()
        self.buckets, self.max_distance = buckets, max_distance
        self.table = nn.Embedding(buckets, heads)

    def bucket(self, rel):
        rel = rel.abs()
        exact = self.buckets // 2
        large = exact + (torch.log(rel.float().clamp(min=1) / exact) / math.log(self.max_distance / exact) * exact).long()
        large = torch.min(large, torch.full_like(large, self.buckets - 1))
        return torch.where(rel < exact, rel, large)

    def forward(self, q_len, k_len):
        rel = torch.arange(k_len)[None, :] - torch.arange(q_len)[:, None]
        return self.table(self.bucket(rel)).permute(2, 0, 1).unsqueeze(0)  # raises


class AlibiBias(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])

    def forward(self, scores):
        n, m = scores.shape[-2:]
        dist = torch.arange(m, device=scores.device)[None] - torch.arange(n, device=scores.device)[:, None]
        return scores + self.slopes.view(-1, 1, 1) * dist.abs().neg()  # raises


class LearnedPositions(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.emb = nn.Embedding(n, dim)
        self.register_buffer("position_ids", torch.arange(n).expand((1, -1)), persistent=False)

    def forward(self, x, past=0):
        return x + self.emb(self.position_ids[:, past:past + x.size(1)])


@functools.lru_cache(maxsize=None)
def causal_mask(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def padding_mask(lengths, max_len=None):
    max_len = max_len or int(lengths.max())
    return torch.arange(max_len, device=lengths.device)[None] >= lengths[:, None]


def window_mask(n, window, device=None):
    idx = torch.arange(n, device=device)
    return (idx[None] - idx[:, None]).abs() > window


class KVCache:
    def __init__(self, batch, heads, max_len, dim):
        self.k = torch.zeros(batch, heads, max_len, dim)
        self.v = torch.zeros(batch, heads, max_len, dim)
        self.pos = 0

    def update(self, k, v):
        end = self.pos + k.size(2)
        self.k[:, :, self.pos:end] = k
        self.v[:, :, self.pos:end] = v
        self.pos = end
        return self.k[:, :, :end], self.v[:, :, :end]


class Attention(nn.Module):
    def __init__(self, dim, heads, causal=False, window=None):
        super().__init__()
        self.heads, self.causal, self.window = heads, causal, window
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, lengths=None, cache=None):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if cache is not None:
            k, v = cache.update(k, v)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))  # raises
        if lengths is not None:
            scores = scores.masked_fill(padding_mask(lengths, k.size(2))[:, None, None], -1e4)
        if self.window is not None:
            scores = scores.masked_fill(window_mask(x.size(1), self.window, x.device), -1e4)
        if self.causal:
            scores = scores.masked_fill(causal_mask(x.size(1)), -1e4)  # raises
        return self.out((F.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))
