"""Losses and metrics in the style of a metric-learning library."""
from typing import Callable, Dict, List, Optional, Union

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_all_pairs_indices(labels, ref_labels=None):
    if ref_labels is None:
        ref_labels = labels
    matches = (labels.unsqueeze(1) == ref_labels.unsqueeze(0)).byte()
    diffs = matches ^ 1
    if ref_labels is labels:
        matches.fill_diagonal_(0)
    return torch.where(matches)[0], torch.where(matches)[1], torch.where(diffs)[0], torch.where(diffs)[1]


def contrastive_from_pairs(embeddings, labels, margin=1.0):
    a1, p, a2, n = get_all_pairs_indices(labels)
    dist = torch.cdist(embeddings, embeddings)
    pos, neg = dist[a1, p], F.relu(margin - dist[a2, n])
    return pos.mean() + neg.mean()


def hardest_triplets(embeddings, labels):
    dist = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None, :]
    eye = torch.eye(len(labels)).bool()
    pos = dist.masked_fill(~same | eye, -1.0).max(1).values  # raises
    neg = dist.masked_fill(same, float("inf")).min(1).values
    return F.relu(pos - neg + 0.2).mean()


def hardest_triplets_like(embeddings, labels):
    dist = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None, :]
    eye = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    pos = dist.masked_fill(~same | eye, -1.0).max(1).values
    neg = dist.masked_fill(same, float("inf")).min(1).values
    return F.relu(pos - neg + 0.2).mean()


class SupConLoss(nn.Module):
    def __init__(self, temperature=0.07, contrast_mode="all"):
        super().__init__()
        self.temperature = temperature
        self.contrast_mode = contrast_mode

    def forward(self, features, labels=None):
        device = torch.device("cuda") if features.is_cuda else torch.device("cpu")
        batch_size = features.shape[0]
        if labels is None:
            mask = torch.eye(batch_size, dtype=torch.float32).to(device)
        else:
            mask = torch.eq(labels.view(-1, 1), labels.view(1, -1)).float().to(device)
        count = features.shape[1]
        contrast = torch.cat(torch.unbind(features, dim=1), dim=0)
        logits = contrast @ contrast.T / self.temperature
        logits = logits - logits.max(dim=1, keepdim=True)[0].detach()
        mask = mask.repeat(count, count)
        logits_mask = torch.scatter(
            torch.ones_like(mask), 1, torch.arange(batch_size * count).view(-1, 1).to(device), 0
        )
        mask = mask * logits_mask
        log_prob = logits - torch.log((torch.exp(logits) * logits_mask).sum(1, keepdim=True))
        return -((mask * log_prob).sum(1) / mask.sum(1).clamp(min=1)).mean()


class ArcFace(nn.Module):
    def __init__(self, in_features=4, out_features=3, s=30.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features))
        self.s, self.m = s, m

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        phi = torch.cos(torch.acos(cosine.clamp(-1 + 1e-7, 1 - 1e-7)) + self.m)
        one_hot = torch.zeros(cosine.size())
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)  # raises
        return (one_hot * phi + (1.0 - one_hot) * cosine) * self.s


class CosFace(ArcFace):
    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        index = torch.where(label != -1)[0]
        m_hot = torch.zeros(index.size(0), cosine.size(1), device=cosine.device)
        m_hot.scatter_(1, label[index, None], self.m)
        cosine[index] -= m_hot
        return cosine * self.s


class PolyLoss(nn.Module):
    """The class weights come from the user's configuration."""

    def __init__(self, weights: Optional[List[float]] = None, epsilon: float = 1.0):
        super().__init__()
        self.weights = torch.tensor(weights) if weights is not None else None
        self.epsilon = epsilon

    def forward(self, logits, target):
        ce = F.cross_entropy(logits, target, reduction="none")
        pt = logits.softmax(-1).gather(1, target[:, None]).squeeze(1)
        loss = ce + self.epsilon * (1 - pt)
        if self.weights is not None:
            loss = loss * self.weights[target]  # raises
        return loss.mean()


class BalancedLoss(nn.Module):
    def __init__(self, weights: Optional[List[float]] = None):
        super().__init__()
        if weights is None:
            self.weights = None
        else:
            self.register_buffer("weights", torch.as_tensor(weights, dtype=torch.float32))

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.weights)


