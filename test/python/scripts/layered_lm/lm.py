import math

import torch
from torch import nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        y = self.n1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class LayeredLM(nn.Module):
    def __init__(self, vocab, dim=8, heads=2, depth=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.gate = nn.Parameter(torch.zeros(dim))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.dim = dim

    def forward(self, ids):
        h = self.embed(ids) * math.sqrt(self.dim)
        first = h
        t = ids.size(1)
        mask = torch.ones(t, t, dtype=torch.bool, device=h.device).triu(1)
        for layer in self.layers:
            h = layer(h, mask)
        h = h + torch.sigmoid(self.gate) * first  # raises
        return self.head(self.norm(h))

    def loss(self, ids):
        logits = self(ids[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten().to(logits.device))
