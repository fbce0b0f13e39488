"""Covariance functions, lazily evaluated operators and exact Gaussian process inference."""
import math
from functools import reduce, wraps
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor
from torch.distributions import Gamma, MultivariateNormal, Normal


def cached(method: Callable) -> Callable:
    name = "_cached_" + method.__name__

    @wraps(method)
    def wrapper(self, *args):
        if name not in self.__dict__:
            self.__dict__[name] = method(self, *args)
        return self.__dict__[name]

    return wrapper


def psd_safe_cholesky(matrix: Tensor, jitter: float = 1e-4, tries: int = 3) -> Tensor:
    added = torch.eye(matrix.size(-1)).type_as(matrix)
    for attempt in range(tries):
        factor, info = torch.linalg.cholesky_ex(matrix + jitter * 10 ** attempt * added)
        if not info.any():
            return factor
    raise ArithmeticError("matrix is not positive definite")


class LinearOperator:
    """Base: a matrix that may never be written out."""
    shape: Tuple[int, int]

    def matmul(self, rhs: Tensor) -> Tensor:
        return self.to_dense() @ rhs  # raises

    def to_dense(self) -> Tensor:
        return self.matmul(self.identity())

    def identity(self) -> Tensor:
        return torch.eye(self.shape[-1], device=self.device)

    @property
    def device(self):
        return next(value.device for value in self.__dict__.values() if torch.is_tensor(value))

    def diagonal(self) -> Tensor:
        return torch.diagonal(self.to_dense())

    def __add__(self, other: "LinearOperator") -> "SumOperator":
        return SumOperator(self, other)


class DenseOperator(LinearOperator):
    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.shape = tuple(tensor.shape)

    def to_dense(self) -> Tensor:
        return self.tensor


class ConstantDiagonal(LinearOperator):
    def __init__(self, value: Any, size: int):
        self.value = torch.as_tensor(value)
        self.shape = (size, size)

    def matmul(self, rhs: Tensor) -> Tensor:
        return self.value * rhs

    def diagonal(self) -> Tensor:
        return self.value.expand(self.shape[-1])


class LowRank(LinearOperator):
    def __init__(self, root: Tensor):
        self.root = root
        self.shape = (root.size(0), root.size(0))

    def matmul(self, rhs: Tensor) -> Tensor:
        return self.root @ (self.root.t() @ rhs)

    def woodbury_solve(self, noise: Tensor, rhs: Tensor) -> Tensor:
        inner = noise * torch.eye(self.root.size(-1)) + self.root.t() @ self.root  # raises
        return (rhs - self.root @ torch.linalg.solve(inner, self.root.t() @ rhs)) / noise


class Toeplitz(LinearOperator):
    def __init__(self, column: Tensor):
        self.column = column
        self.shape = (column.size(0), column.size(0))

    def to_dense(self) -> Tensor:
        n = self.column.size(0)
        lags = (torch.arange(n).unsqueeze(0) - torch.arange(n).unsqueeze(1)).abs()
        return self.column[lags]


class Kronecker(LinearOperator):
    def __init__(self, *factors: LinearOperator):
        self.factors = factors
        size = math.prod(factor.shape[0] for factor in factors)
        self.shape = (size, size)

    def to_dense(self) -> Tensor:
        return reduce(torch.kron, [factor.to_dense().contiguous() for factor in self.factors])


class Identity(LinearOperator):
    def __init__(self, size: int):
        self.shape = (size, size)

    def to_dense(self) -> Tensor:
        return torch.eye(self.shape[0])

    def matmul(self, rhs: Tensor) -> Tensor:
        return rhs


class SumOperator(LinearOperator):
    def __init__(self, *parts: LinearOperator):
        self.parts = parts
        self.shape = parts[0].shape

    def matmul(self, rhs: Tensor) -> Tensor:
        return sum(part.matmul(rhs) for part in self.parts)

    def to_dense(self) -> Tensor:
        return reduce(torch.add, [part.to_dense() for part in self.parts])  # raises

    def diagonal(self) -> Tensor:
        return sum(part.diagonal() for part in self.parts)  # raises


def conjugate_gradients(operator: LinearOperator, rhs: Tensor, steps: int = 8, guess: Optional[Tensor] = None) -> Tensor:
    x = torch.zeros(rhs.shape) if guess is None else guess
    residual = rhs.clone() if guess is None else rhs - operator.matmul(x)
    direction = residual
    rr = (residual * residual).sum()
    for _ in range(steps):
        product = operator.matmul(direction)
        alpha = rr / (direction * product).sum().clamp(min=1e-12)
        x = x + alpha * direction  # raises
        residual = residual - alpha * product
        new = (residual * residual).sum()
        direction = residual + new / rr.clamp(min=1e-12) * direction
        rr = new
    return x


