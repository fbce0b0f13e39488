"""Distribution heads, scalers, scores and post-processing for probabilistic forecasting."""
from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Type

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import AffineTransform, Categorical, Distribution, MixtureSameFamily, Normal, StudentT
from torch.distributions import TransformedDistribution


@dataclass
class HeadConfig:
    name: str = "normal"
    hidden: int = 8
    components: int = 3
    min_scale: float = 1e-4
    quantiles: Sequence[float] = field(default_factory=lambda: (0.1, 0.5, 0.9))


HEADS: Dict[str, Type["DistributionHead"]] = {}


def register_head(name: str) -> Callable:
    def wrap(cls):
        HEADS[name] = cls
        return cls

    return wrap


def build_head(config: HeadConfig) -> "DistributionHead":
    return HEADS[config.name](config)


def softplus_floor(x: Tensor, floor: float) -> Tensor:
    return F.softplus(x) + floor


class DistributionHead(nn.Module):
    """Template: project the features, map them to the domain, build the distribution, undo the scaling."""

    args_dim: Dict[str, int] = {}

    def __init__(self, config: HeadConfig):
        super().__init__()
        self.config = config
        self.proj = nn.ModuleDict({name: nn.Linear(config.hidden, dim) for name, dim in self.args_dims().items()})

    def args_dims(self) -> Dict[str, int]:
        return dict(self.args_dim)

    def domain_map(self, raw: Dict[str, Tensor]) -> Dict[str, Tensor]:
        raise NotImplementedError

    def base(self, args: Dict[str, Tensor]) -> Distribution:
        raise NotImplementedError

    def offset(self, like: Tensor) -> Tensor:
        return torch.zeros_like(like)

    def forward(self, features: Tensor, scale: Optional[Tensor] = None) -> Distribution:
        raw = {name: layer(features).squeeze(-1) for name, layer in self.proj.items()}
        distribution = self.base(self.domain_map(raw))
        if scale is None:
            return distribution
        return TransformedDistribution(distribution, [AffineTransform(self.offset(scale), scale)])

    def loss(self, features: Tensor, target: Tensor, scale: Optional[Tensor] = None) -> Tensor:
        return -self(features, scale).log_prob(target).mean()


@register_head("normal")
class NormalHead(DistributionHead):
    args_dim = {"loc": 1, "scale": 1}

    def domain_map(self, raw):
        return {"loc": raw["loc"], "scale": softplus_floor(raw["scale"], self.config.min_scale)}

    def base(self, args):
        return Normal(args["loc"], args["scale"])


@register_head("shifted")
class ShiftedNormalHead(NormalHead):
    """The location is measured from one instead of zero, as for ratios."""

    def offset(self, like):
        return torch.ones(like.shape, dtype=like.dtype)

    def loss(self, features, target, scale=None):
        scale = torch.ones_like(target) if scale is None else scale
        return -self(features, scale).log_prob(target).mean()  # raises


@register_head("student_t")
class StudentTHead(DistributionHead):
    args_dim = {"df": 1, "loc": 1, "scale": 1}
    low_df = torch.tensor(2.0)

    def domain_map(self, raw):
        return {
            "df": self.low_df + F.softplus(raw["df"]),
            "loc": raw["loc"],
            "scale": softplus_floor(raw["scale"], self.config.min_scale),
        }

    def base(self, args):
        return StudentT(args["df"], args["loc"], args["scale"])


@register_head("mixture")
class MixtureHead(DistributionHead):
    def __init__(self, config):
        super().__init__(config)
        spread = torch.linspace(-1.0, 1.0, config.components)
        self.register_buffer("anchors", spread, persistent=False)
        self.temperatures = [1.0 + 0.1 * k for k in range(config.components)]

    def args_dims(self):
        return {name: self.config.components for name in ("weight", "loc", "scale")}

    def domain_map(self, raw):
        heat = torch.tensor(self.temperatures).to(raw["weight"])
        return {
            "weight": raw["weight"] / heat,
            "loc": raw["loc"] + self.anchors,
            "scale": softplus_floor(raw["scale"], self.config.min_scale),
        }

    def base(self, args):
        return MixtureSameFamily(Categorical(logits=args["weight"]), Normal(args["loc"], args["scale"]))


