"""Gaussian processes, normalising flows, mixture density networks and samplers."""
import math
from abc import abstractmethod
from functools import reduce
from operator import add, mul
from typing import Callable, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Independent, MixtureSameFamily, MultivariateNormal, Normal, kl_divergence

KERNELS = {}


def _register(name):
    def wrap(cls):
        KERNELS[name] = cls
        return cls
    return wrap


class Kernel(nn.Module):
    def __init__(self, ard_dims: int = 1, active_dims: Optional[Tuple[int, ...]] = None):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(ard_dims))
        self.active_dims = None if active_dims is None else torch.tensor(active_dims)

    @property
    def lengthscale(self):
        return F.softplus(self.raw_lengthscale)

    def select(self, x):
        return x if self.active_dims is None else x.index_select(-1, self.active_dims)  # raises

    def distance(self, a, b):
        a, b = self.select(a) / self.lengthscale, self.select(b) / self.lengthscale  # raises
        return (a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2).sum(-1)

    @abstractmethod
    def forward(self, a, b):
        ...

    def __add__(self, other):
        return Composite(add, [self, other])

    def __mul__(self, other):
        return Composite(mul, [self, other])


class Composite(Kernel):
    def __init__(self, op: Callable, kernels: List[Kernel]):
        super().__init__()
        self.op, self.kernels = op, nn.ModuleList(kernels)

    def forward(self, a, b):
        return reduce(self.op, (k(a, b) for k in self.kernels))


@_register("rbf")
class RBF(Kernel):
    def forward(self, a, b):
        return (-0.5 * self.distance(a, b)).exp()


@_register("matern32")
class Matern32(Kernel):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.root = torch.tensor(3.0).sqrt()

    def forward(self, a, b):
        d = self.root * self.distance(a, b).clamp(min=1e-12).sqrt()
        return (1 + d) * torch.exp(-d)


@_register("scale")
class Scale(Kernel):
    def __init__(self, base: Kernel, variance=1.0):
        super().__init__()
        self.base, self.log_variance = base, nn.Parameter(torch.tensor(math.log(variance)))

    def forward(self, a, b):
        return self.log_variance.exp() * self.base(a, b)


class ExactGP(nn.Module):
    def __init__(self, train_x, train_y, kernel: Kernel, noise=0.1, buffers=True):
        super().__init__()
        self.kernel, self.log_noise = kernel, nn.Parameter(torch.tensor(math.log(noise)))
        if buffers:
            self.register_buffer("train_x", train_x)
            self.register_buffer("train_y", train_y)
        else:
            self.train_x, self.train_y = train_x, train_y

    def factor(self):
        k = self.kernel(self.train_x, self.train_x)
        return torch.linalg.cholesky(k + self.log_noise.exp() * torch.eye(len(k), device=k.device))

    def nll(self):
        chol = self.factor()
        alpha = torch.cholesky_solve(self.train_y.unsqueeze(-1), chol).squeeze(-1)
        return 0.5 * self.train_y @ alpha + chol.diagonal().log().sum() + 0.5 * len(chol) * math.log(2 * math.pi)

    def forward(self, x):
        cross = self.kernel(x, self.train_x)
        alpha = torch.cholesky_solve(self.train_y.unsqueeze(-1), self.factor())
        return (cross @ alpha).squeeze(-1)


class Coupling(nn.Module):
    def __init__(self, dim, parity):
        super().__init__()
        self.register_buffer("mask", (torch.arange(dim) % 2 == parity).float())
        self.net = nn.Sequential(nn.Linear(dim, 16), nn.Tanh(), nn.Linear(16, 2 * dim))

    def forward(self, x):
        shift, scale = self.net(x * self.mask).chunk(2, dim=-1)
        scale = torch.tanh(scale) * (1 - self.mask)
        return x * scale.exp() + shift * (1 - self.mask), scale.sum(-1)


