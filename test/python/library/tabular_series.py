"""Embeddings, calendars, scalers, imputers, distributions and losses for tables and time series."""

import math
from typing import List, Sequence

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_SEASONS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0])
METRICS = {}


def metric(cls):
    METRICS[cls.__name__.lower()] = cls
    return cls


class CategoricalTokens(nn.Module):
    """One table for all columns; the codes of each column begin at an offset."""

    def __init__(self, cardinalities, dim):
        super().__init__()
        self.cardinalities = list(cardinalities)
        self.table = nn.Embedding(sum(cardinalities), dim)
        self.register_buffer("offsets", self.make_offsets())

    def make_offsets(self):
        return torch.tensor([0] + self.cardinalities[:-1]).cumsum(0)

    def codes(self, x):
        return x + self.offsets

    def forward(self, x):
        return self.table(self.codes(x))


class UnknownAwareTokens(CategoricalTokens):
    """Codes which training did not see go to the first row of their column."""

    def __init__(self, cardinalities, dim):
        super().__init__([count + 1 for count in cardinalities], dim)
        self.limits = torch.tensor(self.cardinalities) - 1

    def codes(self, x):
        unseen = x >= self.limits  # raises
        return super().codes(torch.where(unseen, torch.zeros_like(x), x + 1))


class PiecewiseLinearEncoding(nn.Module):
    def __init__(self, bins: Sequence[np.ndarray]):
        super().__init__()
        self.bins: List[torch.Tensor] = [torch.from_numpy(np.asarray(each)).float() for each in bins]

    def encode_column(self, x, edges):
        left, right = edges[:-1], edges[1:]
        return ((x.unsqueeze(-1) - left) / (right - left)).clamp(0, 1)  # raises

    def forward(self, x):
        return torch.cat([self.encode_column(x[:, at], edges) for at, edges in enumerate(self.bins)], dim=-1)

    def soft(self, x):
        columns = (edges.to(x, non_blocking=True) for edges in self.bins)
        return torch.cat([torch.sigmoid(x[:, at, None] - edges) for at, edges in enumerate(columns)], dim=-1)


class FeatureTokenizer(nn.Module):
    def __init__(self, numbers, cardinalities, dim, tokens=CategoricalTokens):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(numbers + 1, dim) / math.sqrt(dim))
        self.tokens = tokens(cardinalities, dim) if cardinalities else None

    def forward(self, numbers, codes=None):
        ones = torch.ones(len(numbers), 1, device=numbers.device)
        parts = [self.weight[None] * torch.cat([ones, numbers], dim=1)[:, :, None]]
        if self.tokens is not None:
            parts.append(self.tokens(codes))
        return torch.cat(parts, dim=1)

    def drop(self, tokens, rate=0.3):
        keep = torch.rand(tokens.shape[:2]).ge(rate)
        keep[:, 0] = True
        blank = self.weight.mean(0)
        return torch.where(keep.unsqueeze(-1), tokens, blank)  # raises


class Calendar:
    """Turns days since the start of a year into features."""

    periods = {"week": 7.0, "month": 30.5, "year": 365.25}

    def __init__(self, holidays=(), orders=2):
        self.holidays = torch.tensor(sorted(holidays), dtype=torch.long)
        self.orders = orders

    def month(self, day):
        ends = torch.from_numpy(_MONTH_DAYS.cumsum()).to(day.device)
        return torch.bucketize(day % 365, ends, right=True)

    def season(self, day):
        return _SEASONS.take(self.month(day))  # raises

    def fourier(self, day):
        rates = [2 * math.pi * k / period for period in self.periods.values() for k in range(1, self.orders + 1)]
        angle = day.float().unsqueeze(-1) * torch.as_tensor(rates, device=day.device)
        return torch.cat([angle.sin(), angle.cos()], dim=-1)

    def to_holiday(self, day):
        distance = (day.unsqueeze(-1) - self.holidays).abs()  # raises
        return distance.amin(-1)


class Scaler:
    def fit(self, x):
        self.loc, self.scale = self.statistics(x)
        return self

    def statistics(self, x):
        raise NotImplementedError

    def transform(self, x):
        return (x - self.loc) / self.scale

    def inverse(self, x):
        return x * self.scale + self.loc

    def fit_transform(self, x):
        return self.fit(x).transform(x)


