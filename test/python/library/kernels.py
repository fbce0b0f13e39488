"""Covariance functions and small pieces of Gaussian process inference."""
import math
from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import Module, Parameter, ModuleList


def sq_dist(x1, x2):
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).pow(2).sum(-1)


class Kernel(Module):
    def __init__(self, lengthscale=1.0, ard_num_dims=None):
        super().__init__()
        n = 1 if ard_num_dims is None else ard_num_dims
        self.raw_lengthscale = Parameter(torch.full((n,), math.log(math.expm1(lengthscale))))

    @property
    def lengthscale(self):
        return torch.nn.functional.softplus(self.raw_lengthscale)

    @abstractmethod
    def forward(self, x1, x2, diag=False):
        ...

    def __add__(self, other):
        return SumKernel(self, other)


class RBFKernel(Kernel):
    def forward(self, x1, x2, diag=False):
        if diag:
            return torch.ones(x1.shape[:-1], dtype=x1.dtype, device=x1.device)
        return sq_dist(x1 / self.lengthscale, x2 / self.lengthscale).div(-2).exp()


class RBFKernelGrad(RBFKernel):
    """covariance of values and first derivatives"""

    def forward(self, x1, x2, diag=False):
        n1, d = x1.shape[-2:]
        n2 = x2.shape[-2]
        K = torch.zeros(n1 * (d + 1), n2 * (d + 1))
        K_f = super().forward(x1, x2)
        diff = (x1[:, None] - x2[None]) / self.lengthscale ** 2
        K[:n1, :n2] = K_f
        for j in range(d):
            K[:n1, n2 * (j + 1): n2 * (j + 2)] = diff[..., j] * K_f
            K[n1 * (j + 1): n1 * (j + 2), :n2] = -diff[..., j] * K_f
        scale = self.lengthscale.mean() ** 2
        hess = torch.eye(d)[None, None] / scale - diff[..., None] * diff[..., None, :]  # raises
        K[n1:, n2:] = (hess * K_f[..., None, None]).permute(2, 0, 3, 1).reshape(n1 * d, n2 * d)
        return K


class LinearKernel(Kernel):
    def __init__(self, num_dims, **kw):
        super().__init__(**kw)
        self.register_parameter("variance", Parameter(torch.ones(1)))
        self.register_buffer("offset", torch.zeros(num_dims))

    def forward(self, x1, x2, diag=False):
        a, b = x1 - self.offset, x2 - self.offset
        if diag:
            return self.variance * (a * b).sum(-1)
        return self.variance * a @ b.transpose(-1, -2)


