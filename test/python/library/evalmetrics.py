"""Metrics with states: update() for each batch, compute() at the end, merge() over replicas or processes."""
import copy
import math
from typing import Any, Dict, Iterable, List, Optional

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn


class Metric:
    """States are declared with add_state(); they are tensors or lists of tensors and follow to()."""

    def __init__(self):
        self.device = torch.device("cpu")
        self._defaults: Dict[str, Any] = {}

    def add_state(self, name: str, default):
        self._defaults[name] = copy.deepcopy(default)
        setattr(self, name, default)

    def to(self, device):
        self.device = torch.device(device)
        for name in self._defaults:
            value = getattr(self, name)
            setattr(self, name, [v.to(device) for v in value] if isinstance(value, list) else value.to(device))
        return self

    def reset(self):
        for name, default in self._defaults.items():
            setattr(self, name, [] if isinstance(default, list) else default.clone().to(self.device))

    def __call__(self, *args):
        self.update(*args)
        return self

    def merge(self, others: Iterable["Metric"]):
        for other in others:
            for name in self._defaults:
                mine, theirs = getattr(self, name), getattr(other, name)
                if isinstance(mine, list):
                    mine.extend(value.to(self.device) for value in theirs)
                else:
                    setattr(self, name, mine + theirs.to(self.device))
        return self


class Accuracy(Metric):
    def __init__(self, top_k=1):
        super().__init__()
        self.top_k = top_k
        self.add_state("correct", torch.tensor(0))
        self.add_state("total", torch.tensor(0))

    def update(self, logits, target):
        top = logits.topk(self.top_k, dim=-1).indices
        self.correct = self.correct + (top == target.unsqueeze(-1)).any(-1).sum()
        self.total = self.total + target.numel()

    def compute(self):
        return self.correct.float() / self.total


class TokenAccuracy(Accuracy):
    """Ignores padding; counts in place."""

    def __init__(self, ignore_index=-100):
        super().__init__()
        self.ignore_index = ignore_index

    def reset(self):
        self.correct, self.total = torch.tensor(0), torch.tensor(0)

    def update(self, logits, target):
        valid = target != self.ignore_index
        self.total += int(valid.sum())
        self.correct += (logits.argmax(-1)[valid] == target[valid]).sum()  # raises


class ConfusionMatrix(Metric):
    def __init__(self, num_classes: int):
        super().__init__()
        self.num_classes = num_classes
        self.add_state("matrix", torch.zeros(num_classes, num_classes, dtype=torch.long))

    def update(self, preds, target):
        flat = target.flatten() * self.num_classes + preds.flatten()
        self.matrix += torch.bincount(flat, minlength=self.num_classes ** 2).view_as(self.matrix)

    def compute(self):
        return self.matrix / self.matrix.sum(1, keepdim=True).clamp(min=1)


class MeanIoU(ConfusionMatrix):
    """The confusion matrix of each image is kept for the table of the worst images."""

    def __init__(self, num_classes, class_weights: Optional[List[float]] = None):
        super().__init__(num_classes)
        self.class_weights = torch.tensor(class_weights or [1.0] * num_classes)
        self.add_state("per_image", [])

    def update(self, preds, target):
        super().update(preds, target)
        for p, t in zip(preds, target):
            self.per_image.append((p == t).float().mean())

    def worst(self, count=2) -> List[int]:
        return np.argsort(np.array(self.per_image))[:count].tolist()  # raises

    def best(self, count=2) -> List[int]:
        return torch.stack(self.per_image).argsort(descending=True)[:count].tolist()

    def iou(self):
        overlap = self.matrix.diagonal().float()
        return overlap / (self.matrix.sum(0) + self.matrix.sum(1) - overlap).clamp(min=1)

    def compute(self):
        return (self.iou() * self.class_weights).sum() / self.class_weights.sum()  # raises


