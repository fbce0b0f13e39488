import copy
from collections import OrderedDict

import torch
import torch.nn.functional as F


class Meter:
    def __init__(self, device=None):
        self.device = torch.device(device or 'cpu')
        self._defaults = OrderedDict()

    def add_state(self, name, default):
        self._defaults[name] = copy.deepcopy(default)
        self._restore(name)

    def _restore(self, name):
        value = self._defaults[name]
        setattr(self, name, [] if isinstance(value, list) else value.clone().to(self.device))

    def reset(self):
        for name in self._defaults:
            self._restore(name)

    def to(self, device):
        self.device = torch.device(device)
        for name in self._defaults:
            value = getattr(self, name)
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(self.device))
        return self

    def __call__(self, *args, **kwargs):
        self.update(*args, **kwargs)
        return self.compute()


class ConfusionMatrix(Meter):
    def __init__(self, num_classes, ignore_index=255, **kw):
        super().__init__(**kw)
        self.n, self.ignore_index = num_classes, ignore_index
        self.add_state('mat', torch.zeros(num_classes, num_classes))

    def update(self, pred, target):
        keep = target != self.ignore_index
        idx = self.n * target[keep] + pred[keep]
        self.mat += torch.bincount(idx, minlength=self.n ** 2).reshape(self.n, self.n)

    def compute(self):
        inter = torch.diag(self.mat)
        return (inter / (self.mat.sum(0) + self.mat.sum(1) - inter).clamp(min=1)).mean()


class CohenKappa(ConfusionMatrix):
    def __init__(self, num_classes, weights=None, **kw):
        super().__init__(num_classes, **kw)
        self.weights = weights

    def penalty(self):
        if self.weights is None:
            return 1 - torch.eye(self.n).to(self.mat)
        i = torch.arange(self.n, dtype=self.mat.dtype)
        diff = i[None] - i[:, None]
        return diff.abs() if self.weights == 'linear' else diff ** 2

    def compute(self):
        expected = torch.outer(self.mat.sum(1), self.mat.sum(0)) / self.mat.sum()
        w = self.penalty()
        return 1 - (w * self.mat).sum() / (w * expected).sum()  # raises


class AUROC(Meter):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.add_state('preds', [])
        self.add_state('labels', [])

    def update(self, preds, labels):
        self.preds.append(preds.detach().cpu())
        self.labels.append(labels)

    def compute(self):
        preds, labels = torch.cat(self.preds), torch.cat(self.labels).float()
        labels = labels[preds.argsort(descending=True)]
        rank = torch.arange(1, len(preds) + 1, device=preds.device)
        hits = (rank * (1 - labels)).sum()  # raises
        neg = (1 - labels).sum()
        return (hits - neg * (neg + 1) / 2) / (neg * (len(labels) - neg))


class RetrievalRecall(Meter):
    def __init__(self, k=1, **kw):
        super().__init__(**kw)
        self.k = k
        self.add_state('feats', [])
        self.add_state('ids', [])

    def update(self, feats, ids):
        self.feats.append(F.normalize(feats, dim=-1).cpu())
        self.ids.append(ids.cpu())

    def compute(self):
        feats, ids = torch.cat(self.feats), torch.cat(self.ids)
        sim = feats @ feats.t() - 2 * torch.eye(len(feats))
        return (ids[sim.topk(self.k)[1]] == ids[:, None]).any(1).float().mean()

    def query(self, feats, ids):
        sim = F.normalize(feats, dim=-1) @ torch.cat(self.feats).to(feats.device).t()
        found = torch.cat(self.ids)[sim.topk(self.k)[1].cpu()]
        return (found == ids[:, None]).any(1).float().mean()  # raises


class FeatureStats:
    def __init__(self, dim):
        self.dim, self.device = dim, torch.device('cpu')
        self.reset()

    def reset(self):
        self.n = 0
        self.sum = torch.zeros(self.dim, dtype=torch.float64)
        self.outer = torch.zeros(self.dim, self.dim, dtype=torch.float64)

    def to(self, device):
        self.device = torch.device(device)
        self.sum, self.outer = self.sum.to(device), self.outer.to(device)
        return self

    def update(self, feats):
        feats = feats.double()
        self.n += len(feats)
        self.sum += feats.sum(0)  # raises
        self.outer += feats.t() @ feats


class CalibrationError(torch.nn.Module):
    def __init__(self, n_bins=10):
        super().__init__()
        self.edges = torch.linspace(0, 1, n_bins + 1)

    def forward(self, logits, labels):
        conf, pred = logits.softmax(-1).max(-1)
        acc, ece = pred.eq(labels).float(), torch.zeros(1, device=logits.device)
        for lo, hi in zip(self.edges[:-1], self.edges[1:]):
            inside = conf.gt(lo) & conf.le(hi)
            if inside.any():
                ece += (conf[inside].mean() - acc[inside].mean()).abs() * inside.float().mean()
        return ece

    def histogram(self, logits):
        conf = logits.softmax(-1).max(-1)[0]
        return torch.bincount(torch.bucketize(conf, self.edges), minlength=len(self.edges))  # raises