class PeriodicKernel(Kernel):
    def __init__(self, period=1.0, **kw):
        super().__init__(**kw)
        self.period = torch.tensor(period)

    def forward(self, x1, x2, diag=False):
        d = (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs().sum(-1)
        return torch.exp(-2 * torch.sin(math.pi * d / self.period).pow(2) / self.lengthscale)


class SpectralMixtureKernel(Kernel):
    def __init__(self, num_mixtures, dims):
        super().__init__()
        self.num_mixtures = num_mixtures
        self.weights = Parameter(torch.ones(num_mixtures) / num_mixtures)
        self.means = Parameter(torch.rand(num_mixtures, dims))
        self.scales = Parameter(torch.ones(num_mixtures, dims))

    def initialize_from_data(self, train_x: Tensor):
        sorted_x = train_x.sort(dim=0)[0]
        max_dist = sorted_x[-1] - sorted_x[0]
        min_dist = torch.zeros(1, train_x.size(-1))
        for i in range(train_x.size(-1)):
            dists = sorted_x[1:, i] - sorted_x[:-1, i]
            min_dist[0, i] = dists[dists > 0].min()
        self.scales.data = torch.randn_like(self.scales).mul_(max_dist).abs_().reciprocal_()
        self.means.data = torch.rand_like(self.means).mul_(0.5).div(min_dist)  # raises

    def forward(self, x1, x2, diag=False):
        diff = x1[:, None] - x2[None]
        res = 0
        for w, m, s in zip(self.weights, self.means, self.scales):
            res = res + w * torch.exp(-2 * math.pi ** 2 * (diff * s).pow(2).sum(-1)) * torch.cos(2 * math.pi * (diff * m).sum(-1))
        return res


class SumKernel(Kernel):
    def __init__(self, *kernels):
        super().__init__()
        self.kernels = ModuleList(kernels)

    def forward(self, x1, x2, diag=False):
        return sum(k(x1, x2, diag) for k in self.kernels)


class IndexKernel(Module):
    def __init__(self, num_tasks, rank=1):
        super().__init__()
        self.covar_factor = Parameter(torch.randn(num_tasks, rank))
        self.raw_var = Parameter(torch.zeros(num_tasks))

    def covar(self):
        return self.covar_factor @ self.covar_factor.t() + torch.diag(self.raw_var.exp())

    def forward(self, i1: Tensor, i2: Tensor):
        c = self.covar()
        return c[i1.view(-1, 1), i2.view(1, -1)]


class HadamardNoise(Module):
    def __init__(self, num_tasks):
        super().__init__()
        self.noise = Parameter(torch.ones(num_tasks))
        self.num_tasks = num_tasks

    def forward(self, task_idcs):
        onehot = (task_idcs.view(-1, 1) == torch.arange(self.num_tasks)).float()  # raises
        return torch.diag(onehot @ self.noise)


def psd_safe_cholesky(A, jitter=1e-4, max_tries=3):
    L, info = torch.linalg.cholesky_ex(A)
    if not torch.any(info):
        return L
    Aprime, prev = A.clone(), 0.0
    for i in range(max_tries):
        new = jitter * 10 ** i
        Aprime.diagonal(dim1=-2, dim2=-1).add_((new - prev) * (info > 0).unsqueeze(-1))
        prev = new
        L, info = torch.linalg.cholesky_ex(Aprime)
        if not torch.any(info):
            return L
    raise RuntimeError(f"not positive definite after jitter {new}")


def exact_marginal(K, y, noise):
    A = K + noise * torch.eye(K.shape[-1])  # raises
    L = psd_safe_cholesky(A)
    alpha = torch.cholesky_solve(y.unsqueeze(-1), L)
    return -0.5 * (y @ alpha).sum() - L.diagonal().log().sum() - 0.5 * len(y) * math.log(2 * math.pi)


def predictive(kernel, x, y, xs, noise=1e-2):
    K = kernel(x, x)
    K = K + noise * torch.eye(len(x), dtype=K.dtype).to(K.device)
    L = psd_safe_cholesky(K)
    ks = kernel(x, xs)
    v = torch.linalg.solve_triangular(L, ks, upper=False)
    mean = ks.t() @ torch.cholesky_solve(y[:, None], L)
    return mean.squeeze(-1), kernel(xs, xs, diag=True) - v.pow(2).sum(0)


def pivoted_cholesky(matrix, rank):
    n = matrix.size(-1)
    diag = matrix.diagonal().clone()
    perm = torch.arange(n, device=matrix.device)
    L = torch.zeros(rank, n, dtype=matrix.dtype, device=matrix.device)
    orders = torch.empty(rank, dtype=torch.long)
    for m in range(rank):
        j = m + diag[perm[m:]].argmax()
        perm[[m, int(j)]] = perm[[int(j), m]]
        p = perm[m]
        orders[m] = p
        L[m, p] = diag[p].clamp(min=1e-9).sqrt()
        if m < n - 1:
            rest = perm[m + 1:]
            row = matrix[p, rest]
            if m > 0:
                row = row - (L[:m, rest] * L[:m, p, None]).sum(0)
            L[m, rest] = row / L[m, p]
            diag[rest] = diag[rest] - L[m, rest] ** 2
    return L, orders


def lanczos_tridiag(matmul, init, steps):
    q_mat = [init / init.norm()]
    alphas, betas = torch.zeros(steps), torch.zeros(steps - 1)
    q, q_prev, beta = q_mat[0], torch.zeros_like(init), 0.0
    for k in range(steps):
        r = matmul(q) - beta * q_prev
        alphas[k] = q @ r
        r = r - alphas[k] * q
        if k < steps - 1:
            beta = r.norm()
            betas[k] = beta
            q_prev, q = q, r / beta
            q_mat.append(q)
    T = torch.diag(alphas) + torch.diag(betas, 1) + torch.diag(betas, -1)
    return torch.stack(q_mat, -1) @ T  # raises