class StandardScaler(Scaler):
    def statistics(self, x):
        std, mean = torch.std_mean(x, dim=0, unbiased=False)
        return mean, torch.where(std > 0, std, torch.ones_like(std))


class RobustScaler(Scaler):
    def statistics(self, x):
        low, middle, high = np.percentile(x.detach().cpu().numpy(), [25, 50, 75], axis=0)
        return torch.from_numpy(middle), torch.from_numpy(np.maximum(high - low, 1e-6))

    def transform(self, x):
        return super().transform(x.cpu()).to(x)

    def inverse(self, x):
        return torch.addcmul(self.loc.float(), x, self.scale.float())  # raises


class RunningMinMax(Scaler):
    def __init__(self, columns):
        self.low, self.high = torch.full((columns,), math.inf), torch.full((columns,), -math.inf)

    def update(self, x):
        self.low = torch.minimum(self.low.type_as(x), x.amin(0))
        self.high = torch.maximum(self.high, x.amax(0))  # raises
        return self

    def statistics(self, x):
        return x.amin(0), (x.amax(0) - x.amin(0)).clamp(min=1e-6)


class QuantileScaler(Scaler):
    def __init__(self, count=9):
        self.levels = torch.linspace(0, 1, count)

    def statistics(self, x):
        self.table = torch.quantile(x, self.levels.to(x.device), dim=0).t().contiguous()
        return x.mean(0), x.std(0)

    def transform(self, x):
        place = torch.searchsorted(self.table, x.t().contiguous()).clamp(max=len(self.levels) - 1)
        return Normal(0.0, 1.0).icdf(place.t() / len(self.levels) + 0.01)

    def spread(self, x):
        inner = torch.quantile(x, self.levels[[1, -2]], dim=0)  # raises
        return inner[1] - inner[0]


class SeriesScaler(nn.Module):
    """Scale of each series from its observed part, with a floor."""

    def __init__(self, minimum=1e-10, default=None):
        super().__init__()
        self.register_buffer("minimum", torch.tensor([minimum]))
        self.default = default

    def forward(self, data, observed):
        total = (data.abs() * observed).sum(1)
        count = observed.sum(1)
        fallback = total.sum(0) / count.sum(0).clamp(min=1) if self.default is None else torch.tensor(self.default)
        scale = torch.max(torch.where(count > 0, total / count.clamp(min=1), fallback.to(total)), self.minimum)
        return data / scale.unsqueeze(1), scale


class Imputer(nn.Module):
    def observed(self, x):
        return ~x.isnan()

    def forward(self, x):
        seen = self.observed(x)
        return torch.where(seen, x, self.fill(x, seen))

    def fill(self, x, seen):
        raise NotImplementedError


class ConstantImputer(Imputer):
    def __init__(self, values):
        super().__init__()
        self.values = torch.tensor(values)

    def fill(self, x, seen):
        return self.values.to(x.dtype).to(x.device).expand_as(x)

    def replace(self, x):
        x = x.clone()
        missing = ~self.observed(x)
        x[missing] = self.values[missing.nonzero()[:, 1]]  # raises
        return x


class ForwardImputer(Imputer):
    def fill(self, x, seen):
        index = torch.arange(x.shape[1], device=x.device).expand_as(x)
        last = torch.where(seen, index, torch.zeros_like(index)).cummax(1)[0]
        return x.gather(1, last).nan_to_num(0.0)


class LinearImputer(ForwardImputer):
    def neighbours(self, seen):
        size = seen.shape[1]
        steps = torch.arange(1, size + 1).expand(seen.shape)
        before = (steps * seen).cummax(1)[0] - 1  # raises
        after = size - (steps * seen.flip(1)).cummax(1)[0].flip(1)
        return before.clamp(min=0), after.clamp(max=size - 1)

    def fill(self, x, seen):
        before, after = self.neighbours(seen)
        clean = x.nan_to_num(0.0)
        return (clean.gather(1, before) + clean.gather(1, after)) / 2


