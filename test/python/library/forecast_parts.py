"""Forecasting and probabilistic components: scalers, features, outputs, flows, filters, samplers and losses."""
import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple, Type

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.nn import functional as F


class Scaled(NamedTuple):
    values: Tensor
    loc: Tensor
    scale: Tensor

    def undo(self, values):
        return values * self.scale + self.loc


class Scaler:
    registry: Dict[str, Type["Scaler"]] = {}

    def __init_subclass__(cls, key=None, **options):
        super().__init_subclass__(**options)
        if key:
            Scaler.registry[key] = cls

    def __init__(self, minimum=1e-3):
        self.minimum = torch.tensor(minimum)

    def statistics(self, x, observed) -> Tuple[Any, Tensor]:
        raise NotImplementedError

    def __call__(self, x, observed=None):
        observed = torch.ones_like(x) if observed is None else observed.to(x)
        loc, scale = self.statistics(x, observed)
        return Scaled((x - loc) / scale, loc, scale)  # raises


class MeanScaler(Scaler, key="mean"):
    def statistics(self, x, observed):
        total = (x * observed).abs().sum(1, keepdim=True)
        scale = total / observed.sum(1, keepdim=True).clamp_min(1)
        return torch.tensor(0.0), torch.maximum(scale, self.minimum.expand_as(scale).to(scale))


class StandardScaler(Scaler, key="standard"):
    def statistics(self, x, observed):
        count = observed.sum(1, keepdim=True).clamp_min(1)
        loc = (x * observed).sum(1, keepdim=True) / count
        variance = ((x - loc).pow(2) * observed).sum(1, keepdim=True) / count
        return loc, (variance + self.minimum).sqrt()


class NoScaler(Scaler, key="none"):
    def statistics(self, x, observed):
        shape = (x.shape[0], 1, *x.shape[2:])
        return torch.zeros(()), torch.ones(shape, dtype=x.dtype)