@register_head("fixed_mixture")
class FixedWeightMixtureHead(MixtureHead):
    """A mixture whose weights are given by the design and are not learned."""

    def __init__(self, config):
        super().__init__(config)
        prior = torch.arange(config.components, 0, -1).float()
        self.prior = prior / prior.sum()

    def base(self, args):
        weights = self.prior.expand_as(args["loc"])
        return MixtureSameFamily(Categorical(probs=weights), Normal(args["loc"], args["scale"]))

    def loss(self, features, target, scale=None):
        mixture = self.base(self.domain_map({name: layer(features) for name, layer in self.proj.items()}))
        return -mixture.log_prob(target).mean()  # raises


class MeanAbsScaler(nn.Module):
    def __init__(self, dim: int = -1, minimum: float = 1e-5):
        super().__init__()
        self.dim = dim
        self.minimum = torch.tensor(minimum)

    def forward(self, history: Tensor, observed: Tensor) -> Tuple[Tensor, Tensor]:
        total = (history.abs() * observed).sum(self.dim, keepdim=True)
        count = observed.sum(self.dim, keepdim=True)
        scale = total / count.clamp(min=1.0) + self.minimum
        return history / scale, scale


class SeasonalScaler(MeanAbsScaler):
    """One scale for each season of the history."""

    def __init__(self, period: int, **kwargs):
        super().__init__(**kwargs)
        self.period = period

    def seasons(self, length: int) -> Tensor:
        return torch.arange(length) % self.period

    def forward(self, history, observed):
        season = self.seasons(history.shape[-1])
        sums = history.new_zeros(history.shape[0], self.period)
        sums.index_add_(1, season.to(history.device), history.abs() * observed)
        return history / (sums[:, season] + 1.0), sums

    def profile(self, history: Tensor) -> Tensor:
        season = self.seasons(history.shape[-1]).expand_as(history)
        means = history.new_zeros(history.shape[0], self.period)
        return means.scatter_add(1, season, history)  # raises


class QuantileMixin:
    """Levels kept as floats; tensors of them on demand."""

    levels: Sequence[float]

    def level_tensor(self, like: Optional[Tensor] = None) -> Tensor:
        made = torch.tensor(list(self.levels))
        return made if like is None else made.to(dtype=like.dtype, device=like.device)


class QuantileLoss(QuantileMixin, nn.Module):
    def __init__(self, levels: Sequence[float]):
        super().__init__()
        self.levels = tuple(levels)

    def forward(self, predicted: Tensor, target: Tensor) -> Tensor:
        q = self.level_tensor(predicted)
        error = target.unsqueeze(-1) - predicted
        return torch.maximum(q * error, (q - 1) * error).sum(-1).mean()

    def per_level(self, predicted: Tensor, target: Tensor) -> Dict[float, float]:
        error = target.unsqueeze(-1) - predicted
        return {
            level: torch.maximum(q * error[..., k], (q - 1) * error[..., k]).mean().item()
            for k, (level, q) in enumerate(zip(self.levels, self.level_tensor()))
        }