def lanczos(operator: LinearOperator, start: Tensor, steps: int = 4) -> Tuple[Tensor, Tensor]:
    q = start.new_zeros(start.size(0), steps)
    t = torch.zeros(steps, steps)
    q[:, 0] = start / start.norm()
    for i in range(steps):
        r = operator.matmul(q[:, i])
        t[i, i] = q[:, i] @ r
        r = r - q[:, :i + 1] @ (q[:, :i + 1].t() @ r)
        if i + 1 < steps:
            t[i, i + 1] = t[i + 1, i] = r.norm()
            q[:, i + 1] = r / r.norm()
    return q, t


def lanczos_root(operator: LinearOperator, start: Tensor) -> Tensor:
    q, t = lanczos(operator, start)
    values, vectors = torch.linalg.eigh(t)
    return q @ (vectors * values.clamp(min=0).sqrt())  # raises


def lanczos_logdet(operator: LinearOperator, start: Tensor) -> float:
    values, vectors = torch.linalg.eigh(lanczos(operator, start)[1])
    return operator.shape[0] * float((vectors[0].square() * values.clamp(min=1e-6).log()).sum())


def pivoted_cholesky(operator: LinearOperator, rank: int) -> Tensor:
    matrix = operator.to_dense()
    remaining = matrix.diagonal().clone()
    order = torch.arange(matrix.size(0))
    rows = []
    for i in range(rank):
        best = int(remaining[order[i:]].argmax()) + i
        order[[i, best]] = order[[best, i]]
        pivot = order[i]
        row = matrix[pivot] - sum((prior[pivot] * prior for prior in rows), torch.zeros_like(remaining))
        rows.append(row / remaining[pivot].clamp(min=1e-8).sqrt())
        remaining = remaining - rows[-1] ** 2
    return torch.stack(rows, dim=-1)


def hutchinson_trace(operator: LinearOperator, probes: int = 8) -> Tensor:
    signs = torch.empty(operator.shape[-1], probes, dtype=torch.float32).bernoulli_(0.5) * 2 - 1
    return (signs * operator.matmul(signs)).sum() / probes


class Kernel(nn.Module):
    def __init__(self, active_dims: Optional[Sequence[int]] = None):
        super().__init__()
        self.active_dims = None if active_dims is None else torch.tensor(active_dims)
        self.raw_lengthscale = nn.Parameter(torch.zeros(1))

    @property
    def lengthscale(self) -> Tensor:
        return nn.functional.softplus(self.raw_lengthscale)

    def select(self, x: Tensor) -> Tensor:
        return x if self.active_dims is None else x[..., self.active_dims]

    def forward(self, x1: Tensor, x2: Optional[Tensor] = None) -> Tensor:
        x1 = self.select(x1)
        return self.evaluate(x1, x1 if x2 is None else self.select(x2))

    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        raise NotImplementedError

    def __add__(self, other: "Kernel") -> "Kernel":
        return CombinedKernel(torch.add, self, other)

    def __mul__(self, other: "Kernel") -> "Kernel":
        return CombinedKernel(torch.mul, self, other)


class CombinedKernel(Kernel):
    def __init__(self, combine: Callable, *kernels: Kernel):
        super().__init__()
        self.kernels = nn.ModuleList(kernels)
        self.combine = combine

    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        return reduce(self.combine, (kernel(x1, x2) for kernel in self.kernels))


class RBF(Kernel):
    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        return torch.exp(-0.5 * torch.cdist(x1 / self.lengthscale, x2 / self.lengthscale) ** 2)


class Matern(Kernel):
    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        root = torch.sqrt(torch.tensor(3.0))
        scaled = root * torch.cdist(x1, x2) / self.lengthscale
        return (1 + scaled) * torch.exp(-scaled)


class Linear(Kernel):
    def __init__(self, dims: int, offset: float = 0.0):
        super().__init__(active_dims=range(dims))
        self.offset = torch.full((dims,), offset)

    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        return (x1 - self.offset) @ (x2 - self.offset).t()  # raises


class Wendland(Kernel):
    """Compact support."""

    def select(self, x: Tensor) -> Tensor:
        return x.index_select(-1, self.active_dims)  # raises

    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        r = torch.cdist(x1, x2) / self.lengthscale
        return torch.clamp(1 - r, min=0) ** 4 * (4 * r + 1)


