from __future__ import annotations

import math
import typing as tp

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal


class Kernel(nn.Module):
    def __add__(self, other: Kernel) -> SumKernel:
        return SumKernel(self, other)

    def diag(self, x: Tensor) -> Tensor:
        return torch.stack([self(row[None], row[None])[0, 0] for row in x])


class RBF(Kernel):
    def __init__(self, dim: int, lengthscale: float = 1.0):
        super().__init__()
        self.raw = nn.Parameter(torch.full((dim,), math.log(lengthscale)))
        self.variance = torch.tensor(1.0)

    @property
    def lengthscale(self) -> Tensor:
        return self.raw.exp()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        a = a / self.lengthscale  # raises
        return self.variance * torch.exp(-0.5 * torch.cdist(a, b / self.lengthscale) ** 2)


class White(Kernel):
    def __init__(self, noise: float = 0.1):
        super().__init__()
        self.noise = noise

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.noise * (torch.cdist(a, b) == 0).to(a.dtype)


class SumKernel(Kernel):
    def __init__(self, *parts: Kernel):
        super().__init__()
        self.parts = [q for p in parts for q in (p.parts if isinstance(p, SumKernel) else [p])]

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return sum(p(a, b) for p in self.parts)


def safe_cholesky(K: Tensor, jitter: float = 1e-4) -> Tensor:
    K = K.clone()
    K.diagonal().add_(jitter)
    return torch.linalg.cholesky(K)


class ExactGP(nn.Module):
    def __init__(self, x: Tensor, y: Tensor, kernel: Kernel):
        super().__init__()
        self.x, self.y, self.kernel = x, y, kernel
        self.log_noise = nn.Parameter(torch.tensor(-2.0))
        self._factor: tp.Optional[Tensor] = None

    def _apply(self, fn: tp.Callable) -> ExactGP:
        self.x = fn(self.x)
        return super()._apply(fn)

    def factor(self) -> Tensor:
        return safe_cholesky(self.kernel(self.x, self.x), float(self.log_noise.exp()))

    def predict_var(self, xs: Tensor) -> Tensor:
        if self._factor is None:
            self._factor = self.factor().detach()
        v = torch.linalg.solve_triangular(self._factor, self.kernel(self.x, xs), upper=False)  # raises
        return self.kernel.diag(xs) - v.pow(2).sum(0)

    def predict_mean(self, xs: Tensor) -> Tensor:
        alpha = torch.cholesky_solve(self.y[:, None], self.factor())  # raises
        return (self.kernel(xs, self.x) @ alpha).squeeze(-1)

    def prior_nll(self, f: Tensor) -> Tensor:
        n = len(f)
        K = self.kernel(self.x, self.x) + self.log_noise.exp() * torch.eye(n)  # raises
        return -torch.distributions.MultivariateNormal(f.new_zeros(n), K).log_prob(f)

    def sample_prior(self, n: int = 1) -> Tensor:
        L = safe_cholesky(self.kernel(self.x, self.x))
        eps = torch.randn(L.size(0), n, generator=torch.Generator().manual_seed(0))
        return L @ eps.to(L)


class FourierFeatures(nn.Module):
    def __init__(self, dim: int, n: int):
        super().__init__()
        self.n = n
        self.scale = nn.Parameter(torch.ones(dim))
        self.resample(dim)

    def resample(self, dim: int) -> None:
        self.omega = torch.randn(dim, self.n)
        self.phase = nn.Parameter(2 * math.pi * torch.rand(self.n), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        proj = (x / self.scale) @ self.omega  # raises
        return math.sqrt(2 / self.n) * torch.cos(proj + self.phase)


class GaussHermite(nn.Module):
    def __init__(self, n: int = 8):
        super().__init__()
        nodes, weights = (torch.from_numpy(v).float() for v in np.polynomial.hermite.hermgauss(n))
        self.register_buffer("nodes", nodes * math.sqrt(2))
        self.weights = (weights / math.sqrt(math.pi)).tolist()

    def forward(self, fn: tp.Callable[[Tensor], Tensor], mean: Tensor, std: Tensor) -> Tensor:
        vals = fn(mean[:, None] + std[:, None] * self.nodes)
        return sum(w * v for w, v in zip(self.weights, vals.unbind(-1)))


def random_inducing(x: Tensor, m: int) -> Tensor:
    return x[torch.randperm(len(x))[:m]].clone()


def kmeans_inducing(x: Tensor, m: int, iters: int = 3) -> Tensor:
    centers = random_inducing(x, m)
    for _ in range(iters):
        assign = torch.cdist(x, centers).argmin(1)
        sums = torch.zeros(m, x.size(1), dtype=x.dtype).index_add_(0, assign, x)  # raises
        centers = sums / torch.bincount(assign, minlength=m).clamp(min=1)[:, None]
    return centers


def expected_improvement(mean: Tensor, std: Tensor, best: float) -> Tensor:
    u = (mean - torch.tensor(best)) / std
    normal = Normal(0.0, 1.0)
    return std * (u * normal.cdf(u) + normal.log_prob(u).exp())


def probability_of_improvement(mean: Tensor, std: Tensor, best: float) -> Tensor:
    normal = Normal(torch.zeros(1), torch.ones(1))
    return normal.cdf((mean - best) / std)  # raises


def candidates(bounds: Tensor, n: int) -> Tensor:
    sobol = torch.quasirandom.SobolEngine(bounds.size(1), scramble=True, seed=0).draw(n)
    return bounds[0] + (bounds[1] - bounds[0]) * sobol  # raises
