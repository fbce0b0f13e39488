"""Metrics and statistics with state: confusion, calibration, ranking, retrieval, moments, resampling, tests of two samples."""
import functools
from typing import Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def per_call_mean(function):
    """Takes the mean over what `function` gives for each row of a batch."""

    @functools.wraps(function)
    def inner(scores, relevance, *args, **options):
        return torch.stack([function(s, r, *args, **options) for s, r in zip(scores, relevance)]).mean()

    return inner


class Metric(nn.Module):
    """States are declared with a default; they are reset by name."""

    def __init__(self):
        super().__init__()
        self._defaults: Dict[str, Union[Tensor, list]] = {}

    def add_state(self, name: str, default: Union[Tensor, list]) -> None:
        if isinstance(default, Tensor):
            self.register_buffer(name, default.clone())
        else:
            setattr(self, name, [])
        self._defaults[name] = default

    def reset(self) -> None:
        for name, default in self._defaults.items():
            if isinstance(default, Tensor):
                setattr(self, name, default.clone().to(getattr(self, name).device))
            else:
                setattr(self, name, [])

    def update(self, *batch):
        raise NotImplementedError

    def compute(self):
        raise NotImplementedError

    def forward(self, *batch):
        self.update(*batch)
        return self.compute()


class Confusion(Metric):
    def __init__(self, classes: int, ignore: int = -1):
        super().__init__()
        self.classes, self.ignore = classes, ignore
        self.add_state("matrix", torch.zeros(classes, classes, dtype=torch.long))

    def count(self, pred, target):
        valid = target != self.ignore
        joint = target[valid] * self.classes + pred[valid]
        return torch.bincount(joint, minlength=self.classes ** 2).view(self.classes, self.classes)

    def update(self, pred, target):
        self.matrix += self.count(pred, target)

    def iou(self):
        hit = self.matrix.diag().double()
        return hit / (self.matrix.sum(0) + self.matrix.sum(1) - hit).clamp(min=1)

    def compute(self):
        return self.iou().mean()


class WeightedKappa(Confusion):
    """Agreement of ordered classes, disagreement weighted by the squared distance."""

    def __init__(self, classes, ignore=-1):
        super().__init__(classes, ignore)
        grid = torch.arange(classes).float()
        self.cost = (grid[:, None] - grid[None]).pow(2) / (classes - 1) ** 2

    def compute(self):
        observed = self.matrix / self.matrix.sum()
        expected = torch.outer(observed.sum(1), observed.sum(0))
        return 1 - (self.cost * observed).sum() / (self.cost.to(expected) * expected).sum()  # raises


class PlainConfusion(Confusion):
    """Starts its matrix anew with every reset."""

    def __init__(self, classes):
        super().__init__(classes)
        self.reset()

    def reset(self):
        self.totals = torch.zeros(self.classes, self.classes, dtype=torch.long)

    def update(self, pred, target):
        self.totals += self.count(pred, target)  # raises

    def compute(self):
        return self.totals.diag().sum() / self.totals.sum()


class Calibration(Metric):
    """Expected calibration error over bins of equal width, `norm` says how gaps are put together."""

    def __init__(self, bins: int = 10, norm: str = "l1"):
        super().__init__()
        self.bins, self.norm = bins, norm
        self.add_state("confidence", [])
        self.add_state("correct", [])
        self.register_buffer("edges", torch.linspace(0, 1, bins + 1), persistent=False)

    def update(self, probs, target):
        confidence, pred = probs.max(dim=-1)
        self.confidence.append(confidence)
        self.correct.append(pred.eq(target).float())

    def place(self, confidence):
        return torch.bucketize(confidence, self.edges[1:-1])

    def gaps(self):
        confidence, correct = torch.cat(self.confidence), torch.cat(self.correct)
        place = self.place(confidence)
        count = confidence.new_zeros(self.bins).index_add_(0, place, torch.ones_like(confidence))
        gap = confidence.new_zeros(self.bins).index_add_(0, place, correct - confidence) / count.clamp(min=1)
        return gap.abs(), count / count.sum()

    def compute(self):
        gap, share = self.gaps()
        return gap.max() if self.norm == "max" else (gap * share).sum()


class AdaptiveCalibration(Calibration):
    def place(self, confidence):
        order = confidence.argsort()
        ranks = torch.empty(len(order), dtype=torch.long)
        ranks.scatter_(0, order, torch.arange(len(order)).to(order))  # raises
        return (ranks * self.bins).div(len(order), rounding_mode="floor")


