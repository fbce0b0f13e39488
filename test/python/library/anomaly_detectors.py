"""Anomaly detectors for features, windows of time series and images, with thresholds, ensembles and reports."""
from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Sequence, Tuple, Type

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

_DETECTORS: Dict[str, Type["Detector"]] = {}


def register(name: str):
    def wrap(cls):
        _DETECTORS[name] = cls
        return cls
    return wrap


@dataclass
class DetectorConfig:
    name: str = "gaussian"
    features: int = 4
    device: str = "cuda"
    contamination: float = 0.1
    batch_size: int = 8
    neighbours: int = 3
    hidden: int = 6

    def build(self) -> "Detector":
        return _DETECTORS[self.name](self).to(self.device)


def as_features(func):
    """Lets a method take arrays, lists or tensors; gives it float tensors on the detector's device."""

    @functools.wraps(func)
    def inner(self, x, *args, **kwargs):
        tensor = torch.as_tensor(np.asarray(x) if isinstance(x, list) else x, dtype=torch.float32)
        return func(self, tensor.to(self.device), *args, **kwargs)

    return inner


class Detector(nn.Module, ABC):
    """Template: `fit` prepares, `_score` scores one batch, `decision` gives the scores as an array."""

    def __init__(self, config: DetectorConfig):
        super().__init__()
        self.config = config
        self.register_buffer("threshold", torch.tensor(float("nan")))
        self.setup()

    @property
    def device(self) -> torch.device:
        return self.threshold.device

    def setup(self) -> None:
        pass

    @abstractmethod
    def _fit(self, x: torch.Tensor) -> None:
        ...

    @abstractmethod
    def _score(self, x: torch.Tensor) -> torch.Tensor:
        ...

    @as_features
    def fit(self, x) -> "Detector":
        self._fit(x)
        scores = torch.cat([self._score(part).detach() for part in x.split(self.config.batch_size)])
        self.threshold.copy_(torch.quantile(scores, 1 - self.config.contamination))
        return self

    @as_features
    def decision(self, x) -> np.ndarray:
        with torch.no_grad():
            return np.concatenate([self._score(p).cpu().numpy() for p in x.split(self.config.batch_size)])

    @as_features
    def predict(self, x) -> torch.Tensor:
        return (self._score(x) > self.threshold).long()


@register("gaussian")
class GaussianDetector(Detector):
    def setup(self):
        self.register_buffer("mean", torch.zeros(self.config.features))
        self.register_buffer("precision", torch.eye(self.config.features))
        self.shrinkage = torch.tensor(0.05)

    def covariance(self, x: torch.Tensor) -> torch.Tensor:
        centered = x - x.mean(0)
        cov = centered.T @ centered / (len(x) - 1)
        target = torch.eye(x.shape[1]).to(cov) * cov.diagonal().mean()
        return (1 - self.shrinkage) * cov + self.shrinkage * target

    def _fit(self, x):
        self.mean = x.mean(0)
        self.precision = torch.linalg.inv(self.covariance(x))

    def _score(self, x):
        gap = x - self.mean
        return torch.einsum("ni,ij,nj->n", gap, self.precision, gap)

    def whiten(self, x: torch.Tensor) -> torch.Tensor:
        chol = torch.linalg.cholesky(self.precision + 1e-6 * torch.eye(self.config.features))  # raises
        return (x - self.mean) @ chol


@register("neighbours")
class NeighbourDetector(Detector):
    """Distance to the k-th neighbour in a memory bank."""

    def _fit(self, x):
        self.bank = x.clone()

    def _score(self, x):
        found = torch.cdist(x, self.bank).topk(self.config.neighbours, largest=False)
        return found.values[:, -1]