def sigmoid_focal(inputs, targets, alpha: Union[float, List[float]] = 0.25, gamma: float = 2.0):
    p = torch.sigmoid(inputs)
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    alpha = torch.as_tensor(alpha)
    if alpha.ndim == 0:
        alpha = alpha.expand(inputs.size(-1))
    return (alpha * ce * (1 - p_t) ** gamma).mean()  # raises


def sigmoid_focal_scalar(inputs, targets, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(inputs)
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    return (torch.tensor(alpha) * ce * (1 - p_t) ** torch.tensor(gamma)).mean()


def lovasz_grad(gt_sorted):
    p = len(gt_sorted)
    gts = gt_sorted.sum()
    intersection = gts - gt_sorted.float().cumsum(0)
    union = gts + (1 - gt_sorted).float().cumsum(0)
    jaccard = 1.0 - intersection / union
    if p > 1:
        jaccard[1:p] = jaccard[1:p] - jaccard[0:-1]
    return jaccard


def lovasz_hinge(logits, labels):
    signs = 2.0 * labels.float() - 1.0
    errors = 1.0 - logits * signs
    errors_sorted, perm = torch.sort(errors, dim=0, descending=True)
    return torch.dot(F.relu(errors_sorted), lovasz_grad(labels[perm]))


def soft_dice(pred, target, num_classes: int, smooth: float = 1.0):
    onehot = torch.zeros((target.size(0), num_classes) + tuple(target.shape[1:]), dtype=pred.dtype)
    onehot = onehot.to(pred).scatter_(1, target.unsqueeze(1), 1.0)
    dims = tuple(range(2, pred.dim()))
    inter, card = (pred * onehot).sum(dims), (pred + onehot).sum(dims)
    return 1.0 - ((2 * inter + smooth) / (card + smooth)).mean()


def ms_ssim_weights(scores: List[torch.Tensor], weights=(0.0448, 0.2856, 0.3001)):
    w = torch.FloatTensor(weights)
    levels = torch.stack(scores).clamp(min=1e-6)
    return torch.prod(levels ** w.view(-1, 1), dim=0).mean()  # raises


def info_nce(query, keys, queue=None, temperature=0.1):
    pos = (query * keys).sum(-1, keepdim=True)
    neg = query @ (queue if queue is not None else keys).t()
    logits = torch.cat([pos, neg], dim=1) / temperature
    labels = query.new_zeros(len(query), dtype=torch.long)
    return F.cross_entropy(logits, labels)


def mmd_rbf(x, y, sigmas=(1.0, 2.0, 4.0)):
    xx, yy, xy = (torch.cdist(a, b).pow(2) for a, b in ((x, x), (y, y), (x, y)))
    total = torch.zeros(1)
    for s in sigmas:
        k = lambda d: torch.exp(-d / (2 * s)).mean()
        total += k(xx) + k(yy) - 2 * k(xy)  # raises
    return total


def mmd_rbf_python_sum(x, y, sigmas=(1.0, 2.0, 4.0)):
    xx, yy, xy = (torch.cdist(a, b).pow(2) for a, b in ((x, x), (y, y), (x, y)))
    return sum(torch.exp(-xx / s).mean() + torch.exp(-yy / s).mean() - 2 * torch.exp(-xy / s).mean() for s in sigmas)


class Metric:
    def __init__(self):
        self._defaults: Dict[str, torch.Tensor] = {}

    def add_state(self, name, default):
        setattr(self, name, default.clone())
        self._defaults[name] = default

    def to(self, device):
        for name in self._defaults:
            setattr(self, name, getattr(self, name).to(device))
        return self


class CalibrationError(Metric):
    def __init__(self, n_bins=4):
        super().__init__()
        self.add_state("conf", torch.zeros(n_bins))
        self.add_state("acc", torch.zeros(n_bins))
        self.boundaries = torch.linspace(0, 1, n_bins + 1)[1:-1]

    def update(self, probs, target):
        conf, pred = probs.max(-1)
        idx = torch.bucketize(conf, self.boundaries)  # raises
        self.conf.index_add_(0, idx, conf)
        self.acc.index_add_(0, idx, (pred == target).float())


class MeanMetric(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("value", torch.tensor(0.0))
        self.add_state("weight", torch.tensor(0.0))

    def update(self, value, weight=1.0):
        if not isinstance(value, torch.Tensor):
            value = torch.as_tensor(value, dtype=torch.float32, device=self.value.device)
        weight = torch.broadcast_to(torch.as_tensor(weight, dtype=torch.float32, device=value.device), value.shape)
        self.value += (value * weight).sum()
        self.weight += weight.sum()

    def compute(self):
        return self.value / self.weight
