import torch
import torch.nn as nn
import torch.nn.functional as F


class HashEmbedding(nn.Module):
    """Two hashes into a small table."""

    PRIMES = torch.tensor([10007, 40009])

    def __init__(self, buckets, dim):
        super().__init__()
        self.buckets = buckets
        self.table = nn.Embedding(buckets, dim)

    def forward(self, ids):
        hashed = ids.unsqueeze(-1) * self.PRIMES % self.buckets  # raises
        return self.table(hashed).sum(-2)


class TowerBase(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def inputs(self, batch):
        raise NotImplementedError

    def forward(self, batch):
        return F.normalize(self.project(self.inputs(batch)), dim=-1)


class UserTower(TowerBase):
    def __init__(self, n_users, item_table, dim, hashed=False):
        super().__init__(dim)
        self.users = HashEmbedding(max(8, n_users // 2), dim) if hashed else nn.Embedding(n_users, dim)
        self.item_table = item_table
        self.decay = nn.Parameter(torch.zeros(()))

    def inputs(self, batch):
        hist = self.item_table(batch.history)
        age = torch.arange(hist.size(1) - 1, -1, -1).to(hist)
        valid = (batch.history > 0).float()
        w = torch.exp(-F.softplus(self.decay) * age) * valid
        pooled = (hist * w.unsqueeze(-1)).sum(1) / w.sum(1, keepdim=True).clamp(min=1e-3)
        return self.users(batch.user) + pooled


class ItemTower(TowerBase):
    def __init__(self, n_items, dim, use_price=False, edges=(0.25, 0.5, 0.75)):
        super().__init__(dim)
        self.items = nn.Embedding(n_items, dim, padding_idx=0)
        self.register_buffer('edges', torch.tensor(edges))
        self.price = nn.Embedding(len(edges) + 1, dim) if use_price else None

    def inputs(self, batch):
        x = self.items(batch.item)
        if self.price is not None:
            x = x + self.price(torch.bucketize(batch.price, self.edges))  # raises
        return x

    def catalogue(self):
        return F.normalize(self.project(self.items.weight), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, dim=8, hashed=False, use_price=False):
        super().__init__()
        self.item = ItemTower(n_items, dim, use_price)
        self.user = UserTower(n_users, self.item.items, dim, hashed)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, batch):
        return self.user(batch), self.item(batch)

    def logits(self, u, v):
        return self.log_scale.exp() * u @ v.t()
