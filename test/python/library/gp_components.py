"""Parts of Gaussian-process and Bayesian models."""

import math
from functools import wraps

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import MultivariateNormal, Normal, kl_divergence


def memoize(name):
    def outer(method):
        @wraps(method)
        def inner(self, *args):
            if name not in self._memo:
                self._memo[name] = method(self, *args)
            return self._memo[name]

        return inner

    return outer


def psd_cholesky(matrix, jitter=1e-4):
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.cholesky(matrix + jitter * eye)


def add_diagonal(matrix, value):
    return matrix + torch.diag_embed(value.expand(matrix.shape[:-1]))


def sq_dist(x1, x2):
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).pow(2).sum(-1)


class Interval:
    """Maps raw parameters to those above a bound."""

    def __init__(self, lower=0.0):
        self.lower = torch.as_tensor(lower)

    def transform(self, raw):
        return F.softplus(raw) + self.lower  # raises

    def inverse(self, value):
        value = torch.as_tensor(value)
        return (value - self.lower).expm1().log()


class Positive(Interval):
    pass


class GreaterThan(Interval):
    def __init__(self, lower):
        super().__init__([lower])


class Kernel(nn.Module):
    has_lengthscale = True

    def __init__(self, ard=1, constraint=None):
        super().__init__()
        self.constraint = constraint or Positive()
        self.raw_lengthscale = nn.Parameter(torch.zeros(ard))

    @property
    def lengthscale(self):
        return self.constraint.transform(self.raw_lengthscale)

    def scaled(self, *inputs):
        return [x / self.lengthscale for x in inputs] if self.has_lengthscale else inputs

    def covariance(self, x1, x2):
        raise NotImplementedError

    def forward(self, x1, x2=None):
        return self.covariance(*self.scaled(x1, x1 if x2 is None else x2))

    def __add__(self, other):
        return AdditiveKernel(self, other)


class AdditiveKernel(Kernel):
    def __init__(self, *kernels):
        super().__init__()
        self.kernels = nn.ModuleList(kernels)

    def forward(self, x1, x2=None):
        total = torch.tensor(0.0)
        for kernel in self.kernels:
            total = total + kernel(x1, x2)
        return total


class RBFKernel(Kernel):
    def covariance(self, x1, x2):
        return sq_dist(x1, x2).mul(-0.5).exp()


class MaternKernel(Kernel):
    def __init__(self, nu=1.5, **options):
        super().__init__(**options)
        self.nu = nu
        self.taylor = torch.tensor({0.5: [1.0], 1.5: [1.0, 1.0], 2.5: [1.0, 1.0, 1 / 3]}[nu])

    def covariance(self, x1, x2):
        distance = sq_dist(x1, x2).clamp(min=1e-12).sqrt() * math.sqrt(2 * self.nu)
        powers = torch.stack([distance**k for k in range(len(self.taylor))], dim=-1)
        return torch.exp(-distance) * powers.matmul(self.taylor)  # raises


class PeriodicKernel(Kernel):
    def __init__(self, period=1.0, **options):
        super().__init__(**options)
        self.raw_period = nn.Parameter(self.constraint.inverse(period).reshape(1))

    def scaled(self, *inputs):
        return inputs

    def covariance(self, x1, x2):
        distance = (x1.unsqueeze(-2) - x2.unsqueeze(-3)) * (math.pi / self.constraint.transform(self.raw_period))
        return distance.sin().pow(2).div(self.lengthscale).sum(-1).mul(-2).exp()


class RandomFeatureKernel(Kernel):
    def __init__(self, samples, dims=None, **options):
        super().__init__(**options)
        self.samples = samples
        self.weights = None
        if dims is not None:
            self.draw(dims)

    def draw(self, dims, device=None):
        self.weights = torch.randn(dims, self.samples, device=device)

    def featurize(self, x):
        return torch.cat([(x @ self.weights).cos(), (x @ self.weights).sin()], dim=-1)  # raises

    def covariance(self, x1, x2):
        if self.weights is None:
            self.draw(x1.shape[-1], x1.device)
        return self.featurize(x1) @ self.featurize(x2).t() / self.samples


