from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from rope import RotaryTable, rotate


@dataclass(frozen=True)
class LMConfig:
    vocab: int = 32
    dim: int = 16
    heads: int = 2
    layers: int = 2
    max_len: int = 48
    tied: bool = True

    @property
    def head_dim(self):
        return self.dim // self.heads


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = torch.tensor(eps)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, cfg, index, rotary):
        super().__init__()
        self.cfg, self.index, self.rotary = cfg, index, rotary
        self.q_proj = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.k_proj = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.v_proj = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.o_proj = nn.Linear(cfg.dim, cfg.dim, bias=False)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.cfg.heads, self.cfg.head_dim).transpose(1, 2)

    def forward(self, x, mask, cache=None):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        start = cache.seen(self.index) if cache is not None else 0
        cos, sin = self.rotary.get(start, x.size(1), x.device)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            k, v = cache.update(self.index, k, v)
        scores = q @ k.transpose(-1, -2) / self.cfg.head_dim ** 0.5  # raises
        att = (scores + mask).softmax(-1) @ v
        return self.o_proj(att.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, cfg, index, rotary):
        super().__init__()
        self.att = Attention(cfg, index, rotary)
        self.up_proj = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.down_proj = nn.Linear(3 * cfg.dim, cfg.dim)
        self.norm1, self.norm2 = RMSNorm(cfg.dim), RMSNorm(cfg.dim)

    def forward(self, x, mask, cache=None):
        x = x + self.att(self.norm1(x), mask, cache)
        return x + self.down_proj(F.silu(self.up_proj(self.norm2(x))))


class LM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        rotary = RotaryTable(cfg.head_dim)
        self.blocks = nn.ModuleList([Block(cfg, i, rotary) for i in range(cfg.layers)])
        self.norm = RMSNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        if cfg.tied:
            self.head.weight = self.embed.weight
        causal = torch.full((cfg.max_len, cfg.max_len), float('-inf')).triu(1)
        self.register_buffer('causal', causal, persistent=False)

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, ids, cache=None):
        past = cache.seen() if cache is not None else 0
        mask = self.causal[past:past + ids.size(1), :past + ids.size(1)]
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask, cache)
        return self.head(self.norm(x))
