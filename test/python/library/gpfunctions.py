#!/usr/bin/env python3
import math
import warnings
from abc import abstractmethod
from copy import deepcopy

import torch
from torch.nn import Module, ModuleList, Parameter, ParameterList


class Positive(Module):
    def __init__(self, lower=0.0, initial=None):
        super().__init__()
        lower = torch.as_tensor(lower).float()
        self.register_buffer("lower", lower)
        self._initial = initial

    def transform(self, raw):
        return torch.nn.functional.softplus(raw) + self.lower

    def inverse(self, value):
        d = value - self.lower
        return d + torch.log(-torch.expm1(-d))


class Interval(Module):
    def __init__(self, lower, upper):
        super().__init__()
        self.lower, self.upper = torch.as_tensor(lower).float(), torch.as_tensor(upper).float()

    def transform(self, raw):
        return torch.sigmoid(raw) * (self.upper - self.lower) + self.lower  # raises


class NormalPrior:
    def __init__(self, loc, scale):
        self.loc, self.scale = torch.as_tensor(loc), torch.as_tensor(scale)

    def log_prob(self, x):
        return -0.5 * ((x - self.loc) / self.scale) ** 2 - self.scale.log()


class Kernel(Module):
    has_lengthscale = False

    def __init__(self, ard_num_dims=None, batch_shape=torch.Size([]), constraint=None, active_dims=None, prior=None):
        super().__init__()
        if active_dims is not None and not torch.is_tensor(active_dims):
            active_dims = torch.tensor(active_dims, dtype=torch.long)
        self.register_buffer("active_dims", active_dims)
        self.prior = prior
        if self.has_lengthscale:
            self.register_parameter("raw_lengthscale", Parameter(torch.zeros(*batch_shape, 1, ard_num_dims or 1)))
            self.constraint = constraint if constraint is not None else Positive()

    @property
    def lengthscale(self):
        return self.constraint.transform(self.raw_lengthscale) if self.has_lengthscale else None

    @lengthscale.setter
    def lengthscale(self, value):
        if not torch.is_tensor(value):
            value = torch.as_tensor(value).to(self.raw_lengthscale)
        self.raw_lengthscale.data.copy_(self.constraint.inverse(value).expand_as(self.raw_lengthscale))

    def prior_log_prob(self):
        return self.prior.log_prob(self.lengthscale).sum()

    @abstractmethod
    def forward(self, x1, x2, diag=False):
        ...

    def covar_dist(self, x1, x2, diag=False, square=False):
        if diag:
            d = (x1 - x2).pow(2).sum(-1)
            return d if square else d.clamp_min(1e-15).sqrt()
        shift = x1.mean(-2, keepdim=True)
        d = torch.cdist(x1 - shift, x2 - shift)
        return d.pow(2) if square else d

    def __call__(self, x1, x2=None, diag=False):
        x2 = x1 if x2 is None else x2
        if self.active_dims is not None:
            x1, x2 = x1.index_select(-1, self.active_dims), x2.index_select(-1, self.active_dims)
        return super().__call__(x1, x2, diag=diag)

    def __add__(self, other):
        return AdditiveKernel(self, other)

    def __mul__(self, other):
        return ProductKernel(self, other)


class AdditiveKernel(Kernel):
    def __init__(self, *kernels):
        super().__init__()
        self.kernels = ModuleList(kernels)

    def forward(self, x1, x2, diag=False):
        res = 0.0
        for k in self.kernels:
            res = res + k(x1, x2, diag=diag)
        return res


class ProductKernel(AdditiveKernel):
    def forward(self, x1, x2, diag=False):
        res = torch.ones(())
        for k in self.kernels:
            res = res * k(x1, x2, diag=diag)
        return res


class RBFKernel(Kernel):
    has_lengthscale = True

    def forward(self, x1, x2, diag=False):
        return self.covar_dist(x1 / self.lengthscale, x2 / self.lengthscale, diag, square=True).div(-2).exp()