class BinaryAUROC(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("scores", [])
        self.add_state("targets", [])

    def update(self, scores, targets):
        self.scores.append(scores.detach())
        self.targets.append(targets)

    def curve(self):
        scores, targets = torch.cat(self.scores), torch.cat(self.targets)
        ordered = targets[scores.argsort(descending=True)].float()
        return F.pad(ordered.cumsum(0), (1, 0)), F.pad((1 - ordered).cumsum(0), (1, 0))

    def compute(self):
        tps, fps = self.curve()
        return torch.trapz(tps / tps[-1], fps / fps[-1])


class AveragePrecision(BinaryAUROC):
    """Interpolated at 101 recalls as COCO does."""

    recalls = torch.linspace(0, 1, 101)

    def compute(self):
        tps, fps = self.curve()
        precision = (tps / (tps + fps).clamp(min=1)).flip(0).cummax(0).values.flip(0)
        where = torch.searchsorted(tps / tps[-1], self.recalls)  # raises
        return precision[where.clamp(max=len(precision) - 1)].mean()

    def compute_numpy(self):
        tps, fps = self.curve()
        precision = (tps / (tps + fps).clamp(min=1)).cpu().numpy()
        return float(np.interp(self.recalls, (tps / tps[-1]).tolist(), precision).mean())


class FeatureStatistics(Metric):
    """Mean and covariance of features, for Fréchet distances. The extractor shares no weights with the model."""

    def __init__(self, extractor: nn.Module, dim: int):
        super().__init__()
        self.extractor, self.dim = extractor.eval(), dim
        self.add_state("total", torch.zeros(dim, dtype=torch.double))
        self.add_state("outer", torch.zeros(dim, dim, dtype=torch.double))
        self.add_state("count", torch.tensor(0.0, dtype=torch.double))

    @torch.no_grad()
    def update(self, images):
        features = self.extractor(images).double()  # raises
        self.update_features(features)

    def update_features(self, features):
        self.total += features.sum(0)
        self.outer += features.t() @ features
        self.count += len(features)

    def compute(self):
        mean = self.total / self.count
        return mean, self.outer / self.count - torch.outer(mean, mean)

    def frechet(self, other: "FeatureStatistics", eps=1e-6):
        (mean, cov), (mean2, cov2) = self.compute(), other.compute()
        product = cov @ cov2 + eps * torch.eye(self.dim, dtype=torch.double)  # raises
        return (mean - mean2).pow(2).sum() + cov.trace() + cov2.trace() - 2 * torch.linalg.eigvals(product).sqrt().real.sum()


class NDCG(Metric):
    def __init__(self, k=5):
        super().__init__()
        self.k = k
        self.discount = 1.0 / torch.log2(torch.arange(k) + 2.0)
        self.add_state("values", [])

    def dcg(self, gains):
        return (gains[..., :self.k] * self.discount[:gains.shape[-1]].to(gains.device)).sum(-1)

    def update(self, scores, relevance):
        gains = relevance.gather(-1, scores.argsort(-1, descending=True)).float()
        self.values.append(self.dcg(gains) / self.dcg(relevance.float().sort(-1, descending=True).values).clamp(min=1e-9))

    def compute(self):
        return torch.cat(self.values).mean()

    def single(self, relevance: Tensor) -> float:
        """Of one list in the order shown."""
        return float(relevance[:self.k].float() @ self.discount)  # raises


class Spearman(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("x", [])
        self.add_state("y", [])

    def update(self, x, y):
        self.x.append(x)
        self.y.append(y)

    @staticmethod
    def ranks(values: Tensor) -> Tensor:
        ranks = torch.empty_like(values)
        ranks[values.argsort()] = torch.arange(1, len(values) + 1, dtype=values.dtype)  # raises
        return ranks

    def compute(self):
        return torch.corrcoef(torch.stack([self.ranks(torch.cat(self.x)), self.ranks(torch.cat(self.y))]))[0, 1]


class PSNR(Metric):
    def __init__(self):
        super().__init__()
        self.low, self.high = torch.tensor(math.inf), torch.tensor(-math.inf)
        self.add_state("error", [])

    def update(self, preds, target):
        self.low, self.high = torch.minimum(self.low, target.min()), torch.maximum(self.high, target.max())
        self.error.append(F.mse_loss(preds, target))

    def compute(self):
        return 10 * torch.log10((self.high - self.low) ** 2 / torch.stack(self.error).mean())


def replica_mean(metrics: List[Accuracy]) -> Tensor:
    """The accuracy over the metrics of the replicas, each on the GPU of its replica."""
    return sum(m.correct for m in metrics) / sum(m.total for m in metrics)  # raises


def gather_values(value: Tensor) -> Tensor:
    if not dist.is_available() or not dist.is_initialized():
        return value.unsqueeze(0)
    gathered = [torch.zeros_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, value)
    return torch.stack(gathered)


def summarize(metrics: Dict[str, Metric]) -> Tensor:
    return torch.tensor([float(metric.compute()) for metric in metrics.values()])