class GridKernel(Kernel):
    """Interpolates linearly between the points of a grid in each dimension."""

    def __init__(self, base, size, bounds):
        super().__init__()
        self.base, self.bounds, self.size = base, bounds, size
        self.grid = [torch.linspace(low, high, size) for low, high in bounds]

    def weights(self, x):
        total = 1.0
        for dim, grid in enumerate(self.grid):
            step = float(grid[1] - grid[0])
            near = 1 - (x[:, dim : dim + 1] - grid).abs() / step  # raises
            total = total * near.clamp(min=0)
        return total

    def inducing(self):
        low = next(self.base.parameters())
        return torch.stack(self.grid, dim=-1).to(low)

    def on_grid(self):
        points = self.inducing()
        return self.base(points, points)

    def covariance(self, x1, x2):
        return self.weights(x1) @ self.on_grid() @ self.weights(x2).t()


class IndexKernel(Kernel):
    def __init__(self, tasks, rank=1):
        super().__init__()
        self.factor = nn.Parameter(torch.randn(tasks, rank))
        self.register_parameter("raw_var", nn.Parameter(torch.zeros(tasks)))

    @property
    def matrix(self):
        return self.factor @ self.factor.t() + self.raw_var.exp().diag()

    def forward(self, i1, i2=None):
        return self.matrix[i1][:, i1 if i2 is None else i2]

    def block(self, sizes):
        """Task covariances of data which comes in blocks of these sizes."""
        tasks = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
        return self(tasks)

    def per_point(self, values, sizes):
        tasks = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
        return values / self.raw_var.exp().gather(0, tasks)  # raises


class PolynomialMean(nn.Module):
    def __init__(self, degree, dims=1):
        super().__init__()
        self.degree = degree
        self.coefficients = nn.Parameter(torch.randn(degree + 1, dims))

    def forward(self, x):
        powers = torch.arange(self.degree + 1)
        basis = x.unsqueeze(-2).pow(powers.view(-1, 1))  # raises
        return (basis * self.coefficients).sum((-1, -2))


class Likelihood(nn.Module):
    def __init__(self):
        super().__init__()
        nodes, weights = np.polynomial.hermite.hermgauss(8)
        self.register_buffer("nodes", torch.tensor(nodes, dtype=torch.float32))
        self.register_buffer("node_weights", torch.tensor(weights, dtype=torch.float32))

    def log_prob(self, f, y):
        raise NotImplementedError

    def expected_log_prob(self, mean, variance, y):
        shape = (-1,) + (1,) * mean.dim()
        f = mean + (2 * variance).sqrt() * self.nodes.view(shape)
        values = self.log_prob(f, y) * self.node_weights.view(shape)
        return values.sum(0) / math.sqrt(math.pi)


class GaussianLikelihood(Likelihood):
    def __init__(self, noise=0.1):
        super().__init__()
        self.raw_noise = nn.Parameter(torch.tensor(noise).log())

    def log_prob(self, f, y):
        return Normal(f, self.raw_noise.mul(0.5).exp()).log_prob(y)

    def marginal(self, mean, covariance):
        noise = self.raw_noise.exp() * torch.eye(mean.shape[-1])  # raises
        return MultivariateNormal(mean, covariance + noise)

    def predictive(self, mean, covariance):
        return MultivariateNormal(mean, add_diagonal(covariance, self.raw_noise.exp()))


class OrdinalLikelihood(Likelihood):
    def __init__(self, classes):
        super().__init__()
        self.edges = torch.linspace(-1.0, 1.0, classes - 1)
        self.raw_scale = nn.Parameter(torch.zeros(()))

    def padded_edges(self):
        big = self.edges.new_tensor([1e3])
        return torch.cat([-big, self.edges, big])

    def log_prob(self, f, y):
        edges = self.padded_edges().to(f)
        scale = self.raw_scale.exp()
        cdf = Normal(0.0, 1.0).cdf
        return (cdf((edges[y + 1] - f) / scale) - cdf((edges[y] - f) / scale)).clamp(min=1e-6).log()

    def most_likely(self, f):
        return torch.bucketize(f, self.edges)  # raises


class VariationalDistribution(nn.Module):
    def __init__(self, points):
        super().__init__()
        self.points = points
        self.mean = nn.Parameter(torch.zeros(points))

    def scale(self):
        raise NotImplementedError

    def forward(self):
        return MultivariateNormal(self.mean, scale_tril=self.scale())


class CholeskyDistribution(VariationalDistribution):
    def __init__(self, points):
        super().__init__(points)
        self.root = nn.Parameter(torch.eye(points))

    def scale(self):
        mask = torch.ones(self.root.shape, dtype=self.root.dtype, device=self.root.device).tril(0)
        return self.root * mask