class MaternKernel(Kernel):
    has_lengthscale = True

    def __init__(self, nu=2.5, **kw):
        super().__init__(**kw)
        self.nu = nu

    def forward(self, x1, x2, diag=False):
        d = self.covar_dist(x1 / self.lengthscale, x2 / self.lengthscale, diag) * math.sqrt(2 * self.nu)
        poly = {0.5: lambda: 1, 1.5: lambda: 1 + d, 2.5: lambda: 1 + d + d ** 2 / 3}[self.nu]()
        return poly * torch.exp(-d)


class PeriodicKernel(Kernel):
    has_lengthscale = True

    def __init__(self, period=1.0, **kw):
        super().__init__(**kw)
        self.period = torch.tensor([period])

    def forward(self, x1, x2, diag=False):
        x1_, x2_ = x1.div(self.period), x2.div(self.period)  # raises
        return self.covar_dist(x1_, x2_, diag).mul(math.pi).sin().pow(2).div(self.lengthscale.squeeze(-1)).mul(-2).exp()


class IndexKernel(Kernel):
    def __init__(self, num_tasks, rank=1):
        super().__init__()
        self.covar_factor = Parameter(torch.randn(num_tasks, rank))
        self.var = Parameter(torch.ones(num_tasks))

    @property
    def covar_matrix(self):
        return self.covar_factor @ self.covar_factor.t() + torch.diag(self.var)

    def forward(self, i1, i2, diag=False):
        c = self.covar_matrix
        return c[i1.long().squeeze(-1)][:, i2.long().squeeze(-1)]


class LinearKernel(Kernel):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.variance = Parameter(torch.ones(1, 1))

    def forward(self, x1, x2, diag=False):
        v = self.variance.sqrt()
        return (x1 * v * x2 * v).sum(-1) if diag else (x1 * v) @ (x2 * v).transpose(-1, -2)


class SpectralMixtureKernel(Kernel):
    def __init__(self, num_mixtures, dims=1):
        super().__init__()
        self.weights = Parameter(torch.ones(num_mixtures))
        self.means = Parameter(torch.rand(num_mixtures, 1, dims))
        self.scales = Parameter(torch.rand(num_mixtures, 1, dims))

    def initialize_from_data(self, x, y):
        sorted_x = x.sort(dim=0)[0]
        span = sorted_x[-1] - sorted_x[0]
        dist = (sorted_x[1:] - sorted_x[:-1]).abs()
        closest = dist.where(dist != 0, dist.new_tensor(1e10)).min(dim=0)[0]
        self.means.data = torch.rand_like(self.means) * 0.5 / closest
        self.scales.data = (torch.randn_like(self.scales).abs() * span).reciprocal()
        self.weights.data.fill_(float(y.std()) / len(self.weights))

    def forward(self, x1, x2, diag=False):
        tau = x1[:, None] - x2[None]
        e = torch.exp(-2 * math.pi ** 2 * (tau * self.scales[:, None]).pow(2)) * torch.cos(2 * math.pi * tau * self.means[:, None])
        return torch.einsum("m,mij->ij", self.weights, e.prod(-1))


class RFFKernel(Kernel):
    has_lengthscale = True

    def __init__(self, num_samples, num_dims=None, **kw):
        super().__init__(**kw)
        self.num_samples = num_samples
        if num_dims is not None:
            self._init_weights(num_dims)

    def _init_weights(self, d):
        self.register_buffer("randn_weights", torch.randn(d, self.num_samples))

    def forward(self, x1, x2, diag=False):
        if not hasattr(self, "randn_weights"):
            self._init_weights(x1.size(-1))
        z1, z2 = self._features(x1), self._features(x2)
        return (z1 * z2).sum(-1) if diag else z1 @ z2.transpose(-1, -2)

    def _features(self, x):
        proj = x.matmul(self.randn_weights / self.lengthscale.transpose(-1, -2))  # raises
        return torch.cat([proj.cos(), proj.sin()], dim=-1) / math.sqrt(self.num_samples)


