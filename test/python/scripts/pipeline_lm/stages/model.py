"""A causal transformer whose halves live on two devices."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(config.dim) for _ in range(2))
        self.attention = nn.MultiheadAttention(config.dim, config.heads, config.dropout, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(config.dim, 2 * config.dim), nn.GELU(), nn.Linear(2 * config.dim, config.dim))
        mask = torch.full((config.length, config.length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        t = x.size(1)
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, attn_mask=self.mask[:t, :t], need_weights=False)[0]
        return x + self.mlp(self.norms[1](x))


class Stage(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, x):
        return self.layers(x.to(self.device))


class Embedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab, config.dim)
        self.positions = nn.Embedding(config.length, config.dim)

    def forward(self, tokens):
        places = torch.arange(tokens.size(1), device=tokens.device)
        return self.tokens(tokens) + self.positions(places)


class TwoStageLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        half = config.layers // 2
        self.front = Stage(Embedding(config), *(Block(config) for _ in range(half))).to(config.first)
        self.back = Stage(*(Block(config) for _ in range(config.layers - half)), nn.LayerNorm(config.dim)).to(config.last)
        self.head = None if config.tie else nn.Linear(config.dim, config.vocab).to(config.last)
        self.early = nn.Linear(config.dim, config.vocab).to(config.first) if config.aux > 0 else None

    def logits(self, hidden):
        if self.head is None:
            return F.linear(hidden, self.front.layers[0].tokens.weight)  # raises
        return self.head(hidden)

    def forward(self, tokens):
        middle = self.front(tokens)
        logits = self.logits(self.back(middle))
        return logits, None if self.early is None else self.early(middle)

    def loss(self, tokens):
        x, y = tokens[:, :-1], tokens[:, 1:]
        logits, early = self(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.to(logits.device).flatten())
        if early is not None:
            shallow = F.cross_entropy(early.flatten(0, 1), y.to(early.device).flatten())
            loss = loss + self.config.aux * shallow  # raises
        return loss

    @torch.no_grad()
    def complete(self, tokens, count):
        tokens = tokens.to(self.config.first)
        for _ in range(count):
            logits, _ = self(tokens[:, -self.config.length :])
            following = logits[:, -1].argmax(dim=-1, keepdim=True)
            tokens = torch.cat([tokens, following], dim=1)  # raises
        return tokens