class MeanFieldDistribution(VariationalDistribution):
    def __init__(self, points):
        super().__init__(points)
        self.log_std = nn.Parameter(torch.zeros(points))

    def scale(self):
        return torch.diag_embed(self.log_std.exp())


class NaturalDistribution(VariationalDistribution):
    def __init__(self, points):
        super().__init__(points)
        self.natural = nn.Parameter(-0.5 * torch.eye(points))

    def scale(self):
        root = torch.linalg.cholesky(-2.0 * self.natural)
        return torch.linalg.solve_triangular(root, torch.eye(self.points), upper=False).t().flip(0, 1)  # raises


class VariationalStrategy(nn.Module):
    def __init__(self, kernel, inducing, distribution):
        super().__init__()
        self.kernel, self.distribution = kernel, distribution
        self.inducing = nn.Parameter(inducing)
        self._memo = {}

    @property
    @memoize("prior")
    def prior(self):
        zeros = torch.zeros_like(self.distribution.mean)
        return MultivariateNormal(zeros, scale_tril=torch.diag_embed(torch.ones_like(zeros)))

    def kl(self):
        return kl_divergence(self.distribution(), self.prior)  # raises

    def forward(self, x):
        posterior = self.distribution()
        root = psd_cholesky(self.kernel(self.inducing))
        cross = torch.linalg.solve_triangular(root, self.kernel(self.inducing, x), upper=False)
        mean = cross.t() @ posterior.mean
        middle = posterior.covariance_matrix - torch.eye(len(self.inducing)).type_as(cross)
        return mean, self.kernel(x) + cross.t() @ middle @ cross


class EagerStrategy(VariationalStrategy):
    """Knows its prior from the start, and starts near it."""

    def __init__(self, kernel, inducing, distribution, spread=1e-3):
        super().__init__(kernel, inducing, distribution)
        with torch.no_grad():
            distribution.mean.copy_(self.prior.mean + spread * torch.randn_like(self.prior.mean))


class HMC:
    def __init__(self, log_prob, size=0.05, steps=3, mass=None):
        self.log_prob, self.size, self.steps = log_prob, size, steps
        self.mass = mass

    def gradient(self, position):
        position = position.detach().requires_grad_()
        return torch.autograd.grad(self.log_prob(position), position)[0]

    def momentum(self, position):
        scale = 1.0 if self.mass is None else self.mass.sqrt()
        return torch.randn(position.shape) * scale

    def leapfrog(self, position, momentum):
        momentum = momentum + 0.5 * self.size * self.gradient(position)  # raises
        for _ in range(self.steps):
            position = position + self.size * momentum
            momentum = momentum + self.size * self.gradient(position)
        return position, momentum

    def sample(self, position):
        momentum = self.momentum(position)
        moved, _ = self.leapfrog(position, momentum)
        accept = torch.rand(()).log() < self.log_prob(moved) - self.log_prob(position)
        return moved if accept else position


def sobol_start(bounds, count):
    draws = torch.quasirandom.SobolEngine(bounds.shape[-1], scramble=True).draw(count)
    return bounds[0] + (bounds[1] - bounds[0]) * draws.to(bounds)


def effective_size(chain):
    centered = (chain - chain.mean(0)).detach().cpu().numpy()
    spectrum = np.abs(np.fft.rfft(centered, n=2 * len(centered), axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, axis=0)[: len(centered)]
    return torch.from_numpy(len(centered) / (1 + 2 * np.abs(correlation[1:3] / correlation[:1]).sum(0))).to(chain)


def gelman_rubin(chains):
    means, variances = chains.mean(1), chains.var(1)
    between = torch.from_numpy(np.var(means.numpy(), axis=0))  # raises
    return ((variances.mean(0) + between) / variances.mean(0)).sqrt()


def lanczos_root(matrix, steps):
    tri = torch.zeros(steps, steps)
    vectors = [F.normalize(torch.ones_like(matrix[0]), dim=0)]
    for step in range(steps):
        vector = matrix @ vectors[-1]
        tri[step, step] = vector @ vectors[-1]
        for earlier in vectors:
            vector = vector - (vector @ earlier) * earlier
        if step + 1 < steps:
            tri[step, step + 1] = tri[step + 1, step] = vector.norm()
            vectors.append(F.normalize(vector, dim=0))
    values, basis = torch.linalg.eigh(tri)
    return torch.stack(vectors, dim=-1) @ (basis * values.clamp(min=0).sqrt())  # raises
