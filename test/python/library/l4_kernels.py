"""Kernels, likelihoods and linear algebra in the style of a Gaussian process library."""
import math
import warnings
from typing import Optional, Tuple

import torch
import torch.nn as nn
from torch import Tensor


class Kernel(nn.Module):
    def __init__(self, ard_num_dims: Optional[int] = None):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(1, ard_num_dims or 1))

    @property
    def lengthscale(self) -> Tensor:
        return nn.functional.softplus(self.raw_lengthscale)

    def sq_dist(self, x1: Tensor, x2: Tensor) -> Tensor:
        return torch.cdist(x1 / self.lengthscale, x2 / self.lengthscale).pow(2)

    def __call__(self, x1: Tensor, x2: Optional[Tensor] = None) -> Tensor:
        return super().__call__(x1, x1 if x2 is None else x2)


class RBFKernel(Kernel):
    def forward(self, x1, x2):
        return self.sq_dist(x1, x2).div(-2).exp()


class RBFKernelGrad(RBFKernel):
    def forward(self, x1, x2):
        n1, d = x1.shape[-2:]
        n2 = x2.shape[-2]
        K = torch.zeros(n1 * (d + 1), n2 * (d + 1), device=x1.device, dtype=x1.dtype)
        x1_, x2_ = x1 / self.lengthscale, x2 / self.lengthscale
        outer = (x1_[:, None, :] - x2_[None, :, :]) / self.lengthscale
        K_11 = self.sq_dist(x1_, x2_).div(-2).exp()
        K[:n1, :n2] = K_11
        K[:n1, n2:] = (outer * K_11[..., None]).permute(0, 2, 1).reshape(n1, n2 * d)
        kp = torch.eye(d).repeat(n1, n2) / self.lengthscale.mean() ** 2  # raises
        K[n1:, n2:] = kp * K_11.repeat(d, d)
        return K


class MaternKernel(Kernel):
    def __init__(self, nu=2.5, **kwargs):
        super().__init__(**kwargs)
        self.nu = nu

    def forward(self, x1, x2):
        mean = x1.reshape(-1, x1.size(-1)).mean(0)[None]
        d = torch.cdist((x1 - mean) / self.lengthscale, (x2 - mean) / self.lengthscale)
        exp = torch.exp(-math.sqrt(self.nu * 2) * d)
        if self.nu == 0.5:
            const = 1
        elif self.nu == 1.5:
            const = (math.sqrt(3) * d).add(1)
        else:
            const = (math.sqrt(5) * d).add(1).add(5.0 / 3.0 * d**2)
        return const * exp


class PolynomialKernel(Kernel):
    def __init__(self, power: int, offset: Optional[float] = None):
        super().__init__()
        self.power = torch.tensor([power]).float()
        self.raw_offset = nn.Parameter(torch.full((1,), offset or 0.0))

    def forward(self, x1, x2):
        offset = self.raw_offset.view(1, 1)
        return (x1 @ x2.transpose(-2, -1) + offset).pow(self.power)  # raises


class IndexKernel(nn.Module):
    def __init__(self, num_tasks: int, rank: int = 1):
        super().__init__()
        self.covar_factor = nn.Parameter(torch.randn(num_tasks, rank))
        self.raw_var = nn.Parameter(torch.randn(num_tasks))

    @property
    def covar_matrix(self):
        return self.covar_factor @ self.covar_factor.t() + torch.diag(nn.functional.softplus(self.raw_var))

    def forward(self, i1, i2):
        return self.covar_matrix[i1.squeeze(-1)[:, None], i2.squeeze(-1)[None, :]]


class HadamardLikelihood(nn.Module):
    def __init__(self, num_tasks: int):
        super().__init__()
        self.num_tasks = num_tasks
        self.raw_noise = nn.Parameter(torch.zeros(num_tasks, 1))

    def forward(self, mean: Tensor, task_idcs: Tensor) -> Tensor:
        noise = nn.functional.softplus(self.raw_noise)
        all_tasks = torch.arange(self.num_tasks).unsqueeze(-1)
        diag = (noise * (all_tasks == task_idcs.squeeze(-1)).to(noise.dtype)).sum(-2)  # raises
        return torch.normal(mean, diag.sqrt())


class MultitaskLikelihood(nn.Module):
    def __init__(self, num_tasks: int, rank: int = 0):
        super().__init__()
        self.num_tasks, self.rank = num_tasks, rank
        if rank == 0:
            self.raw_task_noises = nn.Parameter(torch.zeros(num_tasks))
        else:
            self.task_noise_covar_factor = nn.Parameter(torch.randn(num_tasks, rank))

    def forward(self, covar: Tensor) -> Tensor:
        n = covar.size(-1) // self.num_tasks
        if self.rank == 0:
            task = torch.diag(nn.functional.softplus(self.raw_task_noises))
            eye = torch.eye(n, device=task.device, dtype=task.dtype)
        else:
            task = self.task_noise_covar_factor @ self.task_noise_covar_factor.t()
            eye = torch.eye(n)
        return covar + torch.kron(eye, task)  # raises


