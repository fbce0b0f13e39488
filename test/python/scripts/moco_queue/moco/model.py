import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def encoder(inputs, hidden, dim):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(inplace=True), nn.Linear(hidden, dim))


class Contrastive(nn.Module):
    """Negatives within the batch."""

    def __init__(self, inputs, hidden, dim, momentum, temperature):
        super().__init__()
        self.query = encoder(inputs, hidden, dim)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.momentum, self.temperature = momentum, temperature

    @torch.no_grad()
    def follow(self):
        for target, source in zip(self.key.parameters(), self.query.parameters()):
            target.mul_(self.momentum).add_(source, alpha=1 - self.momentum)

    def logits(self, q, k):
        return q @ k.t(), torch.arange(len(q), device=q.device)

    def forward(self, first, second):
        q = F.normalize(self.query(first), dim=1)
        with torch.no_grad():
            self.follow()
            k = F.normalize(self.key(second), dim=1)
        logits, target = self.logits(q, k)
        return F.cross_entropy(logits / self.temperature, target)

    @torch.no_grad()
    def features(self, x):
        return F.normalize(self.query(x), dim=1)


class QueueContrastive(Contrastive):
    """Negatives from a queue of former keys."""

    def __init__(self, *args, size, dim, **kwargs):
        super().__init__(*args, dim=dim, **kwargs)
        self.queue = F.normalize(torch.randn(size, dim), dim=1)
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, keys):
        places = (self.pointer + torch.arange(len(keys), device=keys.device)) % len(self.queue)
        self.queue.index_copy_(0, places, keys)
        self.pointer.copy_((places[-1:] + 1) % len(self.queue))

    def logits(self, q, k):
        positive = (q * k).sum(dim=1, keepdim=True)
        negative = q @ self.queue.t()  # raises
        self.enqueue(k)
        return torch.cat([positive, negative], dim=1), q.new_zeros(len(q), dtype=torch.long)


def build(inputs, config):
    settings = dict(config["model"])
    size = settings.pop("queue")
    if size:
        return QueueContrastive(inputs, size=size, **settings)
    return Contrastive(inputs, **settings)
