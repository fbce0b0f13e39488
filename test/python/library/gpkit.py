"""Gaussian processes: kernels, means, likelihoods, lazily evaluated matrices, variational strategies."""
import math
import warnings
from abc import abstractmethod
from typing import Callable, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import Module, ModuleList, Parameter
from torch.nn.functional import softplus

from functools import reduce

MAX_CHOLESKY_JITTER = 3


def inv_softplus(x):
    return x + torch.log(-torch.expm1(-x))


class GreaterThan(Module):
    def __init__(self, lower_bound):
        super().__init__()
        self.lower_bound = torch.as_tensor(lower_bound)

    def transform(self, raw):
        # a 0-dim bound mixes with anything
        return softplus(raw) + self.lower_bound


class Positive(GreaterThan):
    def __init__(self):
        super().__init__(0.0)


def sq_dist(x1: Tensor, x2: Tensor) -> Tensor:
    adjustment = x1.mean(-2, keepdim=True)
    x1, x2 = x1 - adjustment, x2 - adjustment
    x1_norm, x2_norm = x1.pow(2).sum(-1, keepdim=True), x2.pow(2).sum(-1, keepdim=True)
    x1_ = torch.cat([-2.0 * x1, x1_norm, torch.ones_like(x1_norm)], dim=-1)
    x2_ = torch.cat([x2, torch.ones_like(x2_norm), x2_norm], dim=-1)
    return x1_.matmul(x2_.transpose(-2, -1)).clamp_min_(0)


class Kernel(Module):
    has_lengthscale = False

    def __init__(self, ard_num_dims: Optional[int] = None, active_dims: Optional[Tuple[int, ...]] = None, constraint=None):
        super().__init__()
        if active_dims is not None and not torch.is_tensor(active_dims):
            active_dims = torch.tensor(active_dims, dtype=torch.long)
        self.register_buffer("active_dims", active_dims)
        if self.has_lengthscale:
            self.register_parameter("raw_lengthscale", Parameter(torch.zeros(1, ard_num_dims or 1)))
            self.raw_lengthscale_constraint = constraint or Positive()

    @property
    def lengthscale(self):
        return self.raw_lengthscale_constraint.transform(self.raw_lengthscale) if self.has_lengthscale else None

    @abstractmethod
    def forward(self, x1, x2, diag=False):
        raise NotImplementedError

    def __call__(self, x1, x2=None, diag=False):
        x2 = x1 if x2 is None else x2
        if self.active_dims is not None:
            x1, x2 = x1.index_select(-1, self.active_dims), x2.index_select(-1, self.active_dims)
        return super().__call__(x1, x2, diag=diag)

    def __add__(self, other):
        return AdditiveKernel(self, other)

    def __mul__(self, other):
        return ProductKernel(self, other)


class RBFKernel(Kernel):
    has_lengthscale = True

    def forward(self, x1, x2, diag=False):
        if diag:
            return x1.new_ones(x1.shape[:-1])
        return sq_dist(x1 / self.lengthscale, x2 / self.lengthscale).div(-2).exp()


class SpectralMixtureKernel(Kernel):
    def __init__(self, num_mixtures: int, dims: int = 1):
        super().__init__()
        self.num_mixtures = num_mixtures
        self.raw_weights = Parameter(torch.zeros(num_mixtures))
        self.raw_scales = Parameter(torch.zeros(num_mixtures, 1, dims))
        self.mixture_means = torch.linspace(0.1, 1.0, num_mixtures).view(-1, 1, 1).repeat(1, 1, dims)

    def initialize_from_data(self, train_x: Tensor, train_y: Tensor) -> None:
        sorted_x = train_x.sort(dim=0)[0]
        max_dist = sorted_x[-1] - sorted_x[0]
        min_dist = (sorted_x[1:] - sorted_x[:-1]).clamp_min(1e-4).min(0)[0]
        self.raw_scales.data.mul_(torch.randn_like(self.raw_scales)).div_(max_dist)
        self.mixture_means = torch.rand_like(self.raw_scales).mul(0.5).div(min_dist)
        self.raw_weights.data.fill_(float(train_y.std()) / self.num_mixtures)

    def forward(self, x1, x2, diag=False):
        weights, scales = softplus(self.raw_weights), softplus(self.raw_scales)
        diff = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        exp_term = (-2 * math.pi ** 2 * (diff.unsqueeze(0) * scales.unsqueeze(1)) ** 2).exp()
        cos_term = torch.cos(2 * math.pi * diff.unsqueeze(0) * self.mixture_means.unsqueeze(1))  # raises
        return ((exp_term * cos_term).prod(-1) * weights.view(-1, 1, 1)).sum(0)