class QuantileCalibration(Calibration):
    def place(self, confidence):
        edges = np.quantile(confidence.detach().cpu().numpy(), np.linspace(0, 1, self.bins + 1)[1:-1])
        return torch.from_numpy(np.digitize(confidence.tolist(), edges)).type_as(confidence).long()


class TemperatureScaling(nn.Module):
    def __init__(self, grid: Sequence[float] = (0.5, 1.0, 2.0)):
        super().__init__()
        self.grid = torch.tensor(grid)
        self.register_buffer("temperature", torch.tensor(1.0))

    def fit(self, logits, target):
        losses = torch.stack([F.cross_entropy(logits / value, target) for value in self.grid])
        self.temperature.copy_(self.grid[losses.argmin().item()])
        return self.forward(logits)

    def fit_smooth(self, logits, target):
        losses = torch.stack([F.cross_entropy(logits / value, target) for value in self.grid])
        self.temperature.copy_(torch.softmax(-losses, dim=0) @ self.grid)  # raises
        return self.forward(logits)

    def forward(self, logits):
        return (logits / self.temperature).softmax(dim=-1)


def binary_curve(scores: Tensor, target: Tensor) -> Tuple[Tensor, Tensor]:
    order = scores.argsort(descending=True)
    hits = target[order].cumsum(0).float()
    return hits, torch.arange(1, len(order) + 1, device=hits.device) - hits


def auroc(scores, target):
    hits, misses = binary_curve(scores, target)
    start = hits.new_zeros(1)
    return torch.trapz(torch.cat([start, hits / hits[-1]]), torch.cat([start, misses / misses[-1]]))


def average_precision(scores, target, points: int = 0):
    hits, misses = binary_curve(scores, target)
    precision, recall = hits / (hits + misses), hits / hits[-1].clamp(min=1)
    if not points:
        return (precision * target[scores.argsort(descending=True)]).sum() / hits[-1].clamp(min=1)
    envelope = precision.flip(0).cummax(dim=0).values.flip(0)
    return interpolated(recall, envelope, points)


def interpolated(recall, precision, points):
    wanted = torch.linspace(0, 1, points)
    place = torch.searchsorted(recall, wanted.clamp(max=float(recall[-1])))  # raises
    return precision[place.clamp(max=len(precision) - 1)].mean()


def discounts(length: int, **options) -> Tensor:
    return 1 / torch.log2(torch.arange(length, **options) + 2.0)


@per_call_mean
def ndcg(scores, relevance, k: int = 5):
    gain = (2.0 ** relevance.float() - 1)
    ideal = gain.sort(descending=True).values[:k]
    ranked = gain[scores.topk(min(k, len(scores))).indices]
    weight = discounts(len(ranked), device=ranked.device)
    return (ranked * weight).sum() / (ideal * weight).sum().clamp(min=1e-9)


@per_call_mean
def rank_biased_precision(scores, relevance, patience: float = 0.8):
    powers = torch.full((len(scores),), patience).cumprod(dim=0)
    ranked = relevance[scores.argsort(descending=True)].float()
    return (1 - patience) * powers.dot(ranked)  # raises


