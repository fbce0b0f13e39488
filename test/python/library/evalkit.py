from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module


def dim_zero_cat(x):
    x = x if isinstance(x, (list, tuple)) else [x]
    if not x:
        raise ValueError("No samples to concatenate")
    return torch.cat([y.unsqueeze(0) if y.ndim == 0 else y for y in x], dim=0)


def dim_zero_sum(x):
    return torch.sum(x, dim=0)


class Metric(Module, ABC):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._defaults: Dict[str, Union[Tensor, list]] = {}
        self._reductions: Dict[str, Optional[Callable]] = {}
        self._device = torch.device("cpu")

    def add_state(self, name: str, default: Union[Tensor, list], dist_reduce_fx: Optional[Callable] = None) -> None:
        setattr(self, name, [] if isinstance(default, list) else default)
        self._defaults[name] = default.clone() if isinstance(default, Tensor) else []
        self._reductions[name] = dist_reduce_fx

    @property
    def device(self):
        return self._device

    def _apply(self, fn):
        this = super()._apply(fn)
        for key in this._defaults:
            value = getattr(this, key)
            if isinstance(value, Tensor):
                setattr(this, key, fn(value))
            else:
                setattr(this, key, [fn(v) for v in value])
        this._device = fn(torch.zeros(1)).device
        return this

    def reset(self) -> None:
        for name, default in self._defaults.items():
            setattr(self, name, default.detach().clone().to(self.device) if isinstance(default, Tensor) else [])

    @abstractmethod
    def update(self, *args: Any) -> None:
        ...

    @abstractmethod
    def compute(self) -> Any:
        ...

    def forward(self, *args):
        self.update(*args)
        return self.compute()


class ConfusionMatrix(Metric):
    def __init__(self, num_classes: int, normalize: Optional[str] = None, ignore_index: Optional[int] = None):
        super().__init__()
        self.num_classes, self.normalize, self.ignore_index = num_classes, normalize, ignore_index
        self.add_state("confmat", torch.zeros(num_classes, num_classes, dtype=torch.long), dist_reduce_fx=dim_zero_sum)

    def update(self, preds: Tensor, target: Tensor) -> None:
        preds = preds.argmax(1) if preds.ndim == target.ndim + 1 else preds
        if self.ignore_index is not None:
            keep = target != self.ignore_index
            preds, target = preds[keep], target[keep]
        unique = target * self.num_classes + preds
        self.confmat += torch.bincount(unique.flatten(), minlength=self.num_classes ** 2).view(self.num_classes, -1)

    def compute(self) -> Tensor:
        cm = self.confmat.float()
        if self.normalize == "true":
            cm = cm / cm.sum(1, keepdim=True)
        elif self.normalize == "all":
            cm = cm / cm.sum()
        cm[torch.isnan(cm)] = 0
        return cm


class CohenKappa(ConfusionMatrix):
    def __init__(self, num_classes, weights=None):
        super().__init__(num_classes)
        self.weights = weights

    def compute(self):
        cm = super().compute()
        n = cm.shape[0]
        expected = torch.outer(cm.sum(1), cm.sum(0)) / cm.sum()
        if self.weights is None:
            w = torch.ones_like(cm).fill_diagonal_(0)
        elif self.weights == "linear":
            grid = torch.arange(n).expand(n, n)
            w = (grid - grid.T).abs().type_as(cm)
        else:
            grid = torch.arange(n).float().expand(n, n)
            w = (grid - grid.T) ** 2
        return 1 - (w * cm).sum() / (w * expected).sum()  # raises


class AUROC(Metric):
    def __init__(self, max_fpr: Optional[float] = None):
        super().__init__()
        self.max_fpr = max_fpr
        self.add_state("preds", [], dist_reduce_fx=dim_zero_cat)
        self.add_state("target", [], dist_reduce_fx=dim_zero_cat)

    def update(self, preds, target):
        self.preds.append(preds)
        self.target.append(target)

    def compute(self):
        preds, target = dim_zero_cat(self.preds), dim_zero_cat(self.target)
        order = preds.argsort(descending=True)
        tps = target[order].cumsum(0).float()
        fps = 1 + torch.arange(len(tps), device=tps.device) - tps
        tpr, fpr = tps / tps[-1], fps / fps[-1].clamp(min=1)
        if self.max_fpr is None:
            return torch.trapz(tpr, fpr)
        limit = torch.tensor(self.max_fpr)
        stop = torch.bucketize(float(limit), fpr, right=True)
        fpr = torch.cat([fpr[:stop], limit.view(1)])  # raises
        return torch.trapz(tpr[: len(fpr)], fpr) / limit


