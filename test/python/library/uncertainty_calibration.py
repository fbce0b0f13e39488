"""Uncertainty and calibration: scalers, metrics, conformal sets, ensembles, SWAG, Laplace, detectors."""
import copy
import math
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Loader = Iterable[Tuple[torch.Tensor, torch.Tensor]]


@dataclass
class CalibrationConfig:
    classes: int = 4
    bins: int = 5
    steps: int = 10
    lr: float = 0.05
    alpha: float = 0.1


@dataclass
class Predictions:
    """What a pass over a loader gives."""
    logits: torch.Tensor
    labels: torch.Tensor

    @property
    def probs(self):
        return self.logits.softmax(-1)

    @property
    def confidence(self):
        return self.probs.max(-1)

    def host(self) -> "Predictions":
        return Predictions(self.logits.cpu(), self.labels.cpu())

    def split(self, fraction: float, seed: int = 0) -> Tuple["Predictions", "Predictions"]:
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed))
        cut = int(fraction * len(order))
        return tuple(Predictions(self.logits[part], self.labels[part]) for part in (order[:cut], order[cut:]))


def device_of(module: nn.Module) -> torch.device:
    return next(module.parameters()).device


@torch.no_grad()
def collect(model: nn.Module, loader: Loader) -> Predictions:
    device = device_of(model)
    logits, labels = [], []
    for inputs, targets in loader:
        logits.append(model(inputs.to(device)))
        labels.append(targets)
    return Predictions(torch.cat(logits), torch.cat(labels).to(device))


@contextmanager
def dropout_active(model: nn.Module) -> Iterator[nn.Module]:
    before = {module: module.training for module in model.modules()}
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    try:
        yield model
    finally:
        for module, mode in before.items():
            module.training = mode


class Calibrator(nn.Module):
    """Template: `transform` maps logits to logits and is fitted by gradient."""

    def __init__(self, config: CalibrationConfig):
        super().__init__()
        self.config = config

    def transform(self, logits):
        raise NotImplementedError

    def penalty(self):
        return torch.zeros(())

    def prepare(self, predictions: Predictions):
        pass

    def fit(self, predictions: Predictions) -> "Calibrator":
        self.to(predictions.logits.device)
        self.prepare(predictions)
        optimizer = torch.optim.LBFGS(self.parameters(), lr=self.config.lr, max_iter=self.config.steps)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(self.transform(predictions.logits), predictions.labels) + self.penalty()
            loss.backward()
            return loss

        optimizer.step(closure)
        return self

    @torch.no_grad()
    def forward(self, logits):
        return self.transform(logits)


class TemperatureScaler(Calibrator):
    def __init__(self, config):
        super().__init__(config)
        self.log_temperature = nn.Parameter(torch.zeros(()))

    def transform(self, logits):
        return logits / self.log_temperature.exp()


class VectorScaler(Calibrator):
    def __init__(self, config, strength: float = 0.01):
        super().__init__(config)
        self.weight = nn.Parameter(torch.ones(config.classes))
        self.bias = nn.Parameter(torch.zeros(config.classes))
        self.strength = torch.tensor(strength)

    def transform(self, logits):
        return logits * self.weight + self.bias

    def penalty(self):
        return self.strength * (self.weight - 1).pow(2).sum()


class DirichletScaler(Calibrator):
    """Linear map of log-probabilities with a penalty off the diagonal."""

    def __init__(self, config, strength: float = 0.1):
        super().__init__(config)
        self.linear = nn.Linear(config.classes, config.classes)
        self.strength = strength
        self.off_diagonal = 1.0 - torch.eye(config.classes)

    def transform(self, logits):
        return self.linear(logits.log_softmax(-1))

    def penalty(self):
        return self.strength * (self.linear.weight * self.off_diagonal).pow(2).mean()  # raises


class PriorCorrection(Calibrator):
    """Moves the class prior of the training set to that of the calibration set."""

    def __init__(self, config, train_counts: List[int]):
        super().__init__(config)
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("train_prior", torch.tensor(train_counts, dtype=torch.float32) / sum(train_counts))
        self.target_prior: Optional[torch.Tensor] = None

    def prepare(self, predictions):
        counts = np.bincount(predictions.labels.cpu().numpy(), minlength=self.config.classes) + 1.0
        self.target_prior = torch.as_tensor(counts / counts.sum(), dtype=torch.float32)

    def transform(self, logits):
        shift = self.target_prior.log() - self.train_prior.log()  # raises
        return logits + self.scale * shift


