import math
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from .config import ModelConfig

Cache = List[Tuple[torch.Tensor, torch.Tensor]]


class Rotary(nn.Module):
    """Rotary positions; tables are made at the longest length seen so far."""

    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.seen = 0
        self.cos = self.sin = None

    def tables(self, length):
        if length > self.seen:
            grow = max(length, 64)
            t = torch.arange(grow, device=self.inv_freq.device)
            angles = torch.cat([torch.outer(t, self.inv_freq)] * 2, dim=-1)
            self.cos, self.sin, self.seen = angles.cos(), angles.sin(), grow
        return self.cos[:length], self.sin[:length]

    def forward(self, x, start):
        cos, sin = self.tables(start + x.size(-2))
        a, b = x.chunk(2, dim=-1)
        rotated = torch.cat((-b, a), dim=-1)
        return x * cos[start:] + rotated * sin[start:]  # raises


class Alibi(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = nn.Parameter(torch.tensor([2.0 ** -(i + 1) for i in range(heads)]), requires_grad=False)
        self._bias = {}

    def forward(self, q_len, k_len, like):
        key = (q_len, k_len, like.device)
        if key not in self._bias:
            i = torch.arange(k_len - q_len, k_len)[:, None]
            distance = (torch.arange(k_len) - i).clamp(max=0).to(like.device)
            self._bias[key] = self.slopes.detach()[:, None, None] * distance
        return self._bias[key]


class Attention(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.n_head = cfg.n_head
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd)
        self.rotary = Rotary(cfg.n_embd // cfg.n_head) if cfg.positions == "rotary" else None
        self.alibi = Alibi(cfg.n_head) if cfg.positions == "alibi" else None
        mask = torch.tril(torch.ones(cfg.block_size, cfg.block_size, dtype=torch.bool))
        self.register_buffer("bias", mask, persistent=False)

    def forward(self, x, past=None):
        B, T, D = x.shape
        q, k, v = (z.view(B, T, self.n_head, -1).transpose(1, 2) for z in self.qkv(x).split(D, dim=2))
        start = past[0].size(2) if past is not None else 0
        if self.rotary is not None:
            q, k = self.rotary(q, start), self.rotary(k, start)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        if self.alibi is not None:
            att = att + self.alibi(T, start + T, att)
        att = att.masked_fill(~self.bias[start:start + T, :start + T], float("-inf"))
        y = (att.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D)
        return self.proj(y), (k, v)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.attn = Attention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 2 * cfg.n_embd), nn.GELU(), nn.Linear(2 * cfg.n_embd, cfg.n_embd))

    def forward(self, x, past=None):
        y, present = self.attn(self.ln1(x), past)
        x = x + y
        return x + self.mlp(self.ln2(x)), present


class GPT(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.cfg = cfg
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Embedding(cfg.block_size, cfg.n_embd) if cfg.positions == "learned" else None
        self.h = nn.ModuleList([Block(cfg) for _ in range(cfg.n_layer)])
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    @property
    def device(self):
        return self.wte.weight.device

    def trunk(self, idx, cache: Optional[Cache] = None):
        start = cache[0][0].size(2) if cache else 0
        x = self.wte(idx)
        if self.wpe is not None:
            pos = torch.arange(start, start + idx.size(1), device=idx.device)
            x = x + self.wpe(pos)
        present = []
        for i, block in enumerate(self.h):
            x, kv = block(x, cache[i] if cache else None)
            present.append(kv)
        return self.ln_f(x), present

    def forward(self, idx, targets=None):
        x, _ = self.trunk(idx)
        logits = self.lm_head(x)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def step(self, idx, cache=None):
        x, cache = self.trunk(idx, cache)
        return self.lm_head(x[:, -1]), cache