class Permute(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.order = torch.randperm(dim)

    def forward(self, x):
        return x[:, self.order], 0.0


class Flow(nn.Module):
    def __init__(self, dim, layers, base=None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.register_buffer("loc", torch.zeros(dim))
        self._base = base

    @property
    def base(self):
        return self._base or Independent(Normal(self.loc, torch.ones_like(self.loc)), 1)

    def log_prob(self, x):
        total = 0.0
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return self.base.log_prob(x) + total  # raises


class MixtureDensityNet(nn.Module):
    def __init__(self, dim_in, k=3):
        super().__init__()
        self.k, self.net = k, nn.Sequential(nn.Linear(dim_in, 16), nn.ReLU(), nn.Linear(16, 3 * k))
        self.floor = torch.tensor(1e-3)

    def forward(self, x):
        logits, mean, raw = self.net(x).chunk(3, dim=-1)
        return MixtureSameFamily(Categorical(logits=logits), Normal(mean, F.softplus(raw) + self.floor))

    def sample_component(self, x):
        mixture = self(x)
        index = mixture.mixture_distribution.sample()
        chosen = torch.eye(self.k)[index]  # raises
        return (mixture.component_distribution.mean * chosen).sum(-1)


class MeanField(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mean, self.log_std = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))

    def posterior(self):
        return Normal(self.mean, self.log_std.exp())

    def elbo(self, log_joint, prior, samples=4):
        q = self.posterior()
        draws = q.rsample((samples,))
        return log_joint(draws).mean() - kl_divergence(q, prior).sum()  # raises


class HMC:
    def __init__(self, potential, step=0.1, leaps=3, inverse_mass=None):
        self.potential, self.step, self.leaps, self.accepted = potential, step, leaps, 0
        self.inverse_mass = torch.tensor(1.0) if inverse_mass is None else inverse_mass

    def grad(self, q):
        q = q.detach().requires_grad_()
        return torch.autograd.grad(self.potential(q), q)[0]

    def transition(self, q, shape=()):
        p = torch.randn_like(q)
        start = self.potential(q) + 0.5 * (self.inverse_mass * p * p).sum()
        new, momentum = q, p - 0.5 * self.step * self.grad(q)
        for leap in range(self.leaps):
            new = new + self.step * self.inverse_mass * momentum
            momentum = momentum - self.step * (1.0 if leap + 1 < self.leaps else 0.5) * self.grad(new)
        energy = self.potential(new) + 0.5 * (self.inverse_mass * momentum * momentum).sum()
        if torch.rand(shape).log() < start - energy:  # raises
            self.accepted += 1
            return new
        return q


def _expectation(fn, mean, std, degree=5, to_input=True):
    nodes, weights = (torch.from_numpy(a).float() for a in np.polynomial.hermite.hermgauss(degree))
    if to_input:
        nodes, weights = nodes.to(mean), weights.to(mean)
    points = mean + math.sqrt(2) * std * nodes.view(-1, *[1] * mean.dim())  # raises
    return torch.tensordot(weights, fn(points), dims=1) / math.sqrt(math.pi)


def _regression(device="cuda", n=8, d=2):
    x = torch.rand(n, d, device=device)
    return x, (x.sum(-1) * 3).sin()


def case_gp_fit_predict():
    x, y = _regression("cpu")
    model = ExactGP(x, y, Scale(KERNELS["rbf"]() + KERNELS["matern32"](2), 2.0)).cuda()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model.nll()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        model(torch.rand(3, 2, device=model.log_noise.device)).cpu().numpy()


def case_gp_serve_fitted():
    x, y = _regression("cpu")
    model = ExactGP(x, y, RBF(2) * Matern32(2), buffers=False)
    model.nll().backward()
    with torch.no_grad():
        model.cuda()(torch.rand(3, 2, device="cuda"))


def case_gp_active_dims():
    x, y = _regression()
    ExactGP(x, y, RBF(2)).cuda().nll()
    ExactGP(x, y, RBF(1, active_dims=(1,))).cuda().nll()


def case_flow_density():
    flow = Flow(4, [Coupling(4, 0), Permute(4), Coupling(4, 1)]).cuda()
    (-flow.log_prob(torch.randn(6, 4, device="cuda")).mean()).backward()


def case_flow_full_covariance():
    base = MultivariateNormal(torch.zeros(4), covariance_matrix=torch.eye(4) * 2)
    Flow(4, [Coupling(4, 0)], base).log_prob(torch.randn(6, 4))
    Flow(4, [Coupling(4, 0)], base).cuda().log_prob(torch.randn(6, 4, device="cuda"))


def case_mixture_density():
    net, (x, y) = MixtureDensityNet(2).cuda(), _regression()
    loss = -net(x).log_prob(y).mean()
    loss.backward()
    net(x).sample((2,)).cpu().numpy()


def case_mixture_component():
    net, (x, _) = MixtureDensityNet(2).cuda(), _regression()
    net.sample_component(x)


def case_variational_scalar_prior():
    q = MeanField(3).cuda()
    (-q.elbo(lambda w: -w.pow(2).sum(-1), Normal(0.0, 2.0))).backward()


def case_variational_vector_prior():
    q, prior = MeanField(3).cuda(), Normal(torch.zeros(3), 2 * torch.ones(3))
    q.elbo(lambda w: -w.pow(2).sum(-1), prior)


def case_hmc_scalar_uniform():
    hmc, q = HMC(lambda w: 0.5 * w.pow(2).sum()), torch.zeros(3, device="cuda")
    for _ in range(3):
        q = hmc.transition(q)


def case_hmc_chain_uniform():
    HMC(lambda w: 0.5 * w.pow(2).sum()).transition(torch.zeros(3, device="cuda"), shape=(1,))


def case_quadrature():
    mean, std = torch.randn(4, device="cuda"), torch.rand(4, device="cuda")
    _expectation(torch.sigmoid, mean, std)
    _expectation(torch.sigmoid, mean, std, to_input=False)
