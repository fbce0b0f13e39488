import inspect
import math

import torch
from torch import nn
from torch.nn import functional as F


class Rotary(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        inv = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv, persistent=False)
        self.cached = None

    def forward(self, t, device):
        if self.cached is None or self.cached[0].size(0) < t or self.cached[0].device != device:
            freqs = torch.outer(torch.arange(t, device=device).float(), self.inv_freq.to(device))
            self.cached = freqs.cos(), freqs.sin()
        cos, sin = self.cached
        return cos[:t], sin[:t]


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.rotary = Rotary(dim // heads)
        self.register_buffer("mask", torch.ones(window, window).tril().view(1, 1, window, window), persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = [y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, dim=2)]
        cos, sin = self.rotary(t, x.device)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        att = (q @ k.transpose(-1, -2)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[..., :t, :t] == 0, float("-inf"))
        return self.out((F.softmax(att, -1) @ v).transpose(1, 2).reshape(b, t, c))


class CharLM(nn.Module):
    def __init__(self, vocab, dim=16, heads=2, depth=2, window=16):
        super().__init__()
        self.window = window
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"n1": nn.LayerNorm(dim), "att": Attention(dim, heads, window), "n2": nn.LayerNorm(dim),
                           "ff": nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))}) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, idx, targets=None):
        x = self.embed(idx)
        for layer in self.layers:
            x = x + layer["att"](layer["n1"](x))
            x = x + layer["ff"](layer["n2"](x))
        logits = self.head(self.norm(x))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss

    def configure_optimizer(self, lr, decay):
        params = {n: p for n, p in self.named_parameters() if p.requires_grad}
        groups = [{"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": decay},
                  {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr)

    @torch.no_grad()
    def generate(self, idx, n, top_k=None):
        for _ in range(n):
            logits = self(idx[:, -self.window:])[0][:, -1]
            if top_k is not None:
                v, _ = torch.topk(logits, top_k)
                logits[logits < v[:, [-1]]] = -float("inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, -1), 1)), 1)
        return idx