class RetrievalMRR(Metric):
    def __init__(self):
        super().__init__()
        for name in ("indexes", "preds", "target"):
            self.add_state(name, [], dist_reduce_fx=None)

    def update(self, preds, target, indexes):
        self.indexes.append(indexes.flatten())
        self.preds.append(preds.flatten())
        self.target.append(target.flatten())

    def compute(self):
        idx, preds, target = (dim_zero_cat(getattr(self, k)) for k in ("indexes", "preds", "target"))
        res = []
        for group in idx.unique().tolist():
            rows = (idx == group).nonzero().squeeze(-1)
            t = target[rows][preds[rows].argsort(descending=True)]
            if not t.sum():
                res.append(torch.tensor(0.0))
            else:
                res.append(1.0 / (t.nonzero()[0, 0] + 1.0))
        return torch.stack(res).mean()  # raises


class SSIM(Metric):
    def __init__(self, kernel_size: int = 3, data_range: Optional[float] = None, k1=0.01, k2=0.03):
        super().__init__()
        self.kernel_size, self.data_range, self.k1, self.k2 = kernel_size, data_range, k1, k2
        self.add_state("similarity", torch.tensor(0.0), dist_reduce_fx=dim_zero_sum)
        self.add_state("total", torch.tensor(0), dist_reduce_fx=dim_zero_sum)

    def update(self, preds, target):
        c = preds.size(1)
        kernel = torch.ones(c, 1, self.kernel_size, self.kernel_size, dtype=preds.dtype, device=preds.device) / self.kernel_size ** 2
        rng = max(preds.max() - preds.min(), target.max() - target.min()) if self.data_range is None else torch.tensor(self.data_range)
        stats = torch.nn.functional.conv2d(torch.cat((preds, target, preds * preds, target * target, preds * target)), kernel, groups=c)
        mp, mt, pp, tt, pt = stats.split(preds.size(0))
        c1, c2 = (self.k1 * rng) ** 2, (self.k2 * rng) ** 2
        val = ((2 * mp * mt + c1) * (2 * (pt - mp * mt) + c2)) / ((mp ** 2 + mt ** 2 + c1) * (pp - mp ** 2 + tt - mt ** 2 + c2))
        self.similarity += val.flatten(1).mean(1).sum()
        self.total += preds.shape[0]

    def compute(self):
        return self.similarity / self.total


class PearsonCorrCoef(Metric):
    def __init__(self, num_outputs: int = 1):
        super().__init__()
        self.num_outputs = num_outputs
        for name in ("mean_x", "mean_y", "var_x", "var_y", "corr_xy"):
            self.add_state(name, torch.zeros(num_outputs))
        self.n_total = torch.zeros(num_outputs)

    def update(self, preds, target):
        n = preds.size(0)
        prior = self.n_total
        mx = (prior * self.mean_x + preds.sum(0)) / (prior + n)  # raises
        my = (prior * self.mean_y + target.sum(0)) / (prior + n)
        self.var_x += ((preds - mx) * (preds - self.mean_x)).sum(0)
        self.var_y += ((target - my) * (target - self.mean_y)).sum(0)
        self.corr_xy += ((preds - mx) * (target - self.mean_y)).sum(0)
        self.mean_x, self.mean_y, self.n_total = mx, my, prior + n

    def compute(self):
        return self.corr_xy / (self.var_x * self.var_y).sqrt()


