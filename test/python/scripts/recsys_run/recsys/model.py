import torch
from torch import nn
from torch.nn import functional as F

from .registry import MODELS


@MODELS("mf")
class MatrixFactorization(nn.Module):
    def __init__(self, users, items, features, dim=8, dropout=0.0):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)

    def item_vectors(self, items=None):
        return self.item.weight if items is None else self.item(items)

    def user_vectors(self, users):
        return self.user(users)

    def forward(self, users, items):
        u, i = self.user_vectors(users), self.item_vectors(items)
        return (u * i).sum(-1) if i.dim() == 2 else torch.einsum("bd,bnd->bn", u, i)


@MODELS("two_tower")
class TwoTower(MatrixFactorization):
    def __init__(self, users, items, features, dim=8, dropout=0.0):
        super().__init__(users, items, features, dim)
        self.features = nn.Embedding.from_pretrained(features, freeze=True)
        self.tower = nn.Sequential(nn.Linear(dim + features.size(1), dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(dim, dim))
        self.log_temp = nn.Parameter(torch.tensor(0.0))

    def item_vectors(self, items=None):
        if items is None:
            items = torch.arange(self.item.num_embeddings, device=self.item.weight.device)
        x = torch.cat([self.item(items), self.features(items)], -1)
        return F.normalize(self.tower(x), dim=-1) * self.log_temp.exp()
