import functools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def weighted_loss(fn):
    @functools.wraps(fn)
    def wrapper(pred, target, weight=None, reduction="mean", avg_factor=None, **kw):
        loss = fn(pred, target, **kw)
        if weight is not None:
            loss = loss * weight
        if reduction == "mean":
            return loss.mean() if avg_factor is None else loss.sum() / avg_factor
        return loss.sum() if reduction == "sum" else loss
    return wrapper


@weighted_loss
def smooth_l1(pred, target, beta=1.0):
    diff = torch.abs(pred - target)
    return torch.where(diff < beta, 0.5 * diff * diff / beta, diff - 0.5 * beta)


@weighted_loss
def balanced_l1(pred, target, alpha=0.5, gamma=1.5):
    diff = torch.abs(pred - target)
    b = math.e ** (gamma / alpha) - 1
    return torch.where(diff < 1.0, alpha / b * (b * diff + 1) * torch.log(b * diff + 1) - alpha * diff,
                       torch.full(diff.shape, gamma / b) + gamma * diff - alpha)  # raises


class ArcFace(nn.Module):
    def __init__(self, dim, classes, s=8.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.cos_m, self.sin_m = s, math.cos(m), math.sin(m)

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - cosine.pow(2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        one_hot = torch.zeros(cosine.size())
        one_hot.scatter_(1, label.view(-1, 1).long().cpu(), 1)
        return self.s * (one_hot * phi + (1.0 - one_hot) * cosine)  # raises


class CosFace(ArcFace):
    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        margin = torch.zeros_like(cosine)
        margin[torch.arange(len(label)), label] = 0.35
        return self.s * (cosine - margin)


class CenterLoss(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.classes = classes
        self.centers = nn.Parameter(torch.randn(classes, dim))

    def forward(self, x, labels):
        dist = torch.cdist(x, self.centers) ** 2
        classes = torch.arange(self.classes).long()
        mask = labels.unsqueeze(1).expand(x.size(0), self.classes).eq(classes.expand(x.size(0), self.classes))  # raises
        return (dist * mask.float()).clamp(1e-12, 1e12).sum() / x.size(0)


class TripletHard(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin
        self.ranking_loss = nn.MarginRankingLoss(margin=margin)

    def forward(self, inputs, targets):
        n = inputs.size(0)
        dist = torch.cdist(inputs, inputs)
        mask = targets.expand(n, n).eq(targets.expand(n, n).t())
        ap, an = [], []
        for i in range(n):
            ap.append(dist[i][mask[i]].max().unsqueeze(0))
            an.append(dist[i][mask[i] == 0].min().unsqueeze(0))
        ap, an = torch.cat(ap), torch.cat(an)
        return self.ranking_loss(an, ap, torch.ones_like(an))


class NTXent(nn.Module):
    def __init__(self, batch_size, temperature=0.5):
        super().__init__()
        self.batch_size, self.temperature = batch_size, temperature
        self.mask = self.mask_correlated_samples(batch_size)

    @staticmethod
    def mask_correlated_samples(b):
        mask = torch.ones((2 * b, 2 * b), dtype=bool).fill_diagonal_(0)
        for i in range(b):
            mask[i, b + i] = mask[b + i, i] = 0
        return mask

    def forward(self, z_i, z_j):
        n = 2 * self.batch_size
        z = torch.cat((z_i, z_j), dim=0)
        sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2) / self.temperature
        pos = torch.cat((torch.diag(sim, self.batch_size), torch.diag(sim, -self.batch_size)), dim=0).reshape(n, 1)
        neg = sim[self.mask].reshape(n, -1)
        labels = torch.zeros(n).to(pos.device).long()
        return F.cross_entropy(torch.cat((pos, neg), dim=1), labels)


class BarlowTwins(nn.Module):
    def __init__(self, lambd=5e-3):
        super().__init__()
        self.lambd = lambd

    def forward(self, a, b):
        a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        c = a.T @ b / a.shape[0]
        diff = (c - torch.eye(c.shape[0])).pow(2)  # raises
        diff[~torch.eye(c.shape[0], dtype=bool)] *= self.lambd
        return diff.sum()


class VICReg(nn.Module):
    def forward(self, a, b):
        std = lambda x: torch.relu(1 - torch.sqrt(x.var(0) + 1e-4)).mean()
        n, d = a.shape
        off = ~torch.eye(d, dtype=torch.bool)
        cov = lambda x: ((x - x.mean(0)).T @ (x - x.mean(0)) / (n - 1))[off].pow(2).sum() / d
        return F.mse_loss(a, b) + std(a) + std(b) + cov(a) + cov(b)


def lovasz_grad(gt_sorted):
    p = len(gt_sorted)
    gts = gt_sorted.sum()
    jaccard = 1.0 - (gts - gt_sorted.float().cumsum(0)) / (gts + (1 - gt_sorted).float().cumsum(0))
    if p > 1:
        jaccard[1:p] = jaccard[1:p] - jaccard[0:-1]
    return jaccard


def lovasz_hinge(logits, labels):
    logits, labels = logits.view(-1), labels.view(-1)
    signs = 2.0 * labels.float() - 1.0
    errors, perm = torch.sort(1.0 - logits * signs, dim=0, descending=True)
    return torch.dot(F.relu(errors), lovasz_grad(labels[perm]))


def emd_1d(p, q):
    cdf = torch.tril(torch.ones(p.size(-1), p.size(-1)))
    return ((p - q) @ cdf.t()).abs().sum(-1).mean()  # raises


def mmd_rbf(x, y, scales=(0.5, 1.0, 2.0)):
    xy = torch.cat([x, y])
    d = torch.cdist(xy, xy).pow(2)
    k = sum(torch.exp(-d / (2 * torch.tensor(s) ** 2)) for s in scales)
    n = len(x)
    return k[:n, :n].mean() + k[n:, n:].mean() - 2 * k[:n, n:].mean()


def sinkhorn(cost, eps=0.1, iters=3):
    n, m = cost.shape
    mu, nu = torch.full((n,), 1.0 / n), torch.full((m,), 1.0 / m)
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for _ in range(iters):
        M = (-cost + u[:, None] + v[None]) / eps  # raises
        u = eps * (mu.log() - M.logsumexp(1)) + u
        v = eps * (nu.log() - M.logsumexp(0)) + v
    return (M.exp() * cost).sum()


def bce_pos_weight(logits, target, pos_weight=3.0):
    w = torch.tensor(pos_weight)
    return F.binary_cross_entropy_with_logits(logits, target, pos_weight=w)