@register("offloaded")
class OffloadedNeighbours(NeighbourDetector):
    """The bank lies in host memory, in chunks."""

    def _fit(self, x):
        self.bank = x.cpu()
        self.chunks = list(self.bank.split(5))

    def _score(self, x):
        best = x.new_full((len(x),), float("inf"))
        for chunk in self.chunks:
            best = torch.minimum(best, torch.cdist(x, chunk.to(x.device)).amin(1))
        return best

    def explain(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        x = x.to(self.device)
        distance = torch.stack([torch.cdist(x, chunk.to(x.device)).amin(1).cpu() for chunk in self.chunks], dim=1)
        part = distance.argmin(1)
        nearest = torch.stack([self.chunks[p][0] for p in part.tolist()])
        return part, (x - nearest).abs()  # raises


class CoreSet:
    """Greedy choice of far-apart rows after a random projection."""

    def __init__(self, fraction: float = 0.3, width: int = 3):
        self.fraction, self.width = fraction, width

    def project(self, x: torch.Tensor) -> torch.Tensor:
        matrix = torch.randn(x.shape[1], self.width) / math.sqrt(self.width)
        return x @ matrix.type_as(x)

    def indices(self, x: torch.Tensor) -> torch.Tensor:
        low = self.project(x)
        distance = torch.full((len(low),), float("inf"))
        chosen: List[int] = [0]
        for _ in range(max(1, int(self.fraction * len(low))) - 1):
            step = (low - low[chosen[-1]]).norm(dim=1)
            distance = torch.minimum(distance, step.cpu())
            chosen.append(int(distance.argmax()))
        return torch.tensor(chosen)

    def take(self, x: torch.Tensor) -> torch.Tensor:
        return x[self.indices(x)]

    def take_rows(self, x: torch.Tensor) -> torch.Tensor:
        return torch.index_select(x, 0, self.indices(x))  # raises


@register("patches")
class PatchMemory(NeighbourDetector):
    """Memory of patch features from hooks on a small backbone."""

    def setup(self):
        self.backbone = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 3, stride=2, padding=1))
        self.captured: Dict[int, torch.Tensor] = {}
        for k in (0, 2):
            self.backbone[k].register_forward_hook(functools.partial(self._capture, k))
        self.coreset = CoreSet()
        self.kernel = self._gaussian()

    def _capture(self, key: int, module: nn.Module, args: Any, output: torch.Tensor) -> None:
        self.captured[key] = output.detach()

    @staticmethod
    def _gaussian(size: int = 3, sigma: float = 1.0) -> torch.Tensor:
        at = torch.arange(size) - size // 2
        line = torch.exp(-at ** 2 / (2 * sigma ** 2))
        return (line[:, None] * line)[None, None] / line.sum() ** 2

    def patches(self, images: torch.Tensor) -> torch.Tensor:
        self.backbone(images)
        maps = [self.captured[k] for k in sorted(self.captured)]
        maps = [F.adaptive_avg_pool2d(m, maps[-1].shape[-2:]) for m in maps]
        return torch.cat(maps, dim=1).permute(0, 2, 3, 1)

    def _fit(self, x):
        self.bank = self.coreset.take(self.patches(x).flatten(0, 2))

    def _score(self, x):
        patches = self.patches(x)
        return super()._score(patches.flatten(0, 2)).view(len(x), -1).amax(1)

    @as_features
    def heatmap(self, images, smooth: bool = False) -> torch.Tensor:
        patches = self.patches(images)
        scores = super()._score(patches.flatten(0, 2)).view(len(images), 1, *patches.shape[1:3])
        scores = F.interpolate(scores, size=images.shape[-2:], mode="bilinear", align_corners=False)
        if smooth:
            scores = F.conv2d(scores, self.kernel, padding=1)  # raises
        return scores[:, 0]


