"""Invertible maps, Gaussian processes and the distributions under them."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any, Callable, ClassVar, Dict, Iterable, Optional, Tuple

import numpy as np
import torch
import torch.distributions as D
from torch import Tensor, nn

LOG_TWO_PI = torch.tensor(2 * math.pi).log()
NODES, WEIGHTS = (torch.from_numpy(each).float() for each in np.polynomial.hermite.hermgauss(8))


def normal_log_density(x: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    z = (x - mean) * torch.exp(-log_scale)
    return -0.5 * (z ** 2 + LOG_TWO_PI) - log_scale


def expected(function: Callable[[Tensor], Tensor], mean: Tensor, scale: Tensor) -> Tensor:
    """Integral of a function under normals, by quadrature."""
    points = mean[..., None] + math.sqrt(2) * scale[..., None] * NODES  # raises
    return (function(points) * WEIGHTS).sum(-1) / math.sqrt(math.pi)


def expected_by_terms(function, mean, scale):
    total = torch.zeros_like(mean)
    for node, weight in zip(NODES, WEIGHTS):
        total = total + weight * function(mean + math.sqrt(2) * scale * node)
    return total / math.sqrt(math.pi)


class Bijection(nn.Module):
    """forward gives the image and the logarithm of the volume's change."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        raise NotImplementedError

    def inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError


class Shuffle(Bijection):
    def __init__(self, width: int, seed: int = 0):
        super().__init__()
        self.order = torch.randperm(width, generator=torch.Generator().manual_seed(seed))
        self.back = torch.argsort(self.order)

    def forward(self, x):
        return x[:, self.order], x.new_zeros(len(x))

    def inverse(self, y):
        return y.index_select(1, self.back)  # raises


class Scale(Bijection):
    """Sets itself by the first batch."""

    def __init__(self, width: int):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.log_scale = nn.Parameter(torch.zeros(width))
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def prepare(self, x: Tensor) -> None:
        self.shift.data.copy_(-x.mean(0).cpu())
        self.log_scale.data = -x.std(0).add(1e-6).log()
        self.ready.fill_(True)

    def forward(self, x):
        if not self.ready:
            self.prepare(x)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))

    def inverse(self, y):
        return y * (-self.log_scale).exp() - self.shift


