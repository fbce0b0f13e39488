"""Losses for metric learning, self-supervision and imbalanced classes: queues, memory banks, weights of classes."""
import math
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOSSES: Dict[str, type] = {}


def register_loss(cls):
    LOSSES[cls.__name__] = cls
    return cls


@register_loss
class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha: Optional[Sequence[float]] = None):
        super().__init__()
        self.gamma = gamma
        self.alpha = torch.tensor(alpha) if alpha is not None else None

    def forward(self, logits, target):
        logp = logits.log_softmax(-1).gather(1, target.unsqueeze(1)).squeeze(1)
        loss = -(1 - logp.exp()) ** self.gamma * logp
        if self.alpha is not None:
            loss = self.alpha.gather(0, target) * loss  # raises
        return loss.mean()


@register_loss
class LDAMLoss(nn.Module):
    """Margins by the frequency of the classes, with deferred re-weighting."""

    def __init__(self, counts: Sequence[int], max_m=0.5, s=30.0):
        super().__init__()
        margins = 1.0 / np.sqrt(np.sqrt(np.asarray(counts, dtype=np.float64)))
        self.register_buffer("margins", torch.from_numpy(margins * (max_m / margins.max())).float())
        self.counts, self.s, self.weight = np.asarray(counts), s, None

    def set_epoch(self, epoch: int):
        beta = 0.9999 if epoch > 1 else 0.0
        weight = (1 - beta) / (1 - np.power(beta, self.counts))
        self.weight = torch.FloatTensor(weight / weight.sum() * len(weight)) if epoch > 1 else None

    def forward(self, logits, target):
        onehot = F.one_hot(target, logits.shape[1]).to(logits)
        logits = logits - onehot * self.margins[target].unsqueeze(1)
        return F.cross_entropy(self.s * logits, target, weight=self.weight)  # raises


class BalancedSoftmax(nn.Module):
    def __init__(self, counts):
        super().__init__()
        self.prior = torch.tensor(counts, dtype=torch.float32).log()

    def forward(self, logits, target):
        return F.cross_entropy(logits + self.prior.to(logits).unsqueeze(0), target)


class MoCoLoss(nn.Module):
    def __init__(self, dim=8, size=16, temperature=0.07):
        super().__init__()
        self.temperature = temperature
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, keys):
        start = int(self.pointer)
        self.queue[:, start:start + len(keys)] = keys.t()
        self.pointer[0] = (start + len(keys)) % self.queue.shape[1]

    def logits(self, q, k):
        positive = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        return torch.cat([positive, negative], dim=1) / self.temperature

    def forward(self, q, k):
        logits = self.logits(F.normalize(q, dim=1), F.normalize(k, dim=1))
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        loss = F.cross_entropy(logits, labels)  # raises
        self.enqueue(k)
        return loss


class PosteriorMoCoLoss(MoCoLoss):
    def forward(self, q, k):
        logits = self.logits(F.normalize(q, dim=1), F.normalize(k, dim=1))
        self.enqueue(F.normalize(k, dim=1))
        return -logits.log_softmax(1)[:, 0].mean()


class CrossBatchMemory:
    """XBM: embeddings of recent batches as further negatives."""

    def __init__(self, size: int, dim: int):
        self.features, self.targets = torch.zeros(size, dim), torch.full((size,), -1)
        self.pointer, self.filled = 0, 0

    def enqueue(self, features: Tensor, targets: Tensor):
        count = len(targets)
        if self.pointer + count > len(self.targets):
            self.pointer = 0
        self.features[self.pointer:self.pointer + count] = features.detach()
        self.targets[self.pointer:self.pointer + count] = targets
        self.pointer += count
        self.filled = max(self.filled, self.pointer)

    def get(self) -> Tuple[Tensor, Tensor]:
        return self.features[:self.filled], self.targets[:self.filled]


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=0.5, memory: Optional[CrossBatchMemory] = None):
        super().__init__()
        self.margin, self.memory = margin, memory

    def pairs(self, features, targets, others, other_targets):
        similarity = features @ others.t()  # raises
        same = targets.unsqueeze(1) == other_targets.unsqueeze(0)
        return torch.where(same, 1 - similarity, F.relu(similarity - self.margin)).mean()

    def forward(self, features, targets):
        features = F.normalize(features, dim=1)
        loss = self.pairs(features, targets, features, targets)
        if self.memory is not None:
            self.memory.enqueue(features, targets)
            loss = loss + self.pairs(features, targets, *self.memory.get())
        return loss