class MeanMetric(Metric):
    def __init__(self, nan_strategy: Union[str, float] = "ignore"):
        super().__init__()
        self.nan_strategy = nan_strategy
        self.add_state("value", torch.tensor(0.0))
        self.add_state("weight", torch.tensor(0.0))

    def _cast(self, x):
        if not isinstance(x, Tensor):
            x = torch.as_tensor(x, dtype=torch.float32, device=self.device)
        nans = torch.isnan(x)
        if nans.any():
            x = x[~nans] if self.nan_strategy == "ignore" else x.masked_fill(nans, self.nan_strategy)
        return x.float()

    def update(self, value, weight=1.0):
        value, weight = self._cast(value), self._cast(weight)
        weight = torch.broadcast_to(weight, value.shape)
        self.value += (value * weight).sum()
        self.weight += weight.sum()

    def compute(self):
        return self.value / self.weight


class MetricTracker:
    def __init__(self, metric: Metric, maximize: bool = True):
        self._base, self.maximize, self._steps = metric, maximize, []

    def increment(self, *args):
        self._base.reset()
        self._steps.append(self._base(*args))

    def compute_all(self):
        return torch.stack(self._steps)

    def best(self):
        value, idx = getattr(torch, "max" if self.maximize else "min")(self.compute_all(), 0)
        return value.item(), int(idx)


class FrechetDistance(Metric):
    def __init__(self, features: Module, dim: int):
        super().__init__()
        self.features = features
        self.dim = dim
        for which in ("real", "fake"):
            self.add_state(f"{which}_sum", torch.zeros(dim, dtype=torch.float64))
            self.add_state(f"{which}_cov", torch.zeros(dim, dim).double())
            self.add_state(f"{which}_n", torch.tensor(0).long())

    def update(self, images: Tensor, real: bool) -> None:
        f = self.features(images).double()
        which = "real" if real else "fake"
        setattr(self, f"{which}_sum", getattr(self, f"{which}_sum") + f.sum(0))
        setattr(self, f"{which}_cov", getattr(self, f"{which}_cov") + f.t() @ f)
        setattr(self, f"{which}_n", getattr(self, f"{which}_n") + len(f))

    def compute(self) -> Tensor:
        def moments(which):
            n = getattr(self, f"{which}_n")
            mu = getattr(self, f"{which}_sum") / n
            return mu, getattr(self, f"{which}_cov") / n - torch.outer(mu, mu)

        (m1, s1), (m2, s2) = moments("real"), moments("fake")
        eigs = torch.linalg.eigvals(s1 @ s2).sqrt().real.sum()
        return (m1 - m2).square().sum() + s1.trace() + s2.trace() - 2 * eigs


def bootstrap(metric_fn, preds, target, rounds: int = 3, generator: Optional[torch.Generator] = None):
    n = preds.size(0)
    values = []
    for _ in range(rounds):
        rows = torch.randint(n, (n,), generator=generator)
        values.append(metric_fn(preds[rows], target[rows]))
    return torch.stack(values).std()


def bootstrap_weights(metric_fn, preds, target, rounds: int = 3):
    values = torch.zeros(rounds)
    counts = torch.distributions.Poisson(1.0).sample((rounds, preds.size(0)))
    for i, w in enumerate(counts):
        values[i] = metric_fn(preds * w, target * w)  # raises
    return values.std()


def edit_distance_rates(preds: Sequence[str], target: Sequence[str]) -> Tensor:
    def distance(a, b):
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            prev, row[0] = row[0], i
            for j, y in enumerate(b, 1):
                prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
        return row[-1]

    return torch.tensor([distance(p, t) / max(1, len(t)) for p, t in zip(preds, target)])


def topk_onehot(scores: Tensor, k: int = 1) -> Tensor:
    zeros = torch.zeros(scores.shape, dtype=torch.int32, device=scores.device)
    return zeros.scatter(1, scores.topk(k, dim=1).indices, 1)


def precision_at_thresholds(scores, target, thresholds=11):
    if isinstance(thresholds, int):
        thresholds = torch.linspace(0, 1, thresholds)
    hits = scores[:, None] >= thresholds  # raises
    tp = (hits & (target[:, None] == 1)).sum(0)
    return tp / hits.sum(0).clamp(min=1)
