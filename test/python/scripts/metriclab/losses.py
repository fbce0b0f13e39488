import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from registry import LOSSES


def pairwise_sq(a, b):
    return (a * a).sum(1, keepdim=True) + (b * b).sum(1) - 2 * a @ b.t()


class MetricLoss(nn.Module):
    """Base of the losses: takes embeddings and labels, and indices of triplets where a miner gave them."""

    needs_miner = False

    def __init__(self, dim, n_classes):
        super().__init__()
        self.dim, self.n_classes = dim, n_classes

    def forward(self, emb, labels, triplets=None):
        raise NotImplementedError


@LOSSES.register('triplet')
class Triplet(MetricLoss):
    needs_miner = True

    def __init__(self, dim, n_classes, margin=0.2):
        super().__init__(dim, n_classes)
        self.margin = torch.tensor(margin)

    def forward(self, emb, labels, triplets=None):
        a, p, n = triplets
        d_ap = (emb[a] - emb[p]).pow(2).sum(1)
        d_an = (emb[a] - emb[n]).pow(2).sum(1)
        return F.relu(d_ap - d_an + self.margin).mean()


@LOSSES.register('proxy')
class ProxyNCA(MetricLoss):
    def __init__(self, dim, n_classes, temperature=0.1):
        super().__init__(dim, n_classes)
        self.proxies = nn.Parameter(torch.randn(n_classes, dim) / math.sqrt(dim))
        self.register_buffer('temperature', torch.tensor([temperature]))

    def forward(self, emb, labels, triplets=None):
        d = pairwise_sq(emb, F.normalize(self.proxies, dim=1))
        target = F.one_hot(labels, self.n_classes).to(d.dtype)
        return -(target * F.log_softmax(-d / self.temperature, dim=1)).sum(1).mean()


@LOSSES.register('arc')
class ArcMargin(MetricLoss):
    def __init__(self, dim, n_classes, scale=16.0, margin=0.3):
        super().__init__(dim, n_classes)
        self.weight = nn.Parameter(torch.randn(n_classes, dim))
        self.scale = scale
        # classes with few images get a larger margin
        self.margins = margin * torch.linspace(1.0, 0.5, n_classes)

    def forward(self, emb, labels, triplets=None):
        cos = F.linear(emb, F.normalize(self.weight, dim=1)).clamp(-1 + 1e-6, 1 - 1e-6)
        margin = self.margins[labels]  # raises
        theta = torch.acos(cos)
        onehot = F.one_hot(labels, self.n_classes).bool()
        shifted = torch.where(onehot, torch.cos(theta + margin.unsqueeze(1)), cos)
        return F.cross_entropy(self.scale * shifted, labels)


class CrossBatchMemory(nn.Module):
    """A ring of old embeddings around a pair loss."""

    def __init__(self, dim, size, margin=0.5):
        super().__init__()
        self.size, self.margin = size, margin
        self.register_buffer('bank', F.normalize(torch.randn(size, dim), dim=1))
        self.register_buffer('bank_labels', torch.full((size,), -1, dtype=torch.long), persistent=False)
        self.cursor = 0

    @torch.no_grad()
    def enqueue(self, emb, labels):
        slots = (torch.arange(emb.size(0)) + self.cursor) % self.size
        self.bank[slots] = emb.detach()
        self.bank_labels[slots] = labels
        self.cursor = int(slots[-1]) + 1

    def forward(self, emb, labels):
        sim = emb @ self.bank.clone().t()
        same = labels[:, None].eq(self.bank_labels[None])
        pos = torch.where(same, 1 - sim, torch.zeros_like(sim))
        neg = torch.where(same, torch.zeros_like(sim), F.relu(sim - self.margin))
        self.enqueue(emb, labels)
        return (pos + neg).mean()