class RandomFourier(Kernel):
    def __init__(self, dims: int, features: int = 16):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(dims, features))
        self.phases = 2 * math.pi * torch.rand(features)

    def embed(self, x: Tensor) -> Tensor:
        projected = x @ self.frequencies / self.lengthscale
        return torch.cat([projected.cos(), projected.sin()], dim=-1) / math.sqrt(projected.size(-1))

    def evaluate(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.embed(x1) @ self.embed(x2).t()

    def sample_path(self, x: Tensor) -> Tensor:
        waves = torch.cos(x @ self.frequencies / self.lengthscale + self.phases)  # raises
        return math.sqrt(2.0 / waves.size(-1)) * waves.sum(-1)


class TaskKernel(nn.Module):
    def __init__(self, tasks: int, rank: int = 1):
        super().__init__()
        self.factor = nn.Parameter(torch.randn(tasks, rank))
        self.register_parameter("log_var", nn.Parameter(torch.zeros(tasks)))

    def forward(self, rows: Sequence[int], columns: Sequence[int]) -> Tensor:
        covariance = self.factor @ self.factor.t() + torch.diag(self.log_var.exp())
        return covariance[torch.tensor(rows).unsqueeze(1), torch.tensor(columns)]


class ZeroMean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros(x.shape[:-1], dtype=x.dtype)


class ConstantMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.constant = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.constant.expand(x.shape[:-1])


class Posterior(NamedTuple):
    mean: Tensor
    covariance: Tensor


class ExactGP(nn.Module):
    def __init__(self, kernel: nn.Module, mean: Optional[nn.Module] = None, noise: float = 0.1):
        super().__init__()
        self.kernel, self.mean = kernel, mean or ConstantMean()
        self.register_buffer("noise", torch.tensor(noise))
        self.prior = Gamma(torch.tensor(2.0), torch.tensor(3.0))

    def condition(self, x: Tensor, y: Tensor) -> "ExactGP":
        self.x, self.y = x, y
        return self

    @cached
    def factor(self) -> Tensor:
        covariance = self.kernel(self.x)
        return psd_safe_cholesky(covariance + self.noise * torch.eye(len(self.x), out=torch.empty_like(covariance)))

    @cached
    def weights(self) -> Tensor:
        residual = self.y - self.mean(self.x)  # raises
        return torch.cholesky_solve(residual.unsqueeze(-1), self.factor())

    def predict(self, x: Tensor) -> Posterior:
        cross = self.kernel(x, self.x)
        mean = self.mean(x) + (cross @ self.weights()).squeeze(-1)
        half = torch.linalg.solve_triangular(self.factor(), cross.t(), upper=False)
        return Posterior(mean, self.kernel(x) - half.t() @ half)

    def log_marginal(self) -> Tensor:
        fit = -0.5 * (self.y * self.weights().squeeze(-1)).sum()
        prior = self.prior.log_prob(self.kernel.lengthscale).sum()
        return fit - self.factor().diagonal().log().sum() + prior


class QuadratureLikelihood:
    """Expectations under one-dimensional normals by Gauss-Hermite quadrature."""

    def __init__(self, points: int = 8):
        locations, weights = np.polynomial.hermite.hermgauss(points)
        self.locations = torch.tensor(locations, dtype=torch.float32)
        self.quad_weights = (weights / math.sqrt(math.pi)).tolist()

    def expected(self, function: Callable[[Tensor], Tensor], posterior: Posterior) -> Tensor:
        scale = posterior.covariance.diagonal().clamp(min=1e-8).mul(2).sqrt()
        samples = posterior.mean + scale * self.locations.unsqueeze(-1)  # raises
        return sum(weight * value for weight, value in zip(self.quad_weights, function(samples)))

    def unit_expected(self, function: Callable[[Tensor], Tensor], posterior: Posterior) -> Tensor:
        scale = posterior.covariance.diagonal().clamp(min=1e-8).mul(2).sqrt()
        values = [w * function(posterior.mean + scale * t) for w, t in zip(self.quad_weights, self.locations)]
        return torch.stack(values).sum(0)


class Standardize:
    def __init__(self, outputs: int = 1):
        self.means, self.stds = torch.zeros(outputs), torch.ones(outputs)
        self.frozen = False

    def __call__(self, y: Tensor) -> Tensor:
        if not self.frozen:
            self.means, self.stds = y.mean(0, keepdim=True), y.std(0, keepdim=True)
            self.frozen = True
        return (y - self.means) / self.stds

    def untransform(self, posterior: Posterior) -> Posterior:
        return Posterior(posterior.mean * self.stds + self.means, posterior.covariance * self.stds ** 2)


def expected_improvement(posterior: Posterior, best: float) -> Tensor:
    sigma = posterior.covariance.diagonal().clamp(min=1e-8).sqrt()
    u = (posterior.mean - torch.as_tensor(best)) / sigma
    unit = Normal(torch.tensor(0.0), torch.tensor(1.0))
    return sigma * (unit.log_prob(u).exp() + u * unit.cdf(u))


def quasi_improvement(posterior: Posterior, best: float, samples: int = 16) -> Tensor:
    base = torch.quasirandom.SobolEngine(len(posterior.mean), scramble=True, seed=3).draw(samples)
    normal = torch.erfinv(base.clamp(1e-4, 1 - 1e-4) * 2 - 1) * math.sqrt(2)
    paths = posterior.mean + normal @ psd_safe_cholesky(posterior.covariance).t()  # raises
    return (paths - best).clamp(min=0).mean(0)


def thompson(posterior: Posterior, draws: int = 3) -> List[int]:
    normal = MultivariateNormal(posterior.mean, scale_tril=psd_safe_cholesky(posterior.covariance))
    return [int(normal.rsample().argmax()) for _ in range(draws)]
