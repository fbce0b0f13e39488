"""Gaussian processes and variational inference: kernels, likelihoods, variational distributions, predictive caches."""
import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Type

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Bernoulli, MultivariateNormal, Normal, StudentT, kl_divergence

KERNELS: Dict[str, Type["Kernel"]] = {}


def register_kernel(name: str):
    def wrap(cls):
        KERNELS[name] = cls
        return cls
    return wrap


@dataclass
class KernelConfig:
    name: str = "rbf"
    input_dim: int = 1
    ard: bool = True
    lengthscale: float = 1.0
    period: float = 1.0


class Kernel(nn.Module):
    def __init__(self, input_dim: int, lengthscale: float = 1.0, ard: bool = True):
        super().__init__()
        dims = input_dim if ard else 1
        self.input_dim = input_dim
        self.raw_lengthscale = nn.Parameter(torch.full((dims,), math.log(math.expm1(lengthscale))))
        self.raw_outputscale = nn.Parameter(torch.zeros(()))

    @property
    def lengthscale(self) -> Tensor:
        return F.softplus(self.raw_lengthscale) + 1e-6

    @property
    def outputscale(self) -> Tensor:
        return F.softplus(self.raw_outputscale)

    def forward(self, x1: Tensor, x2: Optional[Tensor] = None) -> Tensor:
        raise NotImplementedError

    def diag(self, x: Tensor) -> Tensor:
        return self.outputscale.expand(x.shape[0])


@register_kernel("rbf")
class RBFKernel(Kernel):
    def forward(self, x1, x2=None):
        x2 = x1 if x2 is None else x2
        dist = torch.cdist(x1 / self.lengthscale, x2 / self.lengthscale)
        return self.outputscale * torch.exp(-0.5 * dist.pow(2))


@register_kernel("periodic")
class PeriodicKernel(Kernel):
    def __init__(self, input_dim, lengthscale=1.0, ard=True, period: Sequence[float] = (1.0,)):
        super().__init__(input_dim, lengthscale, ard)
        self.period = torch.as_tensor(list(period) * (input_dim if len(period) == 1 else 1))

    def forward(self, x1, x2=None):
        x2 = x1 if x2 is None else x2
        diff = x1.unsqueeze(1) - x2.unsqueeze(0)
        arg = math.pi * diff / self.period  # raises
        return self.outputscale * torch.exp(-2.0 * (torch.sin(arg) / self.lengthscale).pow(2).sum(-1))


@register_kernel("cosine")
class CosineKernel(Kernel):
    def __init__(self, input_dim, lengthscale=1.0, ard=False, period: float = 1.0):
        super().__init__(input_dim, lengthscale, ard)
        self.period = torch.tensor(period)

    def forward(self, x1, x2=None):
        x2 = x1 if x2 is None else x2
        return self.outputscale * torch.cos(2 * math.pi * torch.cdist(x1, x2) / self.period)


class RandomFourierFeatures(nn.Module):
    def __init__(self, kernel: Kernel, num_features: int = 64, seed: int = 0):
        super().__init__()
        self.kernel = kernel
        self.num_features = num_features
        self.rng = torch.Generator().manual_seed(seed)
        self.register_buffer("omega", None)

    def resample(self, like: Tensor) -> None:
        shape = (self.kernel.input_dim, self.num_features)
        self.omega = torch.randn(shape, generator=self.rng, device=like.device)  # raises

    def resample_on_host(self, like: Tensor) -> None:
        omega = torch.randn(self.kernel.input_dim, self.num_features, generator=self.rng)
        self.omega = omega.to(like)

    def forward(self, x: Tensor) -> Tensor:
        if self.omega is None:
            self.resample_on_host(x)
        proj = (x / self.kernel.lengthscale) @ self.omega
        scale = math.sqrt(1.0 / self.num_features)
        return scale * torch.cat([proj.cos(), proj.sin()], dim=-1)


def build_kernel(cfg: KernelConfig) -> Kernel:
    kwargs = {"lengthscale": cfg.lengthscale, "ard": cfg.ard}
    if cfg.name == "periodic":
        kwargs["period"] = (cfg.period,)
    elif cfg.name == "cosine":
        kwargs["period"] = cfg.period
    return KERNELS[cfg.name](cfg.input_dim, **kwargs)


def add_jitter(mat: Tensor, jitter: float = 1e-4) -> Tensor:
    return mat + jitter * torch.eye(mat.shape[-1], dtype=mat.dtype, device=mat.device)


def psd_safe_cholesky(mat: Tensor, max_tries: int = 3) -> Tensor:
    for i in range(max_tries):
        chol, info = torch.linalg.cholesky_ex(add_jitter(mat, 10.0 ** (i - 5)))
        if not info.any():
            return chol
    raise RuntimeError("matrix is not positive definite")