class AutoEncoderDetector(Detector):
    """Reconstruction error; subclasses choose the code."""

    def setup(self):
        width = self.config.hidden
        self.encoder = nn.Sequential(nn.Linear(self.config.features, width), nn.Tanh())
        self.decoder = nn.Linear(width, self.config.features)

    def code(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        return self._score(x).mean()

    def _score(self, x):
        return (self.decoder(self.code(x)) - x).pow(2).mean(-1)

    def _fit(self, x):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        order = torch.randperm(len(x))
        for index in order.split(self.config.batch_size):
            optimizer.zero_grad()
            self.loss(x[index]).backward()
            optimizer.step()


@register("autoencoder")
class PlainAutoEncoder(AutoEncoderDetector):
    def contributions(self, x: torch.Tensor) -> List[Tuple[int, float]]:
        errors = (self.decoder(self.code(x.to(self.device))) - x.to(self.device)).abs().mean(0)
        order = np.argsort(-errors.detach())  # raises
        return [(int(k), float(errors[int(k)])) for k in order]


@register("memae")
class MemoryAutoEncoder(AutoEncoderDetector):
    """Codes are mixtures of prototypes whose use is counted."""

    def setup(self):
        super().setup()
        self.prototypes = nn.Parameter(torch.randn(5, self.config.hidden))
        self.used = torch.zeros(5)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(F.normalize(self.encoder(x), dim=-1) @ F.normalize(self.prototypes, dim=-1).T, dim=-1)

    def code(self, x):
        weights = self.attention(x)
        self.used += weights.detach().sum(0).cpu()
        return weights @ self.prototypes

    def revive(self, x: torch.Tensor) -> None:
        dead = self.used < self.used.mean()
        fresh = self.encoder(x).detach().mean(0)
        keep = torch.where(dead[:, None], fresh, self.prototypes.data)  # raises
        self.prototypes.data.copy_(keep)


@register("svdd")
class DeepSVDD(Detector):
    """Distance to a center in the space of a network."""

    def setup(self):
        self.net = nn.Linear(self.config.features, self.config.hidden, bias=False)
        self.register_buffer("center", None)
        self.radius = torch.tensor(0.0)

    def _fit(self, x):
        with torch.no_grad():
            center = self.net(x).mean(0)
            small = center.abs() < 0.1
            center[small] = 0.1 * torch.sign(center[small])
        self.center = center
        self.radius = torch.quantile(self._score(x).detach().cpu(), torch.tensor([0.5, 0.9]))

    def _score(self, x):
        return (self.net(x) - self.center).pow(2).sum(-1)

    def soft_boundary(self, x: torch.Tensor, nu: float = 0.1) -> torch.Tensor:
        radius = self.radius[-1]
        excess = F.relu(self._score(x) - radius)
        return radius + excess.mean() / nu

    def bands(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bucketize(self._score(x).detach(), self.radius)  # raises


@register("forecast")
class ForecastDetector(Detector):
    """Errors of a linear forecast of the last value of each window, standardized by running moments."""

    def setup(self):
        self.weights = nn.Parameter(torch.zeros(self.config.features - 1))
        self.recent: Deque[torch.Tensor] = deque(maxlen=4)
        self.register_buffer("season", torch.zeros(3))

    def _fit(self, x):
        solution = torch.linalg.lstsq(x[:, :-1].cpu(), x[:, -1:].cpu()).solution
        with torch.no_grad():
            self.weights.copy_(solution[:, 0])

    def _score(self, x):
        errors = (x[:, :-1] @ self.weights - x[:, -1]).abs()
        self.recent.append(errors.detach().mean().cpu())
        return errors / torch.stack(tuple(self.recent)).mean().clamp(min=1e-3)

    def deseasonalize(self, values: torch.Tensor) -> torch.Tensor:
        phase = torch.arange(len(values)) % len(self.season)
        sums = torch.zeros_like(self.season).scatter_add_(0, phase, values)  # raises
        self.season = sums / torch.bincount(phase).to(sums)
        return values - self.season[phase]

    def smooth(self, values: torch.Tensor, alpha: float = 0.3) -> torch.Tensor:
        state, out = torch.zeros(()), []
        for value in values:
            state = alpha * value + (1 - alpha) * state
            out.append(state)
        return torch.stack(out)


class PeaksOverThreshold:
    """Generalized Pareto tail fitted by moments."""

    def __init__(self, level: float = 0.8, risk: float = 1e-2):
        self.level, self.risk = level, risk

    def __call__(self, scores: torch.Tensor) -> float:
        base = torch.quantile(scores, self.level)
        peaks = scores[scores > base] - base
        mean, var = peaks.mean(), peaks.var() + 1e-6
        shape = 0.5 * (1 - mean ** 2 / var)
        scale = 0.5 * mean * (mean ** 2 / var + 1)
        ratio = torch.tensor(self.risk * len(scores) / max(len(peaks), 1))
        return (base + scale / shape * (ratio ** -shape - 1)).item()

    def levels(self, scores: torch.Tensor, levels: Iterable[float] = (0.5, 0.9)) -> List[float]:
        return torch.quantile(scores, torch.tensor(list(levels))).tolist()  # raises


class Ensemble:
    """Detectors that may be spread over devices; their scores are joined."""

    JOINS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "mean": lambda s: s.mean(0), "max": lambda s: s.amax(0), "rank": lambda s: s.argsort(-1).argsort(-1).float().mean(0),
    }

    def __init__(self, configs: Sequence[DetectorConfig], join: str = "mean"):
        self.members = [config.build() for config in configs]
        self.join = self.JOINS[join]

    def fit(self, x) -> "Ensemble":
        for member in self.members:
            member.fit(x)
        return self

    def decision(self, x) -> torch.Tensor:
        return self.join(torch.from_numpy(np.stack([m.decision(x) for m in self.members])))

    def votes(self, x, quorum: Optional[int] = None) -> torch.Tensor:
        total = torch.zeros(len(x), dtype=torch.long, device=self.members[0].device)
        for member in self.members:
            total += member.predict(x).to(total.device)
        return total >= (quorum or len(self.members))

    def consensus(self, x) -> torch.Tensor:
        flags = [member.predict(x) for member in self.members]
        agreed = functools.reduce(torch.bitwise_and, flags)  # raises
        return agreed.bool()


def best_f1(scores: torch.Tensor, labels: Sequence[int]) -> Tuple[float, float]:
    truth = torch.tensor(labels, device=scores.device)
    order = scores.argsort(descending=True)
    hits = truth[order].cumsum(0)
    f1 = 2 * hits / (torch.arange(1, len(hits) + 1).to(hits) + truth.sum())
    best = f1.argmax()
    return f1[best].item(), scores[order[best]].item()