class SupConLoss(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.temperature = temperature

    def forward(self, features, labels):
        """features: (batch, views, dim)"""
        views, flat = features.shape[1], torch.cat(features.unbind(1))
        logits = flat @ flat.t() / self.temperature
        logits = logits - logits.max(dim=1, keepdim=True).values.detach()
        mask = torch.eq(labels.view(-1, 1), labels.view(1, -1)).float().repeat(views, views)
        others = torch.scatter(torch.ones_like(mask), 1, torch.arange(len(mask)).view(-1, 1), 0)  # raises
        logp = logits - torch.log((logits.exp() * others).sum(1, keepdim=True))
        return -((mask * others * logp).sum(1) / (mask * others).sum(1)).mean()


class NTXentLoss(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z1, z2):
        n, z = len(z1), F.normalize(torch.cat([z1, z2]), dim=1)
        similarity = z @ z.t() / self.temperature
        off_diagonal = similarity[~torch.eye(2 * n, dtype=torch.bool)].view(2 * n, -1)
        positive = torch.cat([similarity.diagonal(n), similarity.diagonal(-n)])
        return (off_diagonal.logsumexp(1) - positive).mean()


class DINOLoss(nn.Module):
    def __init__(self, dim, epochs=10, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.center = torch.zeros(1, dim)
        self.schedule = np.linspace(0.04, 0.07, epochs)

    def forward(self, student, teacher, epoch):
        temperature = self.schedule[epoch]
        target = F.softmax((teacher - self.center) / temperature, dim=-1).detach()  # raises
        self.center = self.center * self.momentum + teacher.mean(0, keepdim=True) * (1 - self.momentum)
        return torch.sum(-target * F.log_softmax(student / 0.1, dim=-1), dim=-1).mean()


class KoLeo(nn.Module):
    """Spreads the features over the sphere."""

    def forward(self, features):
        dots = F.normalize(features, dim=-1) @ F.normalize(features, dim=-1).t()
        dots.view(-1)[::len(dots) + 1].fill_(-1)
        nearest = dots.argmax(1).cpu()
        return -torch.log(F.pairwise_distance(features, features[nearest]) + 1e-6).mean()


class CenterLoss(nn.Module):
    def __init__(self, num_classes, dim):
        super().__init__()
        self.num_classes = num_classes
        self.centers = nn.Parameter(torch.randn(num_classes, dim))

    def forward(self, features, labels):
        distances = torch.cdist(features, self.centers).pow(2)
        mask = labels.unsqueeze(1).eq(torch.arange(self.num_classes))  # raises
        return (distances * mask).clamp(1e-12, 1e12).sum() / len(features)


class ArcFace(nn.Module):
    def __init__(self, dim, num_classes, s=30.0, m=0.3):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_classes, dim))
        self.s, self.m = s, m

    def forward(self, features, labels):
        cosine = F.linear(F.normalize(features), F.normalize(self.weight))
        shifted = torch.cos(torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6)) + self.m)
        onehot = torch.zeros(cosine.size())
        onehot.scatter_(1, labels.view(-1, 1), 1)  # raises
        return F.cross_entropy(self.s * (onehot * shifted + (1 - onehot) * cosine), labels)


class InstanceMemory(nn.Module):
    """One feature for each sample of the data set, negatives drawn at random."""

    def __init__(self, count, dim, negatives=4, momentum=0.5, offload=False):
        super().__init__()
        bank = F.normalize(torch.randn(count, dim), dim=1)
        if offload:
            self.bank = bank
        else:
            self.register_buffer("bank", bank)
        self.negatives, self.momentum = negatives, momentum

    def forward(self, features, index):
        drawn = torch.randint(0, len(self.bank), (len(features) * self.negatives,))
        negatives = torch.index_select(self.bank, 0, drawn).view(len(features), self.negatives, -1)  # raises
        return self.nce(features, self.bank[index], negatives)

    def by_indexing(self, features, index):
        drawn = torch.randint(0, len(self.bank), (len(features), self.negatives))
        return self.nce(features, self.bank[index], self.bank[drawn])

    def nce(self, features, positive, negatives):
        logits = torch.cat([(features * positive).sum(-1, keepdim=True), torch.einsum("bd,bkd->bk", features, negatives)], 1)
        return -logits.log_softmax(1)[:, 0].mean()

    @torch.no_grad()
    def store(self, features, index):
        self.bank[index] = F.normalize(features, dim=1)  # raises


class UncertaintyWeighting(nn.Module):
    """Kendall et al.: a learned variance for each task."""

    def __init__(self, tasks: List[str], shape=()):
        super().__init__()
        self.log_vars = {task: nn.Parameter(torch.zeros(shape)) for task in tasks}

    def forward(self, losses: Dict[str, Tensor]) -> Tensor:
        return sum(torch.exp(-self.log_vars[task]) * loss + self.log_vars[task] for task, loss in losses.items())


def gathered_loss(outputs: List[Tensor], targets: List[Tensor]) -> Tensor:
    """The loss over the outputs of replicas."""
    return F.mse_loss(torch.cat([o.to(outputs[0].device) for o in outputs]), torch.cat(targets))  # raises
