# Copyright notices are for other files. Attention layers and their masks.
import math
from functools import lru_cache, partial
from typing import Dict, NamedTuple, Optional, Type

import torch
import torch.nn as nn
import torch.nn.functional as F


# clean
class SinusoidalPositionalEmbedding(nn.Module):
    """Grows when needed; a float buffer remembers the device."""

    def __init__(self, embedding_dim, padding_idx=0, init_size=8):
        super().__init__()
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weights = self.get_embedding(init_size, embedding_dim, padding_idx)
        self.register_buffer("_float_tensor", torch.FloatTensor(1))

    @staticmethod
    def get_embedding(n, dim, padding_idx=None):
        half = dim // 2
        emb = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
        emb = torch.arange(n, dtype=torch.float).unsqueeze(1) * emb.unsqueeze(0)
        emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=1)
        if padding_idx is not None:
            emb[padding_idx, :] = 0
        return emb

    def forward(self, tokens):
        bsz, n = tokens.shape
        max_pos = self.padding_idx + 1 + n
        if max_pos > self.weights.size(0):
            self.weights = SinusoidalPositionalEmbedding.get_embedding(max_pos, self.embedding_dim, self.padding_idx)
        self.weights = self.weights.to(self._float_tensor)
        mask = tokens.ne(self.padding_idx).int()
        positions = (torch.cumsum(mask, 1).type_as(mask) * mask).long() + self.padding_idx
        return self.weights.index_select(0, positions.view(-1)).view(bsz, n, -1).detach()


# broken
class RelativePositionBias(nn.Module):
    """T5's bucketed bias"""

    def __init__(self, num_buckets=8, max_distance=16, heads=2):
        super().__init__()
        self.num_buckets, self.max_distance = num_buckets, max_distance
        self.table = nn.Embedding(num_buckets, heads)

    @staticmethod
    def bucket(rel, num_buckets, max_distance):
        n = -rel
        num_buckets //= 2
        ret = (n < 0).to(torch.long) * num_buckets
        n = n.abs()
        max_exact = num_buckets // 2
        large = max_exact + (torch.log(n.float() / max_exact + 1e-6) / math.log(max_distance / max_exact) * (num_buckets - max_exact)).long()
        large = torch.min(large, torch.full_like(large, num_buckets - 1))
        return ret + torch.where(n < max_exact, n, large)

    def forward(self, scores, cached=None):
        q, k = scores.shape[-2:]
        ctx = torch.arange(q, dtype=torch.long)[:, None]
        mem = torch.arange(k, dtype=torch.long)[None]
        buckets = self.bucket(mem - ctx, self.num_buckets, self.max_distance)
        bias = self.table(buckets).permute(2, 0, 1).unsqueeze(0)  # raises
        return scores + bias if cached is None else scores + bias + cached.to(device=scores.device)


class Incremental(NamedTuple):
    k: torch.Tensor
    v: torch.Tensor
    pad: Optional[torch.Tensor]


# broken
class CachedAttention(nn.Module):
    def __init__(self, dim, heads, bias=True, device=None, dtype=None):
        kw = {"device": device, "dtype": dtype}
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias, **kw)
        self.o = nn.Linear(dim, dim, **kw)

    @staticmethod
    def append_pad(prev: Optional[torch.Tensor], cur: Optional[torch.Tensor], bsz: int, src: int):
        if prev is not None and cur is not None:
            return torch.cat([prev.float(), cur.float()], 1)
        if prev is not None:
            if src > prev.size(1):
                filler = torch.zeros((bsz, src - prev.size(1)))
                return torch.cat([prev.float(), filler.float()], dim=1)  # raises
            return prev.float()
        if cur is not None and src > cur.size(1):
            filler = torch.zeros((bsz, src - cur.size(1)), device=cur.device)
            return torch.cat([filler.float(), cur.float()], dim=1)
        return cur

    def forward(self, x, pad=None, state: Optional[Dict[str, Incremental]] = None):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.h, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        if state is not None and "self" in state:
            old = state["self"]
            k, v = torch.cat([old.k, k], 2), torch.cat([old.v, v], 2)
            pad = self.append_pad(old.pad, pad, b, k.size(2))
        if state is not None:
            state["self"] = Incremental(k, v, pad)
        w = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if pad is not None:
            w = w.masked_fill(pad[:, None, None].to(torch.bool), -1e4)
        return self.o((w.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


@lru_cache(maxsize=16)
def _window_index(ws):
    c = torch.stack(torch.meshgrid(torch.arange(ws), torch.arange(ws), indexing="ij")).flatten(1)
    rel = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + (ws - 1)
    rel[..., 0] *= 2 * ws - 1
    return rel.sum(-1)


# clean
class WindowAttention(nn.Module):
    def __init__(self, dim, ws, heads):
        super().__init__()
        self.ws, self.h = ws, heads
        self.bias_table = nn.Parameter(torch.zeros((2 * ws - 1) ** 2, heads))
        self.qkv = nn.Linear(dim, dim * 3)
        self.index = _window_index(ws)

    def forward(self, x, mask: Optional[torch.Tensor] = None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.h, -1).permute(2, 0, 3, 1, 4).unbind(0)
        a = q @ k.transpose(-2, -1)
        a = a + self.bias_table[self.index.view(-1)].view(N, N, -1).permute(2, 0, 1)
        if mask is not None:
            nw = mask.shape[0]
            a = a.view(B // nw, nw, self.h, N, N) + mask.to(a.device)[None, :, None]
            a = a.view(-1, self.h, N, N)
        return (a.softmax(-1) @ v).transpose(1, 2).reshape(B, N, C)


# broken
def shifted_window_mask(x, ws, shift):
    """x: B x H x W x C, returns (windows, ws*ws, ws*ws) added to the scores by the caller"""
    _, H, W, _ = x.shape
    img = torch.zeros((1, H, W, 1))
    parts = (slice(0, -ws), slice(-ws, -shift), slice(-shift, None))
    n = 0
    for h in parts:
        for w in parts:
            img[:, h, w, :] = n
            n += 1
    win = img.view(1, H // ws, ws, W // ws, ws, 1).permute(0, 1, 3, 2, 4, 5).reshape(-1, ws * ws)
    valid = torch.ones(win.shape[0], device=x.device)
    m = (win[:, None] - win[:, :, None]) * valid.view(-1, 1, 1)  # raises
    return m.masked_fill(m != 0, -100.)


# clean
class TransformerLayer(nn.Module):
    """attention and norm classes are the caller's"""

    def __init__(self, dim, attn: Type[nn.Module], norm=partial(nn.LayerNorm, eps=1e-6), layer_scale=1e-4, **kw):
        super().__init__()
        self.n1, self.n2 = norm(dim), norm(dim)
        self.attn = attn(dim, **kw)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.gamma = nn.ParameterList([nn.Parameter(layer_scale * torch.ones(dim)) for _ in range(2)])
        self.keep = torch.tensor(.9)

    def drop(self, x):
        if not self.training:
            return x
        return x * x.new_empty(x.size(0), 1, 1).bernoulli_(self.keep.item()) / self.keep

    def forward(self, x, **kw):
        x = x + self.drop(self.gamma[0] * self.attn(self.n1(x), **kw))
        return x + self.drop(self.gamma[1] * self.mlp(self.n2(x)))