class RFFKernel(Kernel):
    """Random Fourier features; the weights are drawn when the first batch shows their size."""
    has_lengthscale = True

    def __init__(self, num_samples: int, num_dims: Optional[int] = None, **kwargs):
        super().__init__(**kwargs)
        self.num_samples = num_samples
        if num_dims is not None:
            self._init_weights(num_dims)

    def _init_weights(self, num_dims: int) -> None:
        self.register_buffer("randn_weights", torch.randn(num_dims, self.num_samples))

    def _featurize(self, x: Tensor) -> Tensor:
        z = x.matmul(self.randn_weights / self.lengthscale.transpose(-1, -2))  # raises
        return torch.cat([torch.cos(z), torch.sin(z)], dim=-1) / math.sqrt(self.num_samples)

    def forward(self, x1, x2, diag=False):
        if not hasattr(self, "randn_weights"):
            self._init_weights(x1.size(-1))
        z1 = self._featurize(x1)
        z2 = z1 if x1 is x2 else self._featurize(x2)
        return (z1 * z2).sum(-1) if diag else z1.matmul(z2.transpose(-1, -2))


class PeriodicKernel(Kernel):
    has_lengthscale = True

    def __init__(self, period_length: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        self.period_length = torch.tensor([period_length])

    def forward(self, x1, x2, diag=False):
        period = self.period_length.type_as(self.raw_lengthscale)
        diff = (x1 / period).unsqueeze(-2) - (x2 / period).unsqueeze(-3)
        return diff.mul(math.pi).sin().pow(2).sum(-1).div(self.lengthscale).mul(-2.0).exp()


class ScaleKernel(Kernel):
    def __init__(self, base_kernel: Kernel, outputscale_constraint=None):
        super().__init__()
        self.base_kernel = base_kernel
        self.raw_outputscale = Parameter(torch.tensor(0.0))
        self.constraint = outputscale_constraint or GreaterThan(1e-4)

    def forward(self, x1, x2, diag=False):
        return self.base_kernel(x1, x2, diag=diag) * self.constraint.transform(self.raw_outputscale)


class AdditiveKernel(Kernel):
    def __init__(self, *kernels: Kernel):
        super().__init__()
        self.kernels = ModuleList(kernels)

    def forward(self, x1, x2, diag=False):
        res = torch.zeros(x1.size(-2), x2.size(-2))
        for kern in self.kernels:
            res = res + kern(x1, x2, diag=diag)  # raises
        return res


class ProductKernel(Kernel):
    def __init__(self, *kernels: Kernel):
        super().__init__()
        self.kernels = ModuleList(kernels)

    def forward(self, x1, x2, diag=False):
        return reduce(torch.mul, [kern(x1, x2, diag=diag) for kern in self.kernels])


# ---------------------------------------------------------------------------------------------------- linear algebra
def psd_safe_cholesky(A: Tensor, jitter: float = 1e-6) -> Tensor:
    L, info = torch.linalg.cholesky_ex(A)
    if not torch.any(info):
        return L
    Aprime = A.clone()
    prev = 0.0
    for i in range(MAX_CHOLESKY_JITTER):
        new = jitter * (10 ** i)
        Aprime.diagonal(dim1=-1, dim2=-2).add_((info > 0).unsqueeze(-1).type_as(A) * (new - prev))
        prev = new
        L, info = torch.linalg.cholesky_ex(Aprime)
        if not torch.any(info):
            return L
    warnings.warn("matrix not positive definite")
    return L


def add_jitter(A: Tensor, jitter: float = 1e-4) -> Tensor:
    return A + jitter * torch.eye(A.size(-1), dtype=A.dtype)  # raises


def pivoted_cholesky(matrix: Tensor, max_iter: int, error_tol: float = 1e-3) -> Tensor:
    n = matrix.size(-1)
    diag = matrix.diagonal().clone()
    L = torch.zeros(max_iter, n, dtype=matrix.dtype, device=matrix.device)
    perm = torch.arange(n)
    for m in range(max_iter):
        best = int(torch.argmax(diag[perm[m:]])) + m
        perm[[m, best]] = perm[[best, m]]
        pivot = perm[m]
        L[m, pivot] = diag[pivot].clamp_min(1e-10).sqrt()
        rest = perm[m + 1:]
        if len(rest):
            update = matrix[pivot, rest] - (L[:m, pivot, None] * L[:m, rest]).sum(0)
            L[m, rest] = update / L[m, pivot]
            diag[rest] -= L[m, rest] ** 2
    return L.t()


def lanczos_tridiag(matmul_closure: Callable, num_iter: int, n: int, dtype=torch.float32, init_vec: Optional[Tensor] = None):
    q = torch.randn(n, dtype=dtype) if init_vec is None else init_vec
    q = q / q.norm()
    alphas, betas, prev, beta = [], [], torch.zeros_like(q), 0.0
    for _ in range(num_iter):
        r = matmul_closure(q) - beta * prev
        alpha = q.dot(r)
        r = r - alpha * q
        beta = r.norm()
        alphas.append(alpha)
        betas.append(beta)
        prev, q = q, r / beta.clamp_min(1e-10)
    return torch.stack(alphas), torch.stack(betas[:-1])


def log_det_estimate(matrix: Tensor, num_iter: int = 3) -> Tensor:
    """Stochastic Lanczos quadrature with one probe."""
    closure = lambda v: torch.mv(matrix, v)  # raises
    alphas, betas = lanczos_tridiag(closure, num_iter, matrix.size(0), matrix.dtype)
    T = torch.diag(alphas) + torch.diag(betas, 1) + torch.diag(betas, -1)
    evals, evecs = torch.linalg.eigh(T)
    return matrix.size(0) * (evecs[0] ** 2 * evals.clamp_min(1e-10).log()).sum()


class LazyEvaluated:
    """Evaluates its kernel once and remembers the result and its factor."""

    def __init__(self, x1, x2, kernel):
        self.x1, self.x2, self.kernel = x1, x2, kernel
        self._memo = {}

    def _cached(self, name, make):
        if name not in self._memo:
            self._memo[name] = make()
        return self._memo[name]

    def evaluate(self):
        return self._cached("dense", lambda: self.kernel(self.x1, self.x2))

    def root(self):
        return self._cached("root", lambda: psd_safe_cholesky(self.evaluate() + 1e-3 * torch.eye(len(self.x1)).to(self.x1)))

    def sample(self, num: int) -> Tensor:
        noise = self._cached("base_samples", lambda: torch.randn(len(self.x1), num))
        return self.root() @ noise  # raises


class GaussianLikelihood(Module):
    def __init__(self, noise: float = 0.1):
        super().__init__()
        self.raw_noise = Parameter(inv_softplus(torch.tensor([noise])))

    @property
    def noise(self):
        return softplus(self.raw_noise)

    def forward(self, mean, covar):
        return mean, covar + torch.diag_embed(self.noise.expand(covar.size(-1)))


class FixedNoiseLikelihood(Module):
    def __init__(self, noise: Tensor, learn_additional_noise: bool = False):
        super().__init__()
        self.register_buffer("fixed_noise", noise)
        self.second_noise = Parameter(torch.zeros(1)) if learn_additional_noise else None

    def forward(self, mean, covar):
        noise = self.fixed_noise if self.second_noise is None else self.fixed_noise + self.second_noise
        return mean, covar + torch.diag_embed(noise)


class BernoulliLikelihood(Module):
    """Gauss-Hermite quadrature with three points."""

    def __init__(self):
        super().__init__()
        self.locations = torch.tensor([-1.2247, 0.0, 1.2247])
        self.weights = torch.tensor([0.2954, 1.1816, 0.2954])

    def _apply(self, fn):
        self.locations = fn(self.locations)
        self.weights = fn(self.weights)
        return super()._apply(fn)

    def marginal(self, mean, var):
        points = math.sqrt(2) * var.sqrt().unsqueeze(-1) * self.locations + mean.unsqueeze(-1)
        return (torch.distributions.Normal(0.0, 1.0).cdf(points) * self.weights).sum(-1) / math.sqrt(math.pi)


class ExactGP(Module):
    def __init__(self, train_x: Tensor, train_y: Tensor, kernel: Kernel, likelihood: Module):
        super().__init__()
        self.train_x, self.train_y = train_x, train_y
        self.kernel, self.likelihood = kernel, likelihood
        self.constant = Parameter(torch.zeros(1))
        self._alpha: Optional[Tensor] = None

    def _apply(self, fn):
        self.train_x, self.train_y = fn(self.train_x), fn(self.train_y)
        return super()._apply(fn)

    def train(self, mode=True):
        if mode:
            self._alpha = None
        return super().train(mode)

    def posterior(self, x: Tensor) -> Tensor:
        if self._alpha is None:
            _, K = self.likelihood(self.constant.expand(len(self.train_x)), self.kernel(self.train_x))
            L = psd_safe_cholesky(K)
            self._alpha = torch.cholesky_solve((self.train_y - self.constant).unsqueeze(-1), L)
        return self.constant + (self.kernel(x, self.train_x) @ self._alpha).squeeze(-1)


class VariationalDistribution(Module):
    def __init__(self, num_inducing: int, mean_init_std: float = 1e-3):
        super().__init__()
        self.mean_init_std = mean_init_std
        self.variational_mean = Parameter(torch.zeros(num_inducing))
        self.chol_variational_covar = Parameter(torch.eye(num_inducing))

    @property
    def covar(self):
        mask = torch.ones(self.chol_variational_covar.shape).tril(0)
        L = self.chol_variational_covar.mul(mask)  # raises
        return L @ L.transpose(-1, -2)

    def init_from(self, mean: Tensor, covar: Tensor) -> None:
        self.variational_mean.data.copy_(mean)
        self.variational_mean.data.add_(torch.randn_like(mean), alpha=self.mean_init_std)
        self.chol_variational_covar.data.copy_(psd_safe_cholesky(covar))

    def kl_to_standard(self) -> Tensor:
        L = self.chol_variational_covar.tril()
        return 0.5 * (L.pow(2).sum() + self.variational_mean.pow(2).sum() - len(L) - 2 * L.diagonal().abs().log().sum())


class GridInterpolation(Module):
    def __init__(self, grid_size: int, bounds: Tuple[float, float]):
        super().__init__()
        self.grid_size = grid_size
        self.grid = [torch.linspace(bounds[0], bounds[1], grid_size)]

    def interpolate(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        grid = self.grid[0]
        step = (grid[1] - grid[0]).item()
        left = ((x.squeeze(-1) - grid[0]) / step).floor().long().clamp(0, self.grid_size - 2)
        offset = x.squeeze(-1) - grid[left]  # raises
        w = offset / step
        return torch.stack([left, left + 1], -1), torch.stack([1 - w, w], -1)