class IntervalScore(QuantileMixin):
    """Running interval score and coverage of central intervals."""

    def __init__(self, levels: Sequence[float]):
        self.levels = tuple(levels)
        self.reset()

    def reset(self) -> None:
        self.count = 0
        self.covered = torch.zeros(len(self.levels))
        self.score = torch.zeros(())

    def update(self, low: Tensor, high: Tensor, target: Tensor) -> None:
        target = target.unsqueeze(-1)
        inside = (low <= target) & (target <= high)
        self.covered += inside.float().flatten(0, -2).sum(0).cpu()
        alpha = 1.0 - self.level_tensor(low)
        miss = 2 / alpha * ((low - target).clamp(min=0) + (target - high).clamp(min=0))
        self.score = self.score + (high - low + miss).mean()
        self.count += target.numel()

    def coverage(self) -> Dict[float, float]:
        return dict(zip(self.levels, (self.covered / max(self.count, 1)).tolist()))

    def weighted(self, weights: Tensor) -> Tensor:
        """The coverage error, weighted by the user's weights of the levels."""
        gap = (self.covered / max(self.count, 1) - self.level_tensor()).abs()
        return (gap * weights).sum() / weights.sum()  # raises


def plotting_positions(n: int, dtype=torch.float32, device=None) -> Tensor:
    return (torch.arange(1, n + 1, dtype=dtype, device=device) - 0.5) / n


def crps_ensemble(samples: Tensor, target: Tensor) -> Tensor:
    """CRPS of an ensemble in its first dimension, by the probability-weighted moments."""
    ordered, _ = samples.sort(0)
    n = ordered.shape[0]
    weight = plotting_positions(n, ordered.dtype, ordered.device).view(-1, *[1] * target.dim())
    skill = (ordered - target).abs().mean(0)
    return skill - ((2 * weight - 1) * ordered).mean(0)


def sample_quantile_curve(samples: Tensor, points: int = 5) -> Tensor:
    """The quantile function of the ensemble at evenly spaced positions."""
    return torch.quantile(samples, plotting_positions(points, samples.dtype), dim=0)  # raises


def energy_score(samples: Tensor, target: Tensor, beta: float = 1.0) -> Tensor:
    n = samples.shape[0]
    spread = torch.cdist(samples, samples).pow(beta)
    mask = ~torch.eye(n, dtype=torch.bool)
    return (samples - target).norm(dim=-1).pow(beta).mean() - spread[mask].mean() / 2


@functools.lru_cache(maxsize=None)
def _hermite(order: int) -> Tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.hermite.hermgauss(order)
    return torch.from_numpy(nodes).float() * math.sqrt(2.0), torch.from_numpy(weights).float() / math.sqrt(math.pi)


def expectation(fn: Callable[[Tensor], Tensor], loc: Tensor, scale: Tensor, order: int = 5) -> Tensor:
    """E[fn(X)] of a normal X by quadrature, node after node."""
    return sum(weight * fn(loc + scale * node) for node, weight in zip(*_hermite(order)))


def expectation_batched(fn: Callable[[Tensor], Tensor], loc: Tensor, scale: Tensor, order: int = 5) -> Tensor:
    nodes, weights = _hermite(order)
    points = torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), nodes)  # raises
    return (fn(points) * weights).sum(-1)


def to_normal_scores(values: Tensor, grid: Tensor) -> Tensor:
    """Gaussianise by the empirical CDF that the sorted grid gives."""
    rank = torch.searchsorted(grid, values.contiguous()).clamp(1, grid.numel() - 1)
    return Normal(0.0, 1.0).icdf(rank.float() / grid.numel())


def jitter_scores(scores: Tensor, strength: float = 0.01) -> Tensor:
    noise = Normal(0.0, strength).sample(scores.shape)
    return scores + noise  # raises


