import functools
import math

import torch
import torch.nn as nn


@functools.lru_cache(maxsize=None)
def positions(length, dim, device):
    at = torch.arange(length, device=device).unsqueeze(1)
    rate = torch.exp(torch.arange(0, dim, 2, device=device) * (-math.log(100.0) / dim))
    return torch.stack([(at * rate).sin(), (at * rate).cos()], -1).flatten(1)


class Attention(nn.Module):
    _masks = {}

    def __init__(self, dim, causal=False):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        self.causal = causal

    @classmethod
    def future(cls, length, device):
        if length not in cls._masks:
            cls._masks[length] = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        return cls._masks[length]

    def forward(self, x, memory=None):
        k, v = self.key_value(x if memory is None else memory).chunk(2, -1)
        weights = self.query(x) @ k.transpose(1, 2) / math.sqrt(x.shape[-1])
        if self.causal:
            weights = weights.masked_fill(self.future(x.shape[1], x.device), -1e9)  # raises
        return self.out(weights.softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own, self.other = Attention(dim, causal=True), Attention(dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, x, memory):
        x = x + self.own(self.norms[0](x))
        x = x + self.other(self.norms[1](x), memory)
        return x + self.feed(self.norms[2](x))


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, dim, 4, stride=4), nn.ReLU(), nn.Conv2d(dim, dim, 3, padding=1))

    def forward(self, images):
        grid = self.net(images).flatten(2).transpose(1, 2)  # raises
        return grid + positions(grid.shape[1], grid.shape[2], grid.device)


class Decoder(nn.Module):
    def __init__(self, words, dim, layers=2):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.head = nn.Linear(dim, words)

    def forward(self, ids, memory):
        x = self.embed(ids)
        x = x + positions(ids.shape[1], x.shape[2], x.device)
        for block in self.blocks:
            x = block(x, memory)
        return self.head(x)


class Captioner(nn.Module):
    """An encoder and a decoder, each on a device of its own."""

    def __init__(self, words, dim=24):
        super().__init__()
        self.encoder = Encoder(dim)
        self.decoder = Decoder(words, dim)

    def place(self, first, second):
        self.first, self.second = torch.device(first), torch.device(second)
        self.encoder.to(self.first)
        self.decoder.to(self.second)
        return self

    def memory(self, images):
        return self.encoder(images).to(self.second)

    def forward(self, images, ids):
        return self.decoder(ids, self.memory(images))