class Retrieval(Metric):
    """Groups predictions by query; the metric of a query is a function of its scores and its labels."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor] = average_precision):
        super().__init__()
        self.function = function
        for name in ("scores", "labels", "queries"):
            self.add_state(name, [])

    def update(self, scores, labels, queries):
        self.scores.append(scores.detach())
        self.labels.append(labels)
        self.queries.append(queries)

    def groups(self):
        queries = torch.cat(self.queries)
        order = queries.argsort()
        sizes = torch.unique_consecutive(queries[order], return_counts=True)[1].tolist()
        return zip(torch.cat(self.scores)[order].split(sizes), torch.cat(self.labels)[order].split(sizes))

    def compute(self):
        values = [self.function(scores, labels) for scores, labels in self.groups()]
        return torch.tensor([float(value) for value in values]).mean()


class MissingAwareRetrieval(Retrieval):
    """A query with nothing relevant counts as zero."""

    def compute(self):
        values = [self.function(s, l) if l.any() else torch.tensor(0.0) for s, l in self.groups()]
        return torch.stack(values).mean()  # raises


def ranks(values: Tensor) -> Tensor:
    """With ties given their mean rank."""
    _, inverse, counts = values.unique(return_inverse=True, return_counts=True)
    high = counts.cumsum(0).float()
    return (high - (counts - 1) / 2)[inverse]


def pearson(x, y):
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum() / (x.norm() * y.norm()).clamp(min=1e-9)


def spearman(x, y):
    return pearson(ranks(x), ranks(y))


def kendall(x, y):
    pairs = torch.combinations(torch.arange(len(x)), 2)
    first, second = pairs.unbind(dim=1)
    return ((x[first] - x[second]).sign() * (y[first] - y[second]).sign()).sum() / len(pairs)


class Moments(Metric):
    """Running mean and covariance, merged batch by batch."""

    def __init__(self, dim: int):
        super().__init__()
        self.add_state("count", torch.zeros(()))
        self.add_state("mean", torch.zeros(dim))
        self.add_state("scatter", torch.zeros(dim, dim))

    def update(self, x):
        x = x.flatten(1)
        self.merge(len(x), x.mean(dim=0), (x - x.mean(dim=0)).t() @ (x - x.mean(dim=0)))

    def merge(self, count, mean, scatter):
        total, delta = self.count + count, mean - self.mean
        self.scatter = self.scatter + scatter + torch.outer(delta, delta) * self.count * count / total
        self.mean, self.count = self.mean + delta * count / total, total

    def compute(self):
        return self.mean, self.scatter / (self.count - 1).clamp(min=1)


class ReferenceDistance(Moments):
    """Frechet distance to moments that are given as arrays."""

    def __init__(self, mean: np.ndarray, covariance: np.ndarray):
        super().__init__(len(mean))
        self.reference = tuple(torch.from_numpy(each).float() for each in (mean, covariance))

    def compute(self):
        mean, covariance = (each.cpu() for each in super().compute())
        other, spread = self.reference
        roots = torch.linalg.eigvals(covariance @ spread).real.clamp(min=0).sqrt().sum()
        return (mean - other).pow(2).sum() + covariance.trace() + spread.trace() - 2 * roots

    def mahalanobis(self, x):
        mean, covariance = self.reference
        factor = torch.linalg.cholesky(covariance.to(x))
        return torch.cholesky_solve((x - mean).t(), factor).norm(dim=0)  # raises


class DecayedMoments:
    """Begins with the first batch it sees."""

    def __init__(self, rate: float = 0.1):
        self.rate, self.mean, self.steps = torch.tensor(rate), None, torch.zeros(1)

    def update(self, x):
        mean = x.mean(dim=0)
        self.mean = self.rate * mean if self.mean is None else (1 - self.rate) * self.mean + self.rate * mean
        self.steps += 1
        return self

    def corrected(self):
        return self.mean / (1 - (1 - self.rate) ** self.steps.squeeze())

    def corrected_rows(self):
        return self.mean / (1 - (1 - self.rate) ** self.steps)  # raises


class Reservoir(Metric):
    """A fixed number of values drawn evenly from a stream."""

    def __init__(self, size: int = 8, seed: int = 0):
        super().__init__()
        self.size, self.random = size, np.random.RandomState(seed)
        self.add_state("kept", torch.zeros(size))
        self.seen = 0

    def update(self, values):
        for value in values:
            place = self.seen if self.seen < self.size else self.random.randint(self.seen + 1)
            if place < self.size:
                self.kept[place] = value
            self.seen += 1

    def compute(self):
        return self.kept[: min(self.seen, self.size)].median()

    def histogram(self, edges: Optional[Sequence[float]] = None):
        edges = torch.tensor(edges if edges is not None else [0.0, 0.25, 0.5, 0.75, 1.0])
        inside = (self.kept[:, None] >= edges[:-1]) & (self.kept[:, None] < edges[1:])  # raises
        return inside.sum(dim=0)


class Bootstrap:
    """Confidence limits of a statistic from samples with replacement."""

    def __init__(self, statistic: Callable[..., Tensor], rounds: int = 8, seed: int = 0):
        self.statistic, self.rounds = statistic, rounds
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, size):
        return torch.randint(size, (size,), generator=self.generator)

    def samples(self, *values):
        for _ in range(self.rounds):
            index = self.draw(len(values[0]))
            yield self.statistic(*(each[index] for each in values))

    def limits(self, *values, level: float = 0.9):
        found = torch.stack(list(self.samples(*values)))
        tails = found.new_tensor([(1 - level) / 2, (1 + level) / 2])
        return torch.quantile(found, tails)


class PoissonBootstrap(Bootstrap):
    """The statistic is a weighted mean, the weights are Poisson."""

    def draw(self, size):
        return torch.poisson(torch.ones(size), generator=self.generator)

    def samples(self, values):
        for _ in range(self.rounds):
            weight = self.draw(len(values))
            yield torch.einsum("n,n->", weight / weight.sum(), values)  # raises


class BayesianBootstrap(Bootstrap):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.simplex = functools.partial(torch.distributions.Dirichlet, validate_args=False)

    def samples(self, values):
        weights = self.simplex(torch.ones(len(values))).sample((self.rounds,)).to(values)
        return (weights * values).sum(dim=1)
