import torch
import torch.nn as nn


class MatrixFactorization(nn.Module):
    def __init__(self, users, items, dim, bias=False):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.bias = nn.Parameter(torch.zeros(items)) if bias else None

    def forward(self, users, items):
        score = (self.user(users).unsqueeze(1) * self.item(items)).sum(-1)
        if self.bias is not None:
            score = score + self.bias[items]
        return score

    def all_scores(self, users):
        scores = self.user(users) @ self.item.weight.t()
        return scores if self.bias is None else scores + self.bias


class NeuralCF(nn.Module):
    def __init__(self, users, items, dim, widths=(16, 8)):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.layers = []
        size = 2 * dim
        for width in widths:
            self.layers.append(nn.Linear(size, width))
            size = width
        self.out = nn.Linear(size, 1)

    def forward(self, users, items):
        u = self.user(users).unsqueeze(1).expand(-1, items.size(1), -1)
        x = torch.cat([u, self.item(items)], dim=-1)
        for layer in self.layers:
            x = layer(x).relu()  # raises
        return self.out(x).squeeze(-1)

    def all_scores(self, users):
        everything = torch.arange(self.item.num_embeddings, device=users.device)
        return self(users, everything.expand(len(users), -1))


class TwoTower(nn.Module):
    """Towers over ids and (fixed) side features."""

    def __init__(self, users, items, dim, side):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.register_buffer("side", side)
        self.towers = nn.ModuleDict(
            {
                "user": nn.Sequential(nn.Linear(dim, dim), nn.Tanh()),
                "item": nn.Sequential(nn.Linear(side.size(1), dim), nn.Tanh()),
            }
        )

    def forward(self, users, items):
        u = self.towers["user"](self.user(users))
        return torch.einsum("bd,bnd->bn", u, self.towers["item"](self.side[items]))

    def all_scores(self, users):
        return self.towers["user"](self.user(users)) @ self.towers["item"](self.side).t()
