"""Probabilistic forecasting: scaling, windowing, distribution heads, metrics."""
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import NegativeBinomial, Normal
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = [
    "ForecastConfig", "MeanScaler", "GroupNormalizer", "lagged_by_index",
    "HEADS", "build_head", "SampleForecast", "mase",
    "HorizonMetric", "RaggedEncoder", "StatefulForecaster", "BinTokenizer",
    "ConformalCalibrator", "StartIndexSampler",
]


@dataclass
class ForecastConfig:
    context_length: int = 24
    prediction_length: int = 6
    hidden: int = 16
    lags: Sequence[int] = (1, 2, 7)
    quantiles: List[float] = field(default_factory=lambda: [0.1, 0.5, 0.9])


class MeanScaler(nn.Module):
    def __init__(self, minimum_scale: float = 1e-10):
        super().__init__()
        self.minimum_scale = torch.tensor(minimum_scale)

    def forward(self, data, observed):
        total = (data.abs() * observed).sum(dim=1, keepdim=True)
        count = observed.sum(dim=1, keepdim=True)
        default = total.sum(0) / count.sum(0).clamp(min=1)
        scale = torch.where(count > 0, total / count.clamp(min=1), default.expand_as(total))
        scale = torch.maximum(scale, self.minimum_scale)
        return data / scale, scale