class HistogramBinner:
    """Frequencies per bin of the confidence; tables are on the host as lookups are rare."""

    def __init__(self, config: CalibrationConfig):
        self.edges = torch.linspace(0, 1, config.bins + 1)[1:-1]
        self.table = torch.full((config.bins,), 0.5)

    def fit(self, predictions: Predictions):
        confidence, predicted = predictions.host().confidence
        right = (predicted == predictions.labels.cpu()).float()
        slot = torch.bucketize(confidence, self.edges)
        counts = torch.bincount(slot, minlength=len(self.table))
        sums = torch.bincount(slot, weights=right, minlength=len(self.table))
        self.table = torch.where(counts > 0, sums / counts.clamp_min(1), self.table)
        return self

    def __call__(self, logits):
        confidence = logits.softmax(-1).amax(-1)
        slot = torch.bucketize(confidence, self.edges.to(confidence.device))
        return self.table.to(slot.device)[slot]

    def gap(self, logits):
        confidence = logits.softmax(-1).amax(-1)
        slot = torch.bucketize(confidence, self.edges.to(confidence.device))
        return confidence - self.table.take(slot)  # raises


class CalibrationError:
    """Streaming expected calibration error."""

    def __init__(self, config: CalibrationConfig):
        self.bins = config.bins
        self.reset()

    def reset(self):
        self.count = torch.zeros(self.bins)
        self.right = torch.zeros(self.bins)
        self.total = torch.zeros(self.bins)

    def _slots(self, confidence):
        return (confidence * self.bins).long().clamp(max=self.bins - 1)

    def update(self, predictions: Predictions):
        confidence, predicted = predictions.confidence
        right = (predicted == predictions.labels).float()
        slots = self._slots(confidence)
        for name, values in (("count", torch.ones_like(right)), ("right", right), ("total", confidence)):
            added = torch.zeros(self.bins, device=slots.device).index_add_(0, slots, values)
            setattr(self, name, getattr(self, name) + added.cpu())

    def compute(self) -> float:
        gaps = (self.right - self.total).abs() / self.count.sum().clamp_min(1)
        return gaps.sum().item()

    def merge(self, predictions: Predictions):
        slots = self._slots(predictions.confidence[0])
        self.count.index_add_(0, slots, torch.ones(len(slots), device=slots.device))  # raises
        return self.count


class ConformalPredictor(ABC):
    def __init__(self, config: CalibrationConfig):
        self.config = config
        self.threshold: Optional[torch.Tensor] = None

    @abstractmethod
    def scores(self, probs) -> torch.Tensor:
        """Score of each class, high for the unlikely."""

    def calibrate(self, predictions: Predictions):
        chosen = self.scores(predictions.probs).gather(1, predictions.labels[:, None]).squeeze(1)
        level = min(1.0, math.ceil((len(chosen) + 1) * (1 - self.config.alpha)) / len(chosen))
        self.threshold = torch.quantile(chosen, level).cpu()
        return self

    def sets(self, logits):
        return self.scores(logits.softmax(-1)) <= self.threshold


class LeastAmbiguous(ConformalPredictor):
    def scores(self, probs):
        return 1 - probs


class AdaptiveSets(ConformalPredictor):
    def __init__(self, config, randomized: bool = False, penalty: float = 0.0):
        super().__init__(config)
        self.randomized, self.penalty = randomized, penalty
        self.ramp = torch.arange(config.classes, dtype=torch.float32)

    def scores(self, probs):
        ordered, order = probs.sort(-1, descending=True)
        mass = ordered.cumsum(-1)
        if self.randomized:
            mass = mass - ordered * torch.rand(len(ordered), 1, device=ordered.device)
        if self.penalty:
            mass = mass + self.penalty * self.ramp  # raises
        return torch.zeros_like(mass).scatter_(1, order, mass)


class ClassConditional(LeastAmbiguous):
    """One threshold per class."""

    def calibrate(self, predictions):
        scores = self.scores(predictions.probs)
        self.threshold = torch.tensor([
            torch.quantile(part, 1 - self.config.alpha).item() if len(part) else 1.0
            for part in (scores[predictions.labels == c, c] for c in range(self.config.classes))])
        return self

    def sets(self, logits):
        return torch.le(self.scores(logits.softmax(-1)), self.threshold)  # raises


class MonteCarloDropout:
    def __init__(self, model: nn.Module, passes: int = 4):
        self.model, self.passes = model, passes

    @torch.no_grad()
    def sample(self, inputs):
        with dropout_active(self.model) as model:
            return torch.stack([model(inputs.to(device_of(model))).softmax(-1) for _ in range(self.passes)])

    def uncertainty(self, inputs) -> Dict[str, np.ndarray]:
        probs = self.sample(inputs)
        mean = probs.mean(0)
        total = -(mean * mean.log()).sum(-1)
        aleatoric = -(probs * probs.log()).sum(-1).mean(0)
        return {key: value.cpu().numpy() for key, value in
                {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}.items()}