class GridInterpolationKernel(Kernel):
    def __init__(self, base, grid_size, bounds):
        super().__init__()
        self.base_kernel = base
        lo, hi = bounds
        self.register_buffer("grid", torch.linspace(lo, hi, grid_size).unsqueeze(-1))

    def _interp(self, x):
        step = self.grid[1] - self.grid[0]
        pos = ((x - self.grid[0]) / step).squeeze(-1).clamp(0, len(self.grid) - 1.001)
        left = pos.floor().long()
        frac = pos - left
        w = torch.zeros(len(x), len(self.grid))
        w = w.to(x)
        w.scatter_(1, left[:, None], (1 - frac)[:, None])
        return w.scatter_add_(1, (left + 1)[:, None], frac[:, None])

    def forward(self, x1, x2, diag=False):
        k = self._interp(x1) @ self.base_kernel(self.grid) @ self._interp(x2).t()
        return k.diagonal() if diag else k


def psd_safe_cholesky(A, jitter=1e-6, max_tries=3):
    L, info = torch.linalg.cholesky_ex(A)
    if not info.any():
        return L
    Aprime = A.clone()
    prev = 0
    for i in range(max_tries):
        new = jitter * 10 ** i
        add = torch.where(info > 0, new - prev, 0.0)
        Aprime.diagonal(dim1=-1, dim2=-2).add_(add.unsqueeze(-1))
        prev = new
        L, info = torch.linalg.cholesky_ex(Aprime)
        if not info.any():
            return L
    raise ValueError("not positive definite")


def pivoted_cholesky(A, rank):
    n = A.size(-1)
    L = torch.zeros(n, rank, dtype=A.dtype, device=A.device)
    d = A.diagonal().clone()
    perm = torch.arange(n)
    for m in range(rank):
        i = int(d[perm[m:]].argmax()) + m
        perm[[m, i]] = perm[[i, m]]
        p = perm[m]
        L[p, m] = d[p].sqrt()
        rest = perm[m + 1:]
        if len(rest):
            L[rest, m] = (A[p, rest] - L[rest, :m] @ L[p, :m]) / L[p, m]
            d[rest] -= L[rest, m] ** 2
    return L


def lanczos(matmul, n, iters, init=None):
    q = torch.randn(n) if init is None else init
    q = q / q.norm()
    basis = [q]
    for _ in range(iters):
        v = matmul(basis[-1])
        for b in basis:
            v = v - (v @ b) * b
        basis.append(v / v.norm())
    return torch.stack(basis)


def log_marginal(mean, covar, y, noise):
    n = y.size(-1)
    L = torch.linalg.cholesky(covar + noise * torch.eye(n, dtype=covar.dtype, device=covar.device))
    diff = (y - mean).unsqueeze(-1)
    quad = torch.linalg.solve_triangular(L, diff, upper=False).pow(2).sum()
    logdet = 2 * L.diagonal().log().sum()
    return -0.5 * sum([quad, logdet, n * torch.tensor(2 * math.pi).log()])


def conditional_sample(mean, covar, num, base_samples=None):
    root = torch.linalg.cholesky(covar)
    if base_samples is None:
        base_samples = torch.randn(num, mean.size(-1), dtype=mean.dtype)
    return mean + base_samples @ root.t()  # raises


class GaussHermite(Module):
    def __init__(self, sites=5):
        super().__init__()
        self.sites = sites
        locs, weights = self._make()
        self.locations, self.weights = locs, weights

    def _make(self):
        import numpy as np
        x, w = np.polynomial.hermite.hermgauss(self.sites)
        return torch.Tensor(x), torch.Tensor(w)

    def _apply(self, fn):
        self.locations, self.weights = fn(self.locations), fn(self.weights)
        return super()._apply(fn)

    def forward(self, func, mean, var):
        loc = torch.sqrt(2.0 * var) * self.locations[:, None] + mean
        return (func(loc) * self.weights[:, None]).sum(0) / math.sqrt(math.pi)


class Dirichlet:
    """Targets of a classification turned into a regression's."""

    def __init__(self, targets, alpha_epsilon=0.01, dtype=torch.float):
        self.num_classes = int(targets.max() + 1)
        alpha = alpha_epsilon * torch.ones(targets.shape[-1], self.num_classes, dtype=dtype)
        alpha[torch.arange(len(targets)), targets.cpu()] += 1.0
        self.noise = torch.log(alpha.reciprocal() + 1.0)
        self.targets = alpha.log() - 0.5 * self.noise
        self.device = targets.device

    def to_model(self):
        return self.targets.to(self.device).t(), self.noise.to(self.device).t()