class GroupNormalizer:
    """Fitted on a data frame's columns; transforms batches."""

    def fit(self, values: np.ndarray, groups: np.ndarray) -> "GroupNormalizer":
        count = int(groups.max()) + 1
        center = np.array([values[groups == g].mean() for g in range(count)], dtype=np.float32)
        spread = np.array([values[groups == g].std() + 1e-8 for g in range(count)], dtype=np.float32)
        self.params_ = torch.from_numpy(np.stack([center, spread], axis=1))
        self.overall_ = torch.from_numpy(center).mean(), torch.from_numpy(spread).mean()
        return self

    def transform(self, y: torch.Tensor, groups: Optional[torch.Tensor] = None) -> torch.Tensor:
        if groups is None:
            center, spread = self.overall_
            return (y - center) / spread
        params = self.params_[groups]  # raises
        return (y - params[:, :1]) / params[:, 1:]

    def inverse(self, y: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        params = F.embedding(groups, self.params_.to(y))
        return y * params[:, 1:] + params[:, :1]


def lagged_by_index(sequence: torch.Tensor, lags: Sequence[int], length: int) -> torch.Tensor:
    index = torch.arange(length)[:, None] - torch.tensor(lags)[None] + sequence.shape[1] - length
    flat = sequence.index_select(1, index.reshape(-1))  # raises
    return flat.view(sequence.shape[0], length, len(lags))


HEADS: Dict[str, type] = {}


def register_head(name):
    def wrap(cls):
        HEADS[name] = cls
        return cls
    return wrap


def build_head(name: str, config: ForecastConfig, **kwargs) -> nn.Module:
    return HEADS[name](config.hidden, **kwargs)


class DistributionHead(nn.Module):
    args_dim = 2

    def __init__(self, hidden: int):
        super().__init__()
        self.proj = nn.Linear(hidden, self.args_dim)

    def loss(self, hidden, target):
        return -self(hidden).log_prob(target).mean()


@register_head("negbin")
class NegativeBinomialHead(DistributionHead):
    def forward(self, hidden):
        total, logits = self.proj(hidden).unbind(-1)
        return NegativeBinomial(F.softplus(total) + 1e-4, logits=logits)


@register_head("fixed")
class FixedVarianceHead(DistributionHead):
    args_dim = 1

    def __init__(self, hidden: int, sigmas: Sequence[float] = (1.0,)):
        super().__init__(hidden)
        self.sigma = torch.as_tensor(sigmas, dtype=torch.float32)

    def forward(self, hidden):
        return Normal(self.proj(hidden).squeeze(-1), self.sigma)

    def loss(self, hidden, target):
        dist = self(hidden)
        return -dist.log_prob(target).mean()  # raises

    def point(self, hidden):
        return self(hidden).mean


@register_head("binned")
class BinnedHead(nn.Module):
    def __init__(self, hidden: int, bins: int = 32, seed: Optional[int] = None):
        super().__init__()
        self.proj = nn.Linear(hidden, bins)
        self.generator = torch.Generator().manual_seed(seed) if seed is not None else None

    def sample(self, hidden, num: int = 10):
        probs = self.proj(hidden).softmax(-1)
        return torch.multinomial(probs, num, replacement=True, generator=self.generator)  # raises


class SampleForecast:
    def __init__(self, samples: torch.Tensor, quantiles: Sequence[float]):
        self.samples, self.levels = samples, quantiles

    def quantile(self, q: float):
        return torch.quantile(self.samples, q, dim=1)

    def quantiles(self):
        return torch.quantile(self.samples, torch.tensor(self.levels), dim=1)  # raises

    def numpy(self):
        return np.stack([self.quantile(q).cpu().numpy() for q in self.levels])


def mase(forecast: torch.Tensor, target: torch.Tensor, history: torch.Tensor, season: int = 1) -> float:
    naive = (history[:, season:] - history[:, :-season]).abs().mean(dim=1)
    errors = (forecast - target).abs().mean(dim=1).cpu().numpy()
    return float(np.mean(errors / np.maximum(naive, 1e-8)))  # raises


class HorizonMetric(nn.Module):
    """Absolute error at each step; the state follows the module."""

    def __init__(self, horizon: int):
        super().__init__()
        self._defaults: Dict[str, torch.Tensor] = {}
        self.add_state("total", torch.zeros(horizon))
        self.add_state("count", torch.tensor(0.0))

    def add_state(self, name, default):
        setattr(self, name, default.clone())
        self._defaults[name] = default

    def _apply(self, fn):
        this = super()._apply(fn)
        for name in this._defaults:
            setattr(this, name, fn(getattr(this, name)))
        return this

    def reset(self):
        for name, default in self._defaults.items():
            setattr(self, name, default.detach().clone())

    def update(self, pred, target):
        error = (pred - target).abs().sum(0)
        self.total = self.total + error  # raises
        self.count += pred.shape[0]

    def compute(self):
        return self.total / self.count


class RaggedEncoder(nn.Module):
    def __init__(self, config: ForecastConfig, sort: bool = True):
        super().__init__()
        self.sort = sort
        self.rnn = nn.LSTM(1, config.hidden, batch_first=True)

    def forward(self, x, mask):
        lengths = mask.sum(dim=1)
        if self.sort:
            order = lengths.argsort(descending=True)
            packed = pack_padded_sequence(x[order], lengths[order].tolist(), batch_first=True)
        else:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class StatefulForecaster(nn.Module):
    def __init__(self, config: ForecastConfig):
        super().__init__()
        self.cell, self.out = nn.GRUCell(1, config.hidden), nn.Linear(config.hidden, 1)
        self.state: Optional[torch.Tensor] = None

    def reset(self):
        self.state = None

    def step(self, x):
        state = self.state if self.state is not None else x.new_zeros(x.shape[0], self.cell.hidden_size)
        self.state = self.cell(x, state).detach()  # raises
        return self.out(self.state)


class BinTokenizer:
    def __init__(self, low: float = -5.0, high: float = 5.0, bins: int = 32):
        self.centers = torch.linspace(low, high, bins)
        self.boundaries = (self.centers[1:] + self.centers[:-1]) / 2

    def encode(self, values):
        scale = values.abs().mean(dim=-1, keepdim=True).clamp(min=1e-6)
        return torch.bucketize(values / scale, self.boundaries, right=True), scale  # raises

    def decode(self, tokens, scale):
        return self.centers.to(scale.device)[tokens] * scale


class ConformalCalibrator:
    def __init__(self, coverage: float = 0.9, per_step: bool = False):
        self.coverage, self.per_step = coverage, per_step
        self.residuals: List[torch.Tensor] = []

    def collect(self, pred, target):
        self.residuals.append((pred - target).detach().abs().cpu())

    def interval(self, pred):
        residuals = torch.cat(self.residuals)
        width = torch.quantile(residuals, self.coverage, dim=0) if self.per_step else residuals.flatten().quantile(self.coverage)
        return torch.stack([pred - width, pred + width], dim=-1)  # raises


class StartIndexSampler:
    """Takes one window of each series at a random place."""

    def __init__(self, config: ForecastConfig):
        self.window = config.context_length + config.prediction_length

    def __call__(self, series: torch.Tensor):
        starts = torch.randint(0, series.shape[1] - self.window + 1, (series.shape[0], 1))
        rows = torch.arange(series.shape[0])[:, None]
        return series[rows, starts + torch.arange(self.window)]
