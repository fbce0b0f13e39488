#!/usr/bin/env python3
import math
import warnings
from typing import Any, List, Tuple

import torch
from torch.nn import Module, ModuleList, Parameter
from torch.nn.functional import softplus


class _Kernel(Module):
    def __init__(self, ard_num_dims=None, **kwargs):
        super().__init__()
        self.ard_num_dims = ard_num_dims
        self.raw_lengthscale = Parameter(torch.zeros(1, ard_num_dims or 1))

    @property
    def lengthscale(self):
        return softplus(self.raw_lengthscale)

    def covar_dist(self, x1, x2, square_dist=False, diag=False):
        if diag:
            res = (x1 - x2).norm(p=2, dim=-1)
            return res.pow(2) if square_dist else res
        d = torch.cdist(x1, x2)
        return d.pow(2) if square_dist else d


# broken
class PolynomialKernelGrad(_Kernel):
    def __init__(self, power: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.power = power
        self.offset = Parameter(torch.zeros(1))

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False):
        n1, n2, d = x1.shape[-2], x2.shape[-2], x1.shape[-1]
        base = x1 @ x2.mT + self.offset
        K11 = base ** self.power
        if diag:
            return K11.diagonal()
        K12 = torch.zeros(n1, n2 * d, dtype=x1.dtype)
        for i in range(d):
            K12[:, i * n2:(i + 1) * n2] = self.power * base ** (self.power - 1) * x1[:, i:i + 1]
        K21 = torch.zeros(n1 * d, n2, dtype=x1.dtype, device=x1.device)
        for i in range(d):
            K21[i * n1:(i + 1) * n1] = self.power * base ** (self.power - 1) * x2[:, i].unsqueeze(0)
        top = torch.cat([K11, K12], dim=-1)  # raises
        bottom = torch.cat([K21, torch.zeros(n1 * d, n2 * d, dtype=x1.dtype, device=x1.device)], dim=-1)
        return torch.cat([top, bottom], dim=-2)


# clean
class PeriodicKernel(_Kernel):
    """period may be a float, or a tensor of any device"""

    def __init__(self, period=1.0, **kwargs):
        super().__init__(**kwargs)
        self.initial = torch.as_tensor(period)
        self.register_parameter("raw_period", Parameter(torch.zeros(1, 1)))

    @property
    def period(self):
        return softplus(self.raw_period) * self.initial.to(self.raw_period)

    def forward(self, x1, x2, diag=False):
        a = x1.div(self.period).mul(math.pi)
        b = x2.div(self.period).mul(math.pi)
        d = (a.unsqueeze(-2) - b.unsqueeze(-3)).sin().pow(2).div(self.lengthscale).sum(-1).mul(-2).exp()
        return d.diagonal(dim1=-1, dim2=-2) if diag else d


# broken
class SpectralMixtureKernel(_Kernel):
    def __init__(self, num_mixtures, ard_num_dims=1):
        super().__init__()
        self.num_mixtures, self.d = num_mixtures, ard_num_dims
        for n in ("raw_weights", "raw_means", "raw_scales"):
            shape = (num_mixtures,) if n == "raw_weights" else (num_mixtures, 1, ard_num_dims)
            setattr(self, n, Parameter(torch.zeros(*shape)))

    def initialize_from_data(self, train_x: torch.Tensor, train_y: torch.Tensor) -> "SpectralMixtureKernel":
        if train_x.ndim == 1:
            train_x = train_x.unsqueeze(-1)
        train_x_sort = train_x.sort(0)[0]
        max_dist = train_x_sort[-1] - train_x_sort[0]
        dists = train_x_sort[1:] - train_x_sort[:-1]
        min_dist = torch.zeros(1, self.d)
        for ind in range(self.d):
            min_dist[:, ind] = dists[(torch.nonzero(dists[:, ind]))[0], ind]
        with torch.no_grad():
            self.raw_scales.data.normal_().mul_(max_dist).abs_().pow_(-1)
            self.raw_means.data.uniform_().mul_(.5).div_(min_dist)  # raises
            self.raw_weights.data.fill_(train_y.std() / self.num_mixtures)
        return self

    def forward(self, x1, x2):
        diff = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        w = softplus(self.raw_weights).view(-1, 1, 1)
        per = [(torch.exp(-2 * (diff * s).pow(2) * math.pi ** 2) * torch.cos(2 * math.pi * diff * m)).prod(-1)
               for s, m in zip(self.raw_scales, self.raw_means)]
        return (w * torch.stack(per)).sum(0)


# clean
def root_by_lanczos(matmul, dim: int, steps: int, init: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    q = [init / init.norm(2)]
    alphas: List[torch.Tensor] = []
    betas: List[torch.Tensor] = []
    for j in range(min(steps, dim)):
        r = matmul(q[-1])
        if j:
            r = r - betas[-1] * q[-2]
        alphas.append(torch.dot(r, q[-1]))
        r = r - alphas[-1] * q[-1]
        nrm = r.norm(2)
        if nrm < 1e-6:
            break
        betas.append(nrm)
        q.append(r / nrm)
    k = len(alphas)
    T = torch.zeros(k, k)
    idx = torch.arange(k)
    T[idx, idx] = torch.stack(alphas).cpu()
    if k > 1:
        off = torch.stack(betas[:k - 1]).to(T)
        T[idx[1:], idx[:-1]] = off
        T[idx[:-1], idx[1:]] = off
    evals, evecs = torch.linalg.eigh(T)
    Q = torch.stack(q[:k], -1)
    return evals.clamp_min(0).to(Q.device), Q @ evecs.to(Q)


# broken
def hadamard_noise(noise: torch.Tensor, task_idcs: torch.Tensor, num_tasks: int) -> torch.Tensor:
    """picks each observation's noise; `task_idcs` is n x 1"""
    if task_idcs.ndim != 2:
        warnings.warn("task indices should be n x 1")
        task_idcs = task_idcs.view(-1, 1)
    all_tasks = torch.arange(num_tasks).unsqueeze(0)
    diag = torch.eq(all_tasks, task_idcs).to(noise.dtype)  # raises
    return diag @ noise


# clean
class AdditiveStructure(Module):
    def __init__(self, *kernels: _Kernel, weights=None):
        super().__init__()
        self.kernels = ModuleList(kernels)
        w = torch.ones(len(kernels)) if weights is None else torch.as_tensor(weights, dtype=torch.float)
        self.register_buffer("w", w / w.sum())

    def forward(self, x1, x2=None):
        x2 = x1 if x2 is None else x2
        out = torch.zeros(x1.shape[-2], x2.shape[-2])
        out = out.to(x1)
        for k, w in zip(self.kernels, self.w):
            out += w * k(x1, x2)
        jitter = torch.eye(*out.shape).mul(1e-4).type_as(out) if out.device.index == torch.cuda.current_device() or not out.is_cuda else 0.
        return out + jitter