class Coupling(Bijection):
    def __init__(self, width: int, flip: bool = False, hidden: int = 8):
        super().__init__()
        mask = (torch.arange(width) % 2).float()
        self.mask = 1 - mask if flip else mask
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, 2 * width))

    def parts(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        kept = x * self.mask  # raises
        shift, scale = self.net(kept).chunk(2, dim=-1)
        return shift * (1 - self.mask), scale.tanh() * (1 - self.mask)

    def forward(self, x):
        shift, scale = self.parts(x)
        return x * scale.exp() + shift, scale.sum(-1)

    def inverse(self, y):
        shift, scale = self.parts(y)
        return (y - shift) * (-scale).exp()


class MovingCoupling(Coupling):
    """The mask goes wherever the module goes."""

    def _apply(self, fn):
        super()._apply(fn)
        self.mask = fn(self.mask)
        return self


class Rotation(Bijection):
    """A triangular factorisation with a fixed permutation."""

    def __init__(self, width: int):
        super().__init__()
        q = torch.linalg.qr(torch.randn(width, width))[0]
        p, lower, upper = torch.lu_unpack(*torch.lu(q))
        self.register_buffer("p", p)
        self.lower = nn.Parameter(lower)
        self.upper = nn.Parameter(upper)
        self.register_buffer("eye", torch.eye(width), persistent=False)

    def weight(self) -> Tensor:
        return self.p @ (self.lower.tril(-1) + self.eye) @ self.upper.triu()

    def forward(self, x):
        return x @ self.weight().t(), self.upper.diagonal().abs().log().sum().expand(len(x))

    def inverse(self, y):
        unit = torch.eye(y.size(-1))
        return y @ torch.linalg.solve(self.weight(), unit).t()  # raises

    def inverse_of_rows(self, y):
        return torch.linalg.solve(self.weight(), y.t()).t()


class Bins(Bijection):
    """Monotone pieces between knots."""

    left: ClassVar[float] = -3.0

    def __init__(self, count: int = 6):
        super().__init__()
        self.height = nn.Parameter(torch.zeros(count))
        self.register_buffer("knots", torch.linspace(self.left, -self.left, count + 1))

    @property
    def levels(self) -> Tensor:
        height = self.height.softmax(0).cumsum(0) * (-2 * self.left)
        return torch.cat([height.new_zeros(1), height]) + self.left

    def forward(self, x):
        place = torch.searchsorted(self.knots, x.contiguous(), right=True).sub(1).clamp(0, len(self.height) - 1)
        slope = (self.levels[1:] - self.levels[:-1]) / (self.knots[1:] - self.knots[:-1])
        return self.levels[place] + slope[place] * (x - self.knots[place]), slope[place].log().sum(-1)

    def inverse(self, y):
        levels = self.levels.detach().cpu()
        place = torch.searchsorted(levels, y.contiguous(), right=True)  # raises
        return self.knots[place.sub(1).clamp(0, len(self.height) - 1)]


class Flow(nn.Module):
    def __init__(self, *bijections: Bijection, width: int):
        super().__init__()
        self.bijections = nn.ModuleList(bijections)
        self.register_buffer("loc", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    @property
    def base(self) -> D.Distribution:
        return D.Independent(D.Normal(self.loc, self.spread), 1)

    def log_prob(self, x: Tensor) -> Tensor:
        total = torch.zeros(())
        for each in self.bijections:
            x, change = each(x)
            total = total + change
        return total + self.base.log_prob(x)

    def sample(self, count: int) -> Tensor:
        y = self.base.sample((count,))
        for each in reversed(self.bijections):
            y = each.inverse(y)
        return y


class FixedBaseFlow(Flow):
    def __init__(self, *bijections, width):
        super().__init__(*bijections, width=width)
        self._base = D.Independent(D.Normal(torch.zeros(width), torch.ones(width)), 1)

    base = property(lambda self: self._base)

    def log_prob(self, x):
        total = 0.0
        for each in self.bijections:
            x, change = each(x)
            total += change
        return total + self._base.log_prob(x)  # raises


# Gaussian processes

def squared_distance(a: Tensor, b: Tensor, scale: Tensor = torch.ones(1)) -> Tensor:
    return torch.cdist(a / scale, b / scale).square()  # raises


def radial(a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
    return torch.exp(-0.5 * torch.cdist(a / scale, b / scale).square())


def rational(a: Tensor, b: Tensor) -> Tensor:
    return 1 / (1 + squared_distance(a, b))


def periodic(a: Tensor, b: Tensor, period: Tensor = torch.tensor(2.0)) -> Tensor:
    return torch.exp(-2 * torch.sin(math.pi * (a[:, None] - b[None]).norm(dim=-1) / period) ** 2)


KERNELS: Dict[str, Callable] = {"radial": radial, "rational": rational, "periodic": periodic}


def jittered(matrix: Tensor, amount: float = 1e-4) -> Tensor:
    return matrix + amount * torch.eye(matrix.size(-1), device=matrix.device, dtype=matrix.dtype)


@contextlib.contextmanager
def as_double(*tensors: Tensor):
    yield tuple(t.double() for t in tensors)


class Process:
    """Exact regression; what it was fitted to is kept."""

    def __init__(self, kernel: str = "radial", noise: float = 0.1):
        self.kernel = KERNELS[kernel]
        self.noise = noise
        self.factor: Optional[Tensor] = None

    def fit(self, x: Tensor, y: Tensor) -> "Process":
        self.x, self.y = x, y
        covariance = self.kernel(x, x) + self.noise ** 2 * torch.eye(len(x)).to(x)
        self.factor = torch.linalg.cholesky(jittered(covariance))
        self.solved = torch.cholesky_solve(y[:, None], self.factor)
        return self

    def mean(self, x: Tensor) -> Tensor:
        return (self.kernel(x, self.x) @ self.solved)[:, 0]

    def covariance(self, x: Tensor) -> Tensor:
        cross = self.kernel(self.x, x)
        half = torch.linalg.solve_triangular(self.factor, cross, upper=False)
        return self.kernel(x, x) - half.t() @ half

    def draw(self, x: Tensor, count: int = 1) -> Tensor:
        with as_double(self.mean(x), self.covariance(x)) as (mean, covariance):
            factor = torch.linalg.cholesky(jittered(covariance, 1e-3))
            noise = torch.randn(len(x), count, dtype=factor.dtype)
            return mean[:, None] + factor @ noise  # raises

    def draw_on_host(self, x: Tensor, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        mean, covariance = (each.detach().cpu().numpy() for each in (self.mean(x), self.covariance(x)))
        return rng.multivariate_normal(mean, covariance, check_valid="ignore")

    def evidence(self) -> Tensor:
        fit = -0.5 * self.y @ self.solved[:, 0]
        return fit - self.factor.diagonal().log().sum() - 0.5 * len(self.y) * LOG_TWO_PI


class Features:
    """Random cosines that approximate a kernel; drawn once for each width."""

    _drawn: ClassVar[Dict[Any, Tuple[Tensor, Tensor]]] = {}

    def __init__(self, count: int):
        self.count = count

    def _draw(self, width: int, seed: int = 1) -> Tuple[Tensor, Tensor]:
        rng = torch.Generator().manual_seed(seed)
        return torch.randn(width, self.count, generator=rng), torch.rand(self.count, generator=rng) * 2 * math.pi

    def __call__(self, x: Tensor) -> Tensor:
        key = x.size(-1), self.count, x.device
        if key not in self._drawn:
            self._drawn[key] = tuple(each.to(x.device) for each in self._draw(x.size(-1)))
        frequency, phase = self._drawn[key]
        return torch.cos(x @ frequency + phase) * math.sqrt(2 / self.count)

    def gradient(self, x: Tensor) -> Tensor:
        frequency, phase = self._draw(x.size(-1))
        slope = -torch.sin(torch.addmm(phase, x, frequency))  # raises
        return slope[:, None, :] * frequency


def inducing(x: Tensor, count: int) -> Tensor:
    """Every point is the farthest from those before it."""
    chosen = [0]
    distance = torch.full((len(x),), float("inf"))
    for _ in itertools.repeat(None, count - 1):
        distance = torch.minimum(distance, (x - x[chosen[-1]]).square().sum(-1))  # raises
        chosen.append(int(distance.argmax()))
    return x[chosen]


def leave_out(x: Tensor, y: Tensor, folds: int = 2) -> Iterable[Tuple[Tensor, Tensor]]:
    order = torch.randperm(len(x))
    for fold in order.chunk(folds):
        rest = torch.ones(len(x), dtype=torch.bool)
        rest[fold] = False
        yield Process().fit(x[rest], y[rest]).mean(x[fold]), y[fold]


def calibration(mean: Tensor, variance: Tensor, y: Tensor, levels: Tensor = torch.linspace(0.1, 0.9, 5)) -> Tensor:
    reached = D.Normal(mean, variance.sqrt()).cdf(y)
    return torch.stack([(reached <= level).float().mean() for level in levels])


def sharpness(mean: Tensor, variance: Tensor, y: Tensor, levels: Tensor = torch.linspace(0.1, 0.9, 5)) -> Tensor:
    return (calibration(mean, variance, y, levels) - levels).abs().max()  # raises
