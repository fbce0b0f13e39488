"""Streaming metrics with states, in the manner of torchmetrics."""
from copy import deepcopy

import numpy as np
import torch
from torch import nn


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults = {}

    def add_state(self, name, default):
        self._defaults[name] = deepcopy(default)
        setattr(self, name, deepcopy(default))

    def reset(self):
        for name, default in self._defaults.items():
            cur = getattr(self, name)
            setattr(self, name, default.detach().clone().to(cur.device) if isinstance(default, torch.Tensor) else [])

    def _apply(self, fn):
        this = super()._apply(fn)
        for name in self._defaults:
            value = getattr(this, name)
            setattr(this, name, fn(value) if isinstance(value, torch.Tensor) else [fn(v) for v in value])
        return this

    def forward(self, *args):
        self.update(*args)
        return self.compute()


class Accuracy(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("correct", torch.tensor(0))
        self.add_state("total", torch.tensor(0))

    def update(self, preds, target):
        if preds.ndim == target.ndim + 1:
            preds = preds.argmax(1)
        self.correct += (preds == target).sum()
        self.total += target.numel()

    def compute(self):
        return self.correct.float() / self.total


class CalibrationError(Metric):
    def __init__(self, n_bins=5):
        super().__init__()
        self.n_bins = n_bins
        self.bin_boundaries = torch.linspace(0, 1, n_bins + 1)
        self.add_state("conf", [])
        self.add_state("acc", [])

    def update(self, probs, target):
        c, pred = probs.max(1)
        self.conf.append(c)
        self.acc.append(pred.eq(target).float())

    def compute(self):
        conf, acc = torch.cat(self.conf), torch.cat(self.acc)
        idx = torch.bucketize(conf, self.bin_boundaries).clamp(1, self.n_bins) - 1  # raises
        out = conf.new_zeros(())
        for b in range(self.n_bins):
            m = idx == b
            if m.any():
                out += m.float().mean() * (conf[m].mean() - acc[m].mean()).abs()
        return out


class MeanIoU(Metric):
    def __init__(self, num_classes, ignore_index=None):
        super().__init__()
        self.num_classes, self.ignore_index = num_classes, ignore_index
        self.register_buffer("mat", torch.zeros(num_classes, num_classes, dtype=torch.long), persistent=False)

    def update(self, pred, target):
        if self.ignore_index is not None:
            keep = target != self.ignore_index
            pred, target = pred[keep], target[keep]
        k = target.flatten() * self.num_classes + pred.flatten()
        self.mat += torch.bincount(k, minlength=self.num_classes ** 2).view(self.num_classes, -1)

    def compute(self):
        m = self.mat.float()
        inter = m.diagonal()
        return (inter / (m.sum(0) + m.sum(1) - inter).clamp(min=1)).mean()


class PearsonCorr(Metric):
    def __init__(self):
        super().__init__()
        for n in ("mx", "my", "vx", "vy", "cxy"):
            self.register_buffer(n, torch.zeros(1))
        self.n = 0

    def update(self, x, y):
        self.n += len(x)
        mx, my = self.mx + (x - self.mx).sum() / self.n, self.my + (y - self.my).sum() / self.n
        self.vx += ((x - self.mx) * (x - mx)).sum()
        self.vy += ((y - self.my) * (y - my)).sum()
        self.cxy += ((x - self.mx) * (y - my)).sum()
        self.mx, self.my = mx, my

    def compute(self):
        return self.cxy / (self.vx * self.vy).sqrt().clamp(min=1e-9)


class Perplexity(Metric):
    def __init__(self, ignore=-100):
        super().__init__()
        self.ignore = ignore
        self.nll, self.count = torch.zeros(1), 0

    def update(self, logits, target):
        logp = logits.log_softmax(-1).flatten(0, -2)
        target = target.flatten()
        mask = target.ne(self.ignore)
        target = target.where(mask, torch.zeros_like(target))
        tok = logp.gather(1, target[:, None]).squeeze(1)
        self.nll -= tok[mask].sum()  # raises
        self.count += int(mask.sum())

    def compute(self):
        return torch.exp(self.nll / max(self.count, 1))


def retrieval_average_precision(preds, target):
    target = target[torch.argsort(preds, dim=-1, descending=True)]
    if not target.sum():
        return torch.tensor(0.0, device=preds.device)
    positions = torch.arange(1, len(target) + 1, dtype=torch.float32)[target > 0]  # raises
    return torch.div(torch.arange(1, len(positions) + 1, device=positions.device), positions).mean()


def retrieval_reciprocal_rank(preds, target):
    order = torch.argsort(preds, descending=True)
    position = torch.nonzero(target[order]).view(-1)
    if len(position) == 0:
        return torch.tensor(0.0)
    return 1.0 / (position[0] + 1.0)


def dcg(target):
    denom = torch.log2(torch.arange(target.shape[-1], device=target.device) + 2.0)
    return (target / denom).sum(dim=-1)


def ndcg(preds, target, k=None):
    k = preds.shape[-1] if k is None else k
    ideal = target.sort(descending=True)[0][:k]
    best = dcg(ideal.float())
    return dcg(target[preds.argsort(descending=True)][:k].float()) / best.clamp(min=1e-8)


def spearman(preds, target):
    def rank(data):
        n = data.numel()
        r = torch.empty_like(data)
        idx = data.argsort()
        r[idx[:n]] = torch.arange(1, n + 1, dtype=data.dtype)  # raises
        return r
    a, b = rank(preds), rank(target)
    a, b = a - a.mean(), b - b.mean()
    return (a * b).mean() / (a.pow(2).mean().sqrt() * b.pow(2).mean().sqrt())


def bootstrap_ci(values, n_boot=8):
    idx = torch.randint(len(values), (n_boot, len(values)))
    means = values[idx].mean(1).sort()[0]
    return means[0], means[-1]


def roc_auc(scores, labels):
    order = np.argsort(scores)  # raises
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    pos = np.asarray(labels) == 1
    return (ranks[pos].sum() - pos.sum() * (pos.sum() + 1) / 2) / max(pos.sum() * (~pos).sum(), 1)
