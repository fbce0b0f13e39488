from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Dict, List, Optional, Union

import numpy as np
import torch
from torch import Tensor, tensor
from torch.nn import Module


class Metric(Module, ABC):
    """States are declared by add_state; `.to` moves them, `reset` puts the defaults on the current device."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._defaults: Dict[str, Union[List, Tensor]] = {}
        self._device = torch.device("cpu")

    @property
    def device(self):
        return self._device

    def add_state(self, name, default):
        if isinstance(default, Tensor):
            default = default.contiguous()
        setattr(self, name, deepcopy(default))
        self._defaults[name] = deepcopy(default)

    def reset(self):
        for k, v in self._defaults.items():
            setattr(self, k, v.detach().clone().to(self._device) if isinstance(v, Tensor) else [])

    def _apply(self, fn):
        this = super()._apply(fn)
        for k in this._defaults:
            cur = getattr(this, k)
            setattr(this, k, fn(cur) if isinstance(cur, Tensor) else [fn(c) for c in cur])
        this._device = fn(torch.zeros(1)).device
        return this

    @abstractmethod
    def update(self, *a, **k):
        ...

    @abstractmethod
    def compute(self):
        ...


# clean
class Accuracy(Metric):
    def __init__(self, topk: int = 1):
        super().__init__()
        self.topk = topk
        self.add_state("correct", tensor(0))
        self.add_state("total", tensor(0))

    def update(self, preds: Tensor, target: Tensor):
        top = preds.topk(self.topk, dim=-1).indices
        self.correct += (top == target[:, None]).any(-1).sum()
        self.total += target.numel()

    def compute(self):
        return self.correct.float() / self.total


# broken
class CalibrationError(Metric):
    def __init__(self, n_bins: int = 5, norm: str = "l1"):
        super().__init__()
        self.norm = norm
        self.bin_boundaries = torch.linspace(0, 1, n_bins + 1)
        self.add_state("confidences", [])
        self.add_state("accuracies", [])

    def update(self, preds: Tensor, target: Tensor):
        conf, lab = preds.softmax(-1).max(-1)
        self.confidences.append(conf)
        self.accuracies.append((lab == target).float())

    def compute(self):
        conf, acc = torch.cat(self.confidences), torch.cat(self.accuracies)
        idx = torch.bucketize(conf, self.bin_boundaries) - 1  # raises
        n = self.bin_boundaries.numel() - 1
        count = torch.zeros(n, device=conf.device).scatter_add_(0, idx, torch.ones_like(conf))
        c = torch.zeros(n, device=conf.device).scatter_add_(0, idx, conf) / count.clamp(min=1)
        a = torch.zeros(n, device=conf.device).scatter_add_(0, idx, acc) / count.clamp(min=1)
        gap = (c - a).abs() * count / count.sum()
        return gap.sum() if self.norm == "l1" else gap.max()


# broken
def retrieval_normalized_dcg(preds: Tensor, target: Tensor, top_k: Optional[int] = None) -> Tensor:
    top_k = preds.shape[-1] if top_k is None else top_k

    def dcg(t: Tensor) -> Tensor:
        denom = torch.log2(torch.arange(t.shape[-1]) + 2.0)
        return (t / denom).sum(dim=-1)  # raises

    sorted_t = target[torch.argsort(preds, dim=-1, descending=True)][:top_k]
    ideal = torch.sort(target, descending=True)[0][:top_k]
    ideal_dcg, target_dcg = dcg(ideal), dcg(sorted_t)
    if ideal_dcg <= 0:
        return torch.tensor(0.0, device=preds.device)
    return target_dcg / ideal_dcg


# clean
def roc_auc(preds: Tensor, target: Tensor, thresholds: Union[int, Sequence, Tensor, None] = None) -> float:
    if isinstance(thresholds, int):
        thresholds = torch.linspace(0, 1, thresholds, device=preds.device)
    elif isinstance(thresholds, (list, tuple)):
        thresholds = torch.tensor(thresholds).to(preds.device)
    elif isinstance(thresholds, Tensor):
        thresholds = thresholds.to(preds)
    else:
        thresholds = preds.unique()
    hit = preds[None] >= thresholds[:, None]
    pos = target.bool()
    tpr = (hit & pos).sum(1) / pos.sum().clamp(min=1)
    fpr = (hit & ~pos).sum(1) / (~pos).sum().clamp(min=1)
    return abs(np.trapz(tpr.cpu().numpy(), fpr.detach().cpu().numpy()))


# clean
class MeanAveragePrecisionish(Metric):
    """evaluates on the host, like COCO's tools"""

    def __init__(self, iou_thresholds: Optional[List[float]] = None):
        super().__init__()
        self.iou_thresholds = torch.tensor(iou_thresholds or [.5, .75])
        self.add_state("detections", [])
        self.add_state("groundtruths", [])

    def update(self, preds: List[Dict[str, Tensor]], target: List[Dict[str, Tensor]]):
        for p, t in zip(preds, target):
            self.detections.append(torch.cat([p["boxes"], p["scores"][:, None]], 1))
            self.groundtruths.append(t["boxes"])

    def compute(self):
        res = []
        dets, gts = ([x.cpu() for x in xs] for xs in (self.detections, self.groundtruths))
        for d, g in zip(dets, gts):
            lt, rb = torch.max(d[:, None, :2], g[:, :2]), torch.min(d[:, None, 2:4], g[:, 2:])
            inter = (rb - lt).clamp(0).prod(-1)
            area = lambda b: (b[:, 2:4] - b[:, :2]).prod(-1)
            iou = inter / (area(d)[:, None] + area(g) - inter)
            res.append((iou.max(1).values[:, None] >= self.iou_thresholds).float().mean(0))
        return torch.stack(res).mean(0).numpy()


# broken
class RunningConfusion(Metric):
    def __init__(self, num_classes: int, ignore_index: Optional[int] = None):
        super().__init__()
        self.n, self.ignore = num_classes, ignore_index
        self.add_state("mat", torch.zeros(num_classes, num_classes, dtype=torch.long))

    def update(self, preds: Tensor, target: Tensor):
        if self.ignore is not None:
            keep = target != self.ignore
            preds, target = preds[keep], target[keep]
        self.mat += torch.bincount(target * self.n + preds, minlength=self.n ** 2).view(self.n, self.n)

    def compute(self, class_weight: Optional[Tensor] = None):
        m = self.mat.float()
        iou = m.diag() / (m.sum(0) + m.sum(1) - m.diag()).clamp(min=1)
        if class_weight is None:
            class_weight = torch.full((self.n,), 1. / self.n)
        return torch.dot(iou, class_weight)  # raises