class SpreadEnsemble:
    def __init__(self, members: List[nn.Module], devices: List[str]):
        self.members = [member.to(devices[i % len(devices)]).eval() for i, member in enumerate(members)]
        self.home = torch.device(devices[0])
        self.weights = torch.full((len(members),), 1.0 / len(members), device=self.home)

    @torch.no_grad()
    def _each(self, inputs):
        for member in self.members:
            yield member(inputs.to(device_of(member), non_blocking=True)).softmax(-1)

    def probs(self, inputs):
        stacked = torch.stack([part.to(self.home) for part in self._each(inputs)])
        return torch.einsum("m,mbc->bc", self.weights, stacked)

    def divergence(self, inputs):
        mean, total = self.probs(inputs), 0.0
        for part in self._each(inputs):
            total = total + (part * (part.log() - mean.log())).sum(-1)  # raises
        return total / len(self.members)


class SwagPosterior:
    def __init__(self, model: nn.Module, rank: int = 3):
        self.model, self.rank, self.count = model, rank, 0
        size = sum(p.numel() for p in model.parameters())
        self.mean, self.square = torch.zeros(size), torch.zeros(size)
        self.columns: List[torch.Tensor] = []

    def collect(self):
        flat = nn.utils.parameters_to_vector(self.model.parameters()).detach()
        self.count += 1
        self.mean += (flat.cpu() - self.mean) / self.count
        self.square += (flat.cpu().pow(2) - self.square) / self.count
        self.columns = (self.columns + [flat.cpu() - self.mean])[-self.rank:]

    def draw(self, scale: float = 0.5, generator: Optional[torch.Generator] = None) -> nn.Module:
        var = (self.square - self.mean.pow(2)).clamp_min(1e-8)
        noise = torch.randn(len(self.mean), generator=generator)
        low = torch.stack(self.columns, 1) @ torch.randn(len(self.columns), generator=generator)
        flat = self.mean + scale * (var.sqrt() * noise + low / math.sqrt(2 * max(1, self.rank - 1)))
        drawn = copy.deepcopy(self.model)
        nn.utils.vector_to_parameters(flat.to(device_of(drawn)), drawn.parameters())
        return drawn

    def distance(self) -> float:
        flat = nn.utils.parameters_to_vector(self.model.parameters()).detach()
        return float(torch.dist(flat, self.mean))  # raises


class LastLayerLaplace:
    def __init__(self, body: nn.Module, head: nn.Linear, prior: float = 1.0):
        self.body, self.head = body, head
        self.precision = prior * torch.eye(head.in_features, dtype=torch.float64)

    @torch.no_grad()
    def fit(self, loader: Loader):
        for inputs, _ in loader:
            phi = self.body(inputs.to(self.head.weight.device)).double().cpu()
            self.precision.addmm_(phi.t(), phi)
        self.factor = torch.linalg.cholesky(self.precision)
        return self

    @torch.no_grad()
    def variance(self, inputs):
        phi = self.body(inputs).double()
        half = torch.linalg.solve_triangular(self.factor.to(phi.device), phi.t(), upper=False)
        return half.pow(2).sum(0).to(self.head.weight.dtype)

    @torch.no_grad()
    def thompson(self, inputs):
        phi = self.body(inputs)
        shift = torch.cholesky_solve(torch.randn(len(self.factor), 1).double(), self.factor)
        return self.head(phi) + phi @ shift.float()  # raises


class MahalanobisDetector:
    def __init__(self, classes: int):
        self.classes = classes

    def fit(self, features, labels):
        onehot = F.one_hot(labels, self.classes).to(features.dtype)
        self.means = (onehot.t() @ features) / onehot.sum(0)[:, None].clamp_min(1)
        centred = features - self.means[labels]
        cov = np.cov(centred.detach().cpu().numpy().T) + 1e-3 * np.eye(features.shape[1])
        self.inverse = torch.from_numpy(np.linalg.inv(cov)).to(features)
        return self

    def score(self, features):
        diff = features[:, None, :] - self.means[None]
        return torch.einsum("bcd,de,bce->bc", diff, self.inverse, diff).amin(1)

    def flags(self, features, percentile: float = 90.0):
        scores = self.score(features)
        limit = np.percentile(scores.detach(), percentile)  # raises
        return scores > limit
