"""Distributions, flows and samplers."""
import math
from numbers import Number

import torch
from torch import nn
from torch.distributions import Distribution, MultivariateNormal, Normal, constraints
import torch.nn.functional as F


class VonMises1D(Distribution):
    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = torch.broadcast_tensors(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @torch.no_grad()
    def sample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        u = torch.rand(shape, device=self.loc.device, dtype=self.loc.dtype)
        return (self.loc + (u - 0.5) * math.pi / self.concentration + math.pi) % (2 * math.pi) - math.pi

    def log_prob(self, value):
        norm = math.log(2 * math.pi) + torch.special.i0e(self.concentration).log() + self.concentration
        return self.concentration * torch.cos(value - self.loc) - norm


class TruncatedNormal(Distribution):
    def __init__(self, loc, scale, low, high):
        self.loc, self.scale = loc, scale
        self.low = torch.tensor(low) if isinstance(low, Number) else low
        self.high = torch.tensor(high) if isinstance(high, Number) else high
        super().__init__(loc.shape, validate_args=False)

    def _cdf(self, x):
        return 0.5 * (1 + torch.erf((x - self.loc) / (self.scale * math.sqrt(2))))

    def rsample(self, sample_shape=torch.Size()):
        a, b = self._cdf(self.low), self._cdf(self.high)
        p = torch.empty(self._extended_shape(sample_shape), device=a.device).uniform_(0.01, 0.99)
        p = a + p * (b - a)
        return self.loc + self.scale * math.sqrt(2) * torch.erfinv(2 * p - 1)


class MixtureOfGaussians(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(k, d))
        self.log_sigma = nn.Parameter(torch.zeros(k, d))
        self.logits = nn.Parameter(torch.zeros(k))

    def log_prob(self, x):
        comp = Normal(self.mu, self.log_sigma.exp()).log_prob(x[:, None]).sum(-1)
        return torch.logsumexp(comp + self.logits.log_softmax(0), dim=1)

    def sample(self, n):
        k = torch.multinomial(self.logits.softmax(0), n, replacement=True)
        eps = torch.randn(n, self.mu.shape[1])
        return self.mu[k] + self.log_sigma[k].exp() * eps  # raises


class RealNVP(nn.Module):
    def __init__(self, dim, layers=2):
        super().__init__()
        self.dim = dim
        self.prior = MultivariateNormal(torch.zeros(dim), torch.eye(dim))
        mask = torch.arange(dim) % 2
        self.register_buffer("masks", torch.stack([mask if i % 2 else 1 - mask for i in range(layers)]).float())
        self.nets = nn.ModuleList(nn.Linear(dim, 2 * dim) for _ in range(layers))

    def forward(self, x):
        log_det = x.new_zeros(x.shape[0])
        for mask, net in zip(self.masks, self.nets):
            s, t = net(x * mask).chunk(2, -1)
            s = s.tanh() * (1 - mask)
            x = x * mask + (1 - mask) * (x * s.exp() + t)
            log_det = log_det + s.sum(1)
        return x, log_det

    def log_prob(self, x):
        z, log_det = self(x)
        return self.prior.log_prob(z) + log_det  # raises


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc, self.scale = nn.Parameter(torch.zeros(1, dim)), nn.Parameter(torch.ones(1, dim))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def forward(self, x):
        if self.training and self.initialized.item() == 0:
            with torch.no_grad():
                self.loc.data.copy_(-x.mean(0, keepdim=True))
                self.scale.data.copy_(1 / (x.std(0, keepdim=True) + 1e-6))
                self.initialized.fill_(1)
        return self.scale * (x + self.loc), self.scale.abs().log().sum()


def gumbel_softmax(logits, tau=1.0, hard=False):
    u = torch.rand(logits.shape)
    g = -torch.log(-torch.log(u + 1e-20) + 1e-20)
    y = F.softmax((logits + g) / tau, dim=-1)  # raises
    if hard:
        idx = y.argmax(-1, keepdim=True)
        y = torch.zeros_like(y).scatter_(-1, idx, 1.0) - y.detach() + y
    return y


def gumbel_topk(logits, k):
    g = -torch.empty_like(logits).exponential_().log()
    return (logits + g).topk(k, dim=-1).indices


def langevin(energy, x, steps=3, step_size=0.1):
    x = x.detach().requires_grad_()
    for _ in range(steps):
        grad, = torch.autograd.grad(energy(x).sum(), x)
        noise = torch.normal(torch.zeros(x.shape), math.sqrt(2 * step_size))
        x = (x - step_size * grad + noise).detach().requires_grad_()  # raises
    return x.detach()


def metropolis(log_prob, x, steps=3, scale=0.2):
    cur, accepted = log_prob(x), 0
    for _ in range(steps):
        prop = x + scale * torch.randn_like(x)
        new = log_prob(prop)
        accept = torch.rand(x.shape[0], device=x.device).log() < new - cur
        x = torch.where(accept[:, None], prop, x)
        cur = torch.where(accept, new, cur)
        accepted += accept.sum().item()
    return x, accepted / (steps * len(x))


def latin_hypercube(low, high, n):
    d = low.numel()
    u = torch.stack([torch.randperm(n) for _ in range(d)], 1).float()
    u = (u + torch.rand(n, d)) / n
    return low + (high - low) * u  # raises


def systematic_resample(weights):
    n = weights.numel()
    positions = (torch.arange(n, device=weights.device) + torch.rand(1, device=weights.device)) / n
    return torch.searchsorted(weights.cumsum(0), positions).clamp(max=n - 1)


def stratified_resample(weights):
    n = weights.numel()
    positions = (torch.arange(n) + torch.rand(n)) / n
    cum = weights.cumsum(0)
    return torch.searchsorted(cum, positions).clamp(max=n - 1)  # raises


def kl_std_normal(mu, logvar):
    prior = Normal(torch.zeros(1), torch.ones(1))
    return torch.distributions.kl_divergence(Normal(mu, (0.5 * logvar).exp()), prior).sum(-1)  # raises


def kl_closed(mu, logvar, free_bits=0.1):
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp())
    return torch.max(kl, torch.tensor(free_bits)).sum(-1)