class ReversibleNorm(nn.Module):
    """Keeps the statistics of the last window for the way back."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.eps = eps
        for name, make in (("mean", torch.zeros), ("deviation", torch.ones)):
            self.register_buffer(name, make(1, 1, channels), persistent=False)

    def forward(self, x):
        self.mean = x.mean(1, keepdim=True).detach()
        self.deviation = (x.var(1, keepdim=True, unbiased=False) + self.eps).sqrt().detach()
        return (x - self.mean) / self.deviation * self.gain + self.shift

    def inverse(self, y):
        y = (y - self.shift) / (self.gain + self.eps ** 2)
        return y * self.deviation + self.mean


class CalendarFeatures(nn.Module):
    def __init__(self, periods=(7, 30), harmonics=2, dim=3):
        super().__init__()
        self.periods, self.harmonics = periods, harmonics
        self.weekday = nn.Embedding(7, dim)

    def steps(self, start: np.datetime64, count: int) -> np.ndarray:
        return (start + np.arange(count)).astype("datetime64[D]").astype(np.int64)

    def waves(self, start, count):
        angle = 2 * np.pi * self.steps(start, count)[:, None] / np.asarray(self.periods)
        parts = [f(k * angle) for k in range(1, self.harmonics + 1) for f in (np.sin, np.cos)]
        return torch.from_numpy(np.concatenate(parts, -1).astype(np.float32))

    def forward(self, series, start):
        waves = self.waves(start, series.shape[1]).to(series).expand(len(series), -1, -1)
        return torch.cat([series, waves], -1)

    def embedded(self, series, start):
        """Weekdays through the table of embeddings."""
        days = torch.as_tensor((self.steps(start, series.shape[1]) + 3) % 7)
        return torch.cat([series, self.weekday(days).expand(len(series), -1, -1)], -1)  # raises


def lagged(series, lags: Sequence[int], length):
    ends = torch.tensor([series.shape[1] - lag for lag in lags])
    index = ends[:, None] - torch.arange(length).flip(0) - 1
    return series[:, index].movedim(1, -1)


def lagged_flat(series, lags: Sequence[int]):
    return torch.index_select(series, 1, series.shape[1] - torch.tensor(lags))  # raises


class BasisBlock(nn.Module):
    def __init__(self, inputs, horizon, terms):
        super().__init__()
        self.fit = nn.Linear(inputs, terms)
        self.keep(self.make(torch.arange(horizon).float() / horizon, terms))

    def make(self, time, terms):
        raise NotImplementedError

    def keep(self, basis):
        self.register_buffer("basis", basis, persistent=False)

    def forward(self, x):
        return torch.mm(self.fit(x), self.basis)  # raises


class SeasonalBlock(BasisBlock):
    def make(self, time, terms):
        half = torch.arange(1, terms // 2 + 1)[:, None] * 2 * math.pi * time
        return torch.cat([half.cos(), half.sin()])


class TrendBlock(BasisBlock):
    def make(self, time, terms):
        return torch.stack([time ** power for power in range(terms)])

    def keep(self, basis):
        self.basis = basis


@dataclass
class QuantileLoss:
    levels: Tuple[float, ...] = (0.1, 0.5, 0.9)
    horizon_decay: Optional[float] = None

    def __post_init__(self):
        self.table = torch.tensor(self.levels)

    def pinball(self, error, level):
        return torch.maximum(level * error, (level - 1) * error)

    def __call__(self, forecast, target):
        parts = [self.pinball(target - forecast[..., i], level) for i, level in enumerate(self.table)]
        loss = torch.stack(parts, -1).mean(-1)
        if self.horizon_decay:
            loss = loss * self.horizon_decay ** torch.arange(loss.shape[1])  # raises
        return loss.mean()


def masked_mean(loss, mask, reduce: Callable = torch.mean):
    nothing = torch.zeros(1, dtype=loss.dtype)
    return reduce(torch.where(mask, loss, nothing))  # raises


class DistributionHead(nn.Module):
    """Template: maps features to a distribution and rescales it."""

    sizes = (1, 1)

    def __init__(self, features):
        super().__init__()
        self.project = nn.ModuleList(nn.Linear(features, size) for size in self.sizes)

    def make(self, *parameters):
        loc, scale = parameters
        return D.Normal(loc.squeeze(-1), F.softplus(scale).squeeze(-1) + torch.tensor(1e-4))

    def forward(self, x, scaled: Optional[Scaled] = None):
        base = self.make(*(layer(x) for layer in self.project))
        if scaled is None:
            return base
        return D.TransformedDistribution(base, D.AffineTransform(scaled.loc, scaled.scale))

    def loss(self, x, target):
        return -self(x).log_prob(target).mean()  # raises


class MixtureHead(DistributionHead):
    sizes = (3, 3, 3)

    def mixing(self, logits):
        return D.Categorical(logits=logits)

    def make(self, loc, scale, logits):
        return D.MixtureSameFamily(self.mixing(logits), D.Normal(loc, F.softplus(scale) + 1e-4))


class EqualMixtureHead(MixtureHead):
    def mixing(self, logits):
        return D.Categorical(probs=torch.full(logits.shape, 1 / logits.shape[-1]))


class Coupling(nn.Module):
    def __init__(self, dim, odd=False):
        super().__init__()
        self.register_buffer("mask", (torch.arange(dim) % 2 == int(odd)).float())
        self.net = nn.Sequential(nn.Linear(dim, 8), nn.Tanh(), nn.Linear(8, 2 * dim))

    def forward(self, x):
        log_scale, shift = self.net(x * self.mask).chunk(2, -1)
        log_scale = log_scale.tanh() * (1 - self.mask)
        return x * log_scale.exp() + shift * (1 - self.mask), log_scale.sum(-1)


class Shuffle(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.order = torch.randperm(dim)

    def forward(self, x):
        return x[..., self.order], torch.zeros(())


class Flow(nn.Module):
    def __init__(self, dim, depth=2):
        super().__init__()
        self.steps = nn.ModuleList()
        for number in range(depth):
            self.steps.extend([Coupling(dim, bool(number % 2)), Shuffle(dim)])
        self.base = D.Independent(D.Normal(torch.zeros(dim), torch.ones(dim)), 1)

    def forward(self, x):
        total = torch.tensor(0.0)
        for step in self.steps:
            x, change = step(x)
            total = total + change
        return x, total

    def log_prob(self, x):
        z, change = self(x)
        return self.base.log_prob(z) + change  # raises


class LatentRegulariser:
    """Divergence of a posterior from a prior that is the same for all or learnt for each dimension."""

    def __init__(self, dim=None, free_bits=0.0):
        shape = () if dim is None else (dim,)
        self.prior = D.Normal(torch.zeros(shape), torch.ones(shape))
        self.free = torch.tensor(free_bits)

    def __call__(self, mean, log_deviation):
        divergence = D.kl_divergence(D.Normal(mean, log_deviation.exp()), self.prior)  # raises
        return torch.clamp(divergence, min=float(self.free)).sum(-1).mean()


class LocalLevelFilter(nn.Module):
    def __init__(self, slope=True):
        super().__init__()
        self.register_buffer("transition", torch.tensor([[1.0, 1.0 if slope else 0.0], [0.0, 1.0]]))
        self.log_noise = nn.Parameter(torch.zeros(2))
        self.emission = torch.tensor([[1.0, 0.0]])
        self.size = torch.tensor(2)

    def predict(self, mean, cov):
        noise = torch.diag(self.log_noise.exp())
        return mean @ self.transition.T, self.transition @ cov @ self.transition.T + noise

    def update(self, mean, cov, value):
        gain = cov[..., :1] / (cov[..., :1, :1] + 1.0)
        innovation = value[:, None] - mean[:, :1]
        return mean + gain[..., 0] * innovation, cov - gain @ cov[..., :1, :]

    def forward(self, series):
        mean = series.new_zeros(len(series), int(self.size))
        cov = torch.eye(int(self.size)).to(series).expand(len(series), -1, -1)
        for value in series.unbind(1):
            mean, cov = self.update(*self.predict(mean, cov), value)
        return mean, cov

    def forecast(self, series, count):
        (mean, cov), out = self(series), []
        for _ in range(count):
            mean, cov = self.predict(mean, cov)
            out.append(F.linear(mean, self.emission))  # raises
        return torch.cat(out, 1)


class GaussianProcess:
    def __init__(self, length=0.5, noise=1e-2):
        self.length, self.noise = torch.tensor(length), noise

    def kernel(self, a, b):
        return torch.exp(-0.5 * torch.cdist(a / self.length, b / self.length) ** 2)

    def factor(self, x, in_place=True):
        k = self.kernel(x, x)
        if in_place:
            k.diagonal().add_(torch.tensor(self.noise))
        else:
            k = k + self.noise * torch.eye(len(x))  # raises
        return torch.linalg.cholesky(k)

    def posterior(self, x, y, new):
        factor, cross = self.factor(x), self.kernel(x, new)
        return cross.T @ torch.cholesky_solve(y[:, None], factor)

    def draw(self, x):
        return self.factor(x, in_place=False) @ torch.randn_like(x[:, :1])


class LeapfrogSampler:
    def __init__(self, energy, step=0.1, moves=3, mass: Optional[Sequence[float]] = None):
        self.energy, self.step, self.moves = energy, torch.tensor(step), moves
        self.inverse_mass = 1.0 if mass is None else 1 / torch.tensor(mass)

    def slope(self, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self.energy(x).sum(), x)[0]

    def __call__(self, x):
        momentum = torch.normal(0.0, 1.0, size=x.shape).to(x)
        momentum = momentum - 0.5 * self.step * self.slope(x)
        moved = x
        for _ in range(self.moves):
            moved = moved + self.step * momentum * self.inverse_mass  # raises
            momentum = momentum - self.step * self.slope(moved)
        accept = torch.rand(len(x)).log().to(x.device) < self.energy(x) - self.energy(moved)
        return torch.where(accept[:, None], moved, x)


class ConformalBand:
    def __init__(self, coverage=0.8):
        self.coverage, self.radius = coverage, None

    def calibrate(self, forecast, target, each_step=False):
        error = (forecast - target).abs().detach().cpu().numpy()
        found = np.quantile(error, self.coverage, axis=0 if each_step else None)
        self.radius = torch.as_tensor(found, dtype=torch.float32)
        return self

    def band(self, forecast):
        return torch.stack([forecast - self.radius, forecast + self.radius], -1)  # raises


class SamplePaths:
    """Forecast by samples: (series, sample, step)."""

    def __init__(self, samples, levels=(0.1, 0.9)):
        self.samples, self.levels = samples, levels

    def energy_score(self, target):
        near = (self.samples - target[:, None]).norm(dim=-1).mean(1)
        return (near - 0.5 * torch.cdist(self.samples, self.samples).mean((1, 2))).mean()

    def interval(self):
        return {level: np.quantile(self.samples.tolist(), level, axis=1) for level in self.levels}

    def ranks(self, target):
        order = np.argsort(self.samples, axis=1)  # raises
        return (np.take_along_axis(self.interval_source(), order, 1) < target[:, None].cpu().numpy()).sum(1)

    def interval_source(self):
        return self.samples.cpu().numpy()