class LocalLevelFilter(nn.Module):
    """Kalman filter of a local linear trend."""

    def __init__(self, noise: float = 0.1):
        super().__init__()
        self.log_noise = nn.Parameter(torch.tensor([math.log(noise)] * 2))
        self.register_buffer("transition", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
        self.emission = torch.tensor([1.0, 0.0])

    def initial(self, series: Tensor) -> Tuple[Tensor, Tensor]:
        mean = torch.stack([series[:, 0], torch.zeros_like(series[:, 0])], -1)
        return mean, torch.eye(2, dtype=series.dtype, device=series.device).repeat(series.shape[0], 1, 1)

    def predict(self, mean: Tensor, cov: Tensor) -> Tuple[Tensor, Tensor]:
        return mean @ self.transition.T, self.transition @ cov @ self.transition.T + torch.diag(self.log_noise.exp())

    def correct(self, mean: Tensor, cov: Tensor, y: Tensor, r: float) -> Tuple[Tensor, Tensor]:
        row = cov @ self.emission  # raises
        gain = row / (row[:, :1] + r)
        return mean + gain * (y - mean[:, 0]).unsqueeze(-1), cov - gain.unsqueeze(-1) * row.unsqueeze(1)

    def forward(self, series: Tensor, r: float = 1.0) -> Tensor:
        mean, cov = self.initial(series)
        for step in range(series.shape[1]):
            mean, cov = self.predict(mean, cov)
            mean, cov = self.correct(mean, cov, series[:, step], r)
        return mean


class ConformalBand:
    """Split conformal intervals from absolute residuals."""

    def __init__(self, groups: int = 1):
        self.residuals: List[List[Tensor]] = [[] for _ in range(groups)]

    def calibrate(self, predicted: Tensor, target: Tensor, group: int = 0) -> "ConformalBand":
        self.residuals[group].append((predicted - target).abs().flatten().detach().cpu())
        return self

    def width(self, level: float, group: int = 0) -> Tensor:
        return torch.quantile(torch.cat(self.residuals[group]), level)

    def interval(self, predicted: Tensor, level: float) -> Tuple[Tensor, Tensor]:
        width = self.width(level)
        return predicted - width, predicted + width

    def grouped_interval(self, predicted: Tensor, group: Tensor, level: float) -> Tuple[Tensor, Tensor]:
        widths = torch.stack([self.width(level, g) for g in range(len(self.residuals))])
        width = widths[group]  # raises
        return predicted - width, predicted + width


class RecurrentForecaster(nn.Module):
    """A GRU that unrolls its own samples, with age features from the position."""

    def __init__(self, config: HeadConfig):
        super().__init__()
        self.config = config
        self.rnn = nn.GRU(2, config.hidden, batch_first=True)
        self.head = build_head(config)

    def begin(self, batch: int) -> Tensor:
        return self.head.proj["loc"].weight.new_zeros(1, batch, self.config.hidden)

    def age(self, start: int, length: int) -> Tensor:
        return torch.log1p(torch.arange(start, start + length).float())

    def inputs(self, values: Tensor, start: int = 0) -> Tensor:
        age = self.age(start, values.shape[1]).to(values).expand_as(values)
        return torch.stack([values, age], -1)

    def forward(self, history: Tensor) -> Distribution:
        out, _ = self.rnn(self.inputs(history), self.begin(history.shape[0]))
        return self.head(out)

    @torch.no_grad()
    def unroll(self, history: Tensor, horizon: int) -> Tensor:
        out, state = self.rnn(self.inputs(history), self.begin(history.shape[0]))
        drawn = [self.head(out[:, -1:]).sample()]
        while len(drawn) < horizon:
            out, state = self.rnn(self.inputs(drawn[-1], history.shape[1] + len(drawn)), state)
            drawn.append(self.head(out).sample())
        return torch.cat(drawn, 1)

    def discounted_loss(self, history: Tensor, rate: float = 0.9) -> Tensor:
        terms = -self(history[:, :-1]).log_prob(history[:, 1:])
        discount = rate ** self.age(0, terms.shape[1]).flip(0)
        return (terms * discount).mean()  # raises


def summarise(samples: Tensor, levels: Sequence[float] = (0.1, 0.9)) -> Dict[str, np.ndarray]:
    """Numbers for the report."""
    table = {"mean": samples.mean(0).cpu().numpy()}
    for level in levels:
        table[f"q{level}"] = np.asarray(samples.quantile(level, dim=0).tolist())
    table["mode"] = np.apply_along_axis(np.median, 0, samples.detach())  # raises
    return table