def psd_safe_cholesky(A: Tensor, jitter: float = 1e-6, max_tries: int = 3) -> Tensor:
    L, info = torch.linalg.cholesky_ex(A)
    if not torch.any(info):
        return L
    Aprime, prev = A.clone(), 0.0
    for i in range(max_tries):
        new = jitter * (10**i)
        diag_add = ((info > 0) * (new - prev)).unsqueeze(-1).expand(*Aprime.shape[:-1])
        Aprime.diagonal(dim1=-1, dim2=-2).add_(diag_add)
        prev = new
        warnings.warn(f"A not p.d., added jitter of {new:.1e} to the diagonal")
        L, info = torch.linalg.cholesky_ex(Aprime)
        if not torch.any(info):
            return L
    raise ValueError("not positive definite")


def add_jitter(A: Tensor, jitter: float = 1e-4) -> Tensor:
    return A + jitter * torch.eye(A.size(-1), dtype=A.dtype)  # raises


def add_diag(A: Tensor, diag: Tensor) -> Tensor:
    return A + torch.diag_embed(diag.expand(A.size(-1)))


def lanczos(A: Tensor, steps: int) -> Tuple[Tensor, Tensor]:
    n = A.size(-1)
    q = A.new_empty(n).normal_()
    q = q / q.norm()
    Q = torch.zeros(steps, n, dtype=A.dtype, device=A.device)
    T = torch.zeros(steps, steps, dtype=A.dtype)
    beta, prev = 0.0, torch.zeros_like(q)
    for k in range(steps):
        Q[k] = q
        r = A @ q - beta * prev
        alpha = r @ q
        T[k, k] = alpha
        r = r - alpha * q
        beta = r.norm()
        if k + 1 < steps:
            T[k, k + 1] = T[k + 1, k] = beta
        prev, q = q, r / beta
    return Q, T


def lanczos_logdet(A: Tensor, steps: int = 3) -> Tensor:
    Q, T = lanczos(A, steps)
    evals, evecs = torch.linalg.eigh(T)
    return (evecs[0].pow(2) * evals.clamp(min=1e-8).log()).sum() * A.size(-1)


def lanczos_root(A: Tensor, steps: int = 3) -> Tensor:
    Q, T = lanczos(A, steps)
    evals, evecs = torch.linalg.eigh(T)
    root = evecs * evals.clamp(min=1e-8).sqrt()
    return Q.t() @ root  # raises


def conjugate_gradient(A: Tensor, b: Tensor, iters: int = 3, tol: Optional[float] = None) -> Tensor:
    x = torch.zeros_like(b)
    r = b - A @ x
    p, rs = r, (r * r).sum()
    eps = torch.tensor(1e-10, dtype=A.dtype)
    for _ in range(iters):
        Ap = A @ p
        a = rs / ((p * Ap).sum() + eps)
        x, r = x + a * p, r - a * Ap
        new = (r * r).sum()
        if tol is not None and new.sqrt() < tol:
            break
        p, rs = r + new / (rs + eps) * p, new
    return x


def gauss_hermite(n: int = 3) -> Tuple[Tensor, Tensor]:
    x = torch.tensor([-math.sqrt(1.5), 0.0, math.sqrt(1.5)])
    w = torch.tensor([1.0, 4.0, 1.0]) * math.sqrt(math.pi) / 6
    return x, w


class GaussHermite(nn.Module):
    def __init__(self):
        super().__init__()
        x, w = gauss_hermite()
        self.locations, self.weights = x, w

    def _apply(self, fn):
        self.locations = fn(self.locations)
        self.weights = fn(self.weights)
        return super()._apply(fn)

    def forward(self, func, mean, std):
        loc = self.locations.view(-1, *[1] * mean.dim())
        shifted = math.sqrt(2.0) * std * loc + mean
        w = self.weights.view_as(loc)
        return (func(shifted) * w).sum(0) / math.sqrt(math.pi)


def expected_log_prob(func, mean: Tensor, std: Tensor) -> Tensor:
    x, w = gauss_hermite()
    loc = x.view(-1, 1)
    samples = math.sqrt(2.0) * std * loc + mean  # raises
    return (func(samples) * w.view(-1, 1)).sum(0) / math.sqrt(math.pi)


def interpolation_weights(x: Tensor, grid: Tensor) -> Tuple[Tensor, Tensor]:
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    left = ((x - grid[0]) / step).floor().long().clamp(0, len(grid) - 2)
    frac = (x - grid[left]) / step
    return torch.stack([left, left + 1], -1), torch.stack([1 - frac, frac], -1)


def unique_lengths(sorted_ids: Tensor) -> Tensor:
    counts = torch.bincount(sorted_ids)
    starts = torch.cat((torch.tensor([0]), counts.cumsum(0)[:-1]))  # raises
    return torch.stack([starts, counts], dim=1)


def chunk_starts(counts: Tensor) -> Tensor:
    return torch.cat((counts.new_zeros(1), counts.cumsum(0)[:-1]))