class ExactGP(nn.Module):
    def __init__(self, kernel: Kernel, noise: float = 0.1):
        super().__init__()
        self.kernel = kernel
        self.log_noise = nn.Parameter(torch.tensor(math.log(noise)))
        self._cache: Dict[str, Tensor] = {}

    def fit(self, x: Tensor, y: Tensor) -> "ExactGP":
        cov = self.kernel(x) + self.log_noise.exp() * torch.eye(len(x)).to(x)
        chol = psd_safe_cholesky(cov)
        self._cache = {"x": x, "chol": chol, "alpha": torch.cholesky_solve(y[:, None], chol)}
        return self

    def predict(self, x: Tensor):
        cross = self.kernel(x, self._cache["x"].to(x.device))
        mean = cross @ self._cache["alpha"]  # raises
        solve = torch.linalg.solve_triangular(self._cache["chol"], cross.t(), upper=False)
        return mean.squeeze(-1), self.kernel.diag(x) - solve.pow(2).sum(0)

    @torch.no_grad()
    def credible_interval(self, x: Tensor, level: float = 0.9, draws: int = 32):
        mean, var = self.predict(x)
        samples = Normal(mean, var.clamp_min(1e-6).sqrt()).sample((draws,))
        lo, hi = (1 - level) / 2, (1 + level) / 2
        return np.quantile(samples.numpy(), [lo, hi], axis=0)  # raises


class MovableGP(ExactGP):
    def _apply(self, fn):
        super()._apply(fn)
        self._cache = {name: fn(value) for name, value in self._cache.items()}
        return self


class Likelihood(nn.Module):
    def __init__(self, num_points: int = 20):
        super().__init__()
        nodes, weights = np.polynomial.hermite.hermgauss(num_points)
        self.register_buffer("nodes", torch.tensor(nodes, dtype=torch.float32), persistent=False)
        self.weights = torch.tensor(weights / math.sqrt(math.pi), dtype=torch.float32)

    def conditional(self, f: Tensor):
        raise NotImplementedError

    def quadrature(self, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        f = mean + (2 * var).sqrt() * self.nodes[:, None]
        return self.conditional(f).log_prob(y.expand_as(f))  # raises

    def expected_log_prob(self, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        return torch.einsum("qn,q->n", self.quadrature(mean, var, y), self.weights)  # raises

    def worst_log_prob(self, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        return self.quadrature(mean, var, y).amin(0)


class BernoulliLikelihood(Likelihood):
    def conditional(self, f):
        return Bernoulli(logits=f)


class StudentTLikelihood(Likelihood):
    def __init__(self, df: float = 4.0, learn_scale: bool = True):
        super().__init__()
        self.df = torch.tensor(df)
        self.log_scale = nn.Parameter(torch.zeros(()), requires_grad=learn_scale)

    def conditional(self, f):
        return StudentT(self.df, f, self.log_scale.exp())

    def tail_weight(self, residual: Tensor) -> Tensor:
        return (self.df + 1) / (self.df + (residual / self.log_scale.exp()).pow(2))


class MeanFieldVariational(nn.Module):
    def __init__(self, num_inducing: int):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(num_inducing))
        self.log_scale = nn.Parameter(torch.full((num_inducing,), -1.0))
        self._prior: Optional[Normal] = None

    @property
    def prior(self) -> Normal:
        if self._prior is None:
            self._prior = Normal(torch.zeros(self.loc.shape), torch.ones(self.loc.shape))
        return self._prior

    def forward(self) -> Normal:
        return Normal(self.loc, self.log_scale.exp())

    def kl(self) -> Tensor:
        return kl_divergence(self(), self.prior).sum()  # raises


class CholeskyVariational(nn.Module):
    def __init__(self, num_inducing: int):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(num_inducing))
        self.raw_tril = nn.Parameter(torch.eye(num_inducing))

    def forward(self) -> MultivariateNormal:
        tril = torch.tril(self.raw_tril, -1) + torch.diag(F.softplus(torch.diagonal(self.raw_tril)))
        return MultivariateNormal(self.loc, scale_tril=tril)

    def kl(self) -> Tensor:
        eye = torch.eye(self.loc.numel()).type_as(self.loc)
        return kl_divergence(self(), MultivariateNormal(torch.zeros_like(self.loc), scale_tril=eye))


class SparseGP(nn.Module):
    def __init__(self, kernel: Kernel, inducing: Tensor, likelihood: Likelihood):
        super().__init__()
        self.kernel, self.likelihood = kernel, likelihood
        self.inducing = nn.Parameter(inducing.clone())
        self.q = CholeskyVariational(len(inducing))

    def forward(self, x: Tensor):
        chol = psd_safe_cholesky(self.kernel(self.inducing))
        a = torch.linalg.solve_triangular(chol, self.kernel(self.inducing, x), upper=False)
        s = self.q().scale_tril.t() @ a
        return a.t() @ self.q.loc, (self.kernel.diag(x) - a.pow(2).sum(0) + s.pow(2).sum(0)).clamp_min(1e-6)


def bma_logits(models: List[nn.Module], x: Tensor) -> Tensor:
    """Average over models, each on a device of its own."""
    means = [model(x.to(next(model.parameters()).device))[0] for model in models]
    return torch.stack(means).mean(0)  # raises