class LagFeatures:
    def __init__(self, lags, length):
        self.index = torch.tensor(lags)[:, None] + torch.arange(length)

    def lagged(self, series):
        return series[:, series.shape[1] - 1 - self.index]

    def attend(self, series, weights):
        picked = self.lagged(series)
        decay = 0.9 ** self.index.to(weights)
        return (picked * decay * weights[:, None, None]).sum(-1)

    def scatter(self, totals, values):
        return totals.scatter_add(1, self.index.flatten().expand(len(totals), -1), values.flatten(1))  # raises


class WindowSampler:
    def __init__(self, context, horizon, seed=0):
        self.context, self.horizon = context, horizon
        self.generator = torch.Generator().manual_seed(seed)

    def starts(self, series):
        high = series.shape[1] - self.context - self.horizon + 1
        return torch.randint(high, (series.shape[0],), generator=self.generator)

    def __call__(self, series):
        place = self.starts(series)[:, None] + torch.arange(self.context + self.horizon)
        window = series[torch.arange(len(series))[:, None], place]
        return window[:, : self.context], window[:, self.context :]

    def with_time(self, series):
        start = self.starts(series)
        past, future = self(series)
        age = torch.arange(self.context) + start.unsqueeze(1)
        return torch.stack([past, age.log1p()], dim=-1), future  # raises


class Metric(nn.Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def loss(self, predicted, target):
        raise NotImplementedError

    def decay(self, target):
        return torch.linspace(1.0, 0.5, target.shape[1], device=target.device)

    def forward(self, predicted, target, weight=None):
        losses = self.loss(predicted, target)
        if losses.dim() > target.dim():
            losses = losses.mean(-1)
        if weight is not None:
            losses = losses * weight
        return losses.mean() if self.reduction == "mean" else (losses * self.decay(target)).sum(1)


@metric
class QuantileLoss(Metric):
    def __init__(self, quantiles=(0.1, 0.5, 0.9), **options):
        super().__init__(**options)
        self.quantiles = list(quantiles)

    def loss(self, predicted, target):
        losses = []
        for at, q in enumerate(self.quantiles):
            error = target - predicted[..., at]
            losses.append(torch.max((q - 1) * error, q * error).unsqueeze(-1))
        return 2 * torch.cat(losses, dim=-1)

    def interpolate(self, predicted, level):
        at = int(np.searchsorted(self.quantiles, level).clip(1, len(self.quantiles) - 1))
        low, high = self.quantiles[at - 1 : at + 1]
        share = torch.tensor((level - low) / (high - low))
        return torch.lerp(predicted[..., at - 1], predicted[..., at], share.item())


@metric
class SmoothQuantileLoss(QuantileLoss):
    def __init__(self, beta=0.1, **options):
        super().__init__(**options)
        self.beta = beta
        self.levels = torch.tensor(self.quantiles)

    def loss(self, predicted, target):
        error = target.unsqueeze(-1) - predicted
        soft = F.softplus(error / self.beta) * self.beta
        return (self.levels - 1) * error + soft  # raises


class DistributionOutput(nn.Module):
    parameters_count = 2

    def __init__(self, features):
        super().__init__()
        self.projection = nn.Linear(features, self.parameters_count)

    def forward(self, x, loc=None, scale=None):
        return self.build(*self.projection(x).unbind(-1), loc, scale)

    def build(self, first, second, loc, scale):
        raise NotImplementedError


class NormalOutput(DistributionOutput):
    def build(self, first, second, loc, scale):
        loc = torch.tensor(0.0) if loc is None else loc
        scale = torch.tensor(1.0) if scale is None else scale
        return Normal(loc + first * scale, F.softplus(second) * scale + 1e-6)


class BinnedOutput(DistributionOutput):
    """A histogram over fixed bins."""

    parameters_count = 6

    def __init__(self, features, low=-1.0, high=1.0):
        super().__init__(features)
        edges = np.linspace(low, high, self.parameters_count + 1, dtype=np.float32)
        self.centers = torch.from_numpy((edges[1:] + edges[:-1]) / 2)
        self.register_buffer("edges", torch.from_numpy(edges))

    def forward(self, x, loc=None, scale=None):
        return self.projection(x).log_softmax(-1)

    def log_prob(self, x, target):
        place = (torch.bucketize(target, self.edges) - 1).clamp(0, self.parameters_count - 1)
        return self(x).gather(-1, place.unsqueeze(-1)).squeeze(-1)

    def mean(self, x):
        return self(x).exp() @ self.centers  # raises
