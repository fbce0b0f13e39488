"""Generative models: noise schedules, solvers, flows, variational encoders and vector quantizers."""
import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Independent, Normal, kl_divergence


@dataclass
class ScheduleConfig:
    steps: int = 20
    kind: str = "linear"
    options: Dict[str, float] = field(default_factory=dict)


def linear_betas(steps, start=1e-4, end=0.02):
    return np.linspace(start, end, steps, dtype=np.float64)


def cosine_betas(steps, offset=0.008):
    t = np.arange(steps + 1) / steps
    bar = np.cos((t + offset) / (1 + offset) * math.pi / 2) ** 2
    return np.clip(1 - bar[1:] / bar[:-1], 0, 0.999)


SCHEDULES: Dict[str, Callable] = {"linear": linear_betas, "cosine": cosine_betas}


def extract(table, t, shape):
    """table[t] with as many dimensions as the shape has."""
    value = table.gather(0, t)
    return value.reshape(-1, *((1,) * (len(shape) - 1)))


def extract_numpy(array, t, shape):
    value = torch.from_numpy(array).to(device=t.device)[t].float()
    while value.dim() < len(shape):
        value = value[..., None]
    return value.expand(shape)


class Schedule(nn.Module):
    def __init__(self, config: ScheduleConfig):
        super().__init__()
        self.config = config
        betas = SCHEDULES[config.kind](config.steps, **config.options)
        alphas = 1.0 - betas
        bar = np.cumprod(alphas)
        previous = np.append(1.0, bar[:-1])
        self.posterior_variance = betas * (1 - previous) / (1 - bar)
        self._buffers_from(betas=betas, alphas_bar=bar, sqrt_bar=np.sqrt(bar), sqrt_one_minus=np.sqrt(1 - bar))
        self.snr = torch.as_tensor(bar / (1 - bar), dtype=torch.float32)
        self.coef = {"x0": self._as_tensor(betas * np.sqrt(previous) / (1 - bar)),
                     "xt": self._as_tensor((1 - previous) * np.sqrt(alphas) / (1 - bar))}

    @staticmethod
    def _as_tensor(array):
        return torch.from_numpy(np.asarray(array)).float()

    def _buffers_from(self, **arrays):
        for name, array in arrays.items():
            self.register_buffer(name, self._as_tensor(array), persistent=False)

    def __len__(self):
        return self.config.steps

    def q_sample(self, x0, t, noise=None):
        noise = torch.randn_like(x0) if noise is None else noise
        return extract(self.sqrt_bar, t, x0.shape) * x0 + extract(self.sqrt_one_minus, t, x0.shape) * noise

    def predict_start(self, xt, t, eps):
        return (xt - extract(self.sqrt_one_minus, t, xt.shape) * eps) / extract(self.sqrt_bar, t, xt.shape)

    def min_snr_weight(self, t, gamma=5.0):
        snr = self.snr.to(t.device)[t]
        return torch.minimum(snr, torch.full_like(snr, gamma)) / snr

    def vlb_weight(self, t):
        ratio = self.snr.roll(1) - self.snr
        return 0.5 * ratio.index_select(0, t)  # raises

    def posterior(self, x0, xt, t):
        if t.dim() == 0:
            mean = self.coef["x0"][t] * x0 + self.coef["xt"][t] * xt
            return mean, float(self.posterior_variance[int(t)])
        c0, ct = (self.coef[name].to(t.device) for name in ("x0", "xt"))
        mean = extract(c0, t, x0.shape) * x0 + extract(ct, t, xt.shape) * xt
        return mean, extract_numpy(self.posterior_variance, t, xt.shape)


class ImportanceSampler:
    """Draws timesteps by the running squares of the losses."""

    def __init__(self, steps, history=2):
        self.history = torch.ones(steps, history)

    def weights(self):
        w = self.history.pow(2).mean(1).sqrt()
        return w / w.sum()

    def sample(self, count, device=None):
        p = self.weights()
        index = torch.multinomial(p, count, replacement=True)
        return index.to(device), (1 / (len(p) * p[index])).to(device)

    def update(self, t, losses):
        for step, loss in zip(t.tolist(), losses):
            self.history[step] = torch.cat([self.history[step, 1:], loss.reshape(1).cpu()])

    def update_batched(self, t, losses):
        rows = torch.zeros(len(self.history)).scatter_add_(0, t, losses.detach())  # raises
        self.history = torch.stack([self.history[:, 1], rows], dim=1)


class Solver:
    """Base of the ODE solvers: the template integrates, a subclass makes one step."""

    sigma_min, sigma_max, rho = 0.02, 10.0, 7.0

    def __init__(self, denoise, steps=5, device=None):
        self.denoise, self.steps = denoise, steps
        self.device = device

    def sigmas(self):
        ramp = torch.linspace(0, 1, self.steps, device=self.device)
        low, high = self.sigma_min ** (1 / self.rho), self.sigma_max ** (1 / self.rho)
        return torch.cat([(high + ramp * (low - high)) ** self.rho, ramp.new_zeros(1)])

    def derivative(self, x, sigma):
        return (x - self.denoise(x, sigma)) / sigma

    def integrate(self, x):
        sigmas = self.sigmas()
        x = x * sigmas[0]
        for now, after in zip(sigmas[:-1], sigmas[1:]):
            x = self.step(x, now, after)
        return x

    def step(self, x, now, after):
        raise NotImplementedError


class Euler(Solver):
    def step(self, x, now, after):
        return x + self.derivative(x, now) * (after - now)


class Heun(Solver):
    def step(self, x, now, after):
        d = self.derivative(x, now)
        trial = x + d * (after - now)
        if after == 0:
            return trial
        return x + (d + self.derivative(trial, after)) / 2 * (after - now)


class Multistep(Solver):
    order = 3

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.past: List[torch.Tensor] = []

    def coefficients(self, sigmas, i):
        nodes = sigmas[max(0, i - self.order + 1):i + 1]
        power = torch.arange(len(nodes)).to(sigmas)
        matrix = nodes[None] ** power[:, None]
        span = (sigmas[i + 1] ** (power + 1) - sigmas[i] ** (power + 1)) / (power + 1)
        return torch.linalg.solve(matrix.double(), span.double()).float()

    def integrate(self, x):
        sigmas = self.sigmas()
        x, self.past = x * sigmas[0], []
        for i in range(self.steps):
            self.past = (self.past + [self.derivative(x, sigmas[i])])[-self.order:]
            stacked = torch.stack(self.past, dim=-1)
            x = x + stacked @ self.coefficients(sigmas, i)  # raises
        return x


def with_noise_level(network, conditions=None):
    """A denoiser from a network which takes a vector of levels."""
    table = torch.linspace(0.0, 1.0, 8)

    def denoise(x, sigma):
        level = sigma.log().expand(x.size(0)) / 4
        return network(x, level.to(x.device))

    def guided(x, sigma, scale=1.5):
        plain = denoise(x, sigma)
        weight = table[(sigma.clamp(0.1, 0.9) * 7).long()]
        return plain + weight * scale * (conditions - plain)  # raises

    return denoise if conditions is None else guided


class FourierTime(nn.Module):
    def __init__(self, dim, learned=False):
        super().__init__()
        frequencies = torch.randn(dim // 2) * 8
        self.frequencies = nn.Parameter(frequencies) if learned else frequencies

    def forward(self, t):
        angle = t[:, None] * self.frequencies  # raises
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


class TinyNet(nn.Module):
    def __init__(self, dim=4, width=8, learned=True):
        super().__init__()
        self.time = FourierTime(width, learned)
        self.inp, self.out = nn.Linear(dim, width), nn.Linear(width, dim)

    def forward(self, x, t):
        return self.out(torch.tanh(self.inp(x) + self.time(t)))


class Bijection(nn.Module):
    def forward(self, x, inverse=False):
        return self.backward_map(x) if inverse else self.forward_map(x)


class Coupling(Bijection):
    def __init__(self, dim, parity):
        super().__init__()
        self.mask = (torch.arange(dim) + parity) % 2
        self.net = nn.Linear(dim, 2 * dim)

    def _split(self, x):
        mask = self.mask.type_as(x)
        shift, scale = self.net(x * mask).chunk(2, dim=-1)
        return mask, shift * (1 - mask), torch.tanh(scale) * (1 - mask)

    def forward_map(self, x):
        _, shift, scale = self._split(x)
        return x * scale.exp() + shift, scale.sum(-1)

    def backward_map(self, y):
        _, shift, scale = self._split(y)
        return (y - shift) * (-scale).exp(), -scale.sum(-1)


class Permute(Bijection):
    def __init__(self, dim):
        super().__init__()
        self.order = torch.randperm(dim, generator=torch.Generator().manual_seed(0))

    def forward_map(self, x):
        return x[:, self.order], torch.zeros(x.size(0))

    def backward_map(self, y):
        out = torch.empty_like(y)
        out[:, self.order] = y
        return out, y.new_zeros(y.size(0))


class LULinear(Bijection):
    def __init__(self, dim):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.diagonal = nn.Parameter(torch.zeros(dim))
        self.lower_mask = torch.tril(torch.ones(dim, dim), -1)

    def _factors(self):
        eye = torch.eye(len(self.diagonal), out=self.raw.new_empty(0))
        lower = torch.tril(self.raw, -1) + eye
        upper = torch.triu(self.raw, 1) + torch.diag(self.diagonal.exp())
        return lower, upper

    def forward_map(self, x):
        lower, upper = self._factors()
        return x @ upper.t() @ lower.t(), self.diagonal.sum().expand(x.size(0))

    def backward_map(self, y):
        lower, upper = self._factors()
        z = torch.linalg.solve_triangular(lower, y.t(), upper=False, unitriangular=True)
        return torch.linalg.solve_triangular(upper, z, upper=True).t(), -self.diagonal.sum().expand(y.size(0))

    def penalty(self):
        return (self.raw * self.lower_mask).abs().sum()  # raises


class Flow(nn.Module):
    def __init__(self, dim, layers, base=None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.base = base
        self.register_buffer("loc", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(dim))

    @property
    def prior(self):
        return self.base or Independent(Normal(self.loc, self.scale), 1)

    def log_prob(self, x):
        total = x.new_zeros(x.size(0))
        for layer in self.layers:
            x, logdet = layer(x)
            total += logdet  # raises
        return total + self.prior.log_prob(x)

    def sample(self, count):
        x = self.prior.sample((count,))
        for layer in reversed(self.layers):
            x, _ = layer(x, inverse=True)
        return x


def build_flow(dim, names=("coupling", "lu"), base=None):
    makers = {"coupling": lambda i: Coupling(dim, i), "permute": lambda i: Permute(dim), "lu": lambda i: LULinear(dim)}
    return Flow(dim, [makers[name](i) for i, name in enumerate(names)], base)


def standard_base(dim, prototype: Optional[torch.Tensor] = None):
    zero = torch.zeros(dim) if prototype is None else torch.zeros_like(prototype)
    return Independent(Normal(zero, torch.ones_like(zero)), 1)


class VAE(nn.Module):
    def __init__(self, dim=4, latent=2, free_bits=0.0, components=0):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(dim, 2 * latent), nn.Linear(latent, dim)
        self.latent = latent
        self.free_bits = torch.tensor(free_bits)
        self.prior = Normal(torch.zeros(latent), torch.ones(latent))
        self.pseudo = nn.Parameter(torch.randn(components, dim)) if components else None

    def posterior(self, x):
        mean, logvar = self.encoder(x).chunk(2, dim=-1)
        return Normal(mean, (0.5 * logvar).exp())

    def kl(self, q, z=None):
        if self.pseudo is not None:
            p = self.posterior(self.pseudo)
            each = p.log_prob(z[:, None]).sum(-1).logsumexp(1) - torch.tensor(float(len(self.pseudo))).log()
            return q.log_prob(z).sum(-1) - each
        unit = Normal(torch.zeros_like(q.loc), torch.ones_like(q.scale))
        return torch.maximum(kl_divergence(q, unit), self.free_bits).sum(-1)

    def elbo(self, x):
        q = self.posterior(x)
        z = q.rsample()
        return -(self.decoder(z) - x).pow(2).sum(-1) - self.kl(q, z)

    def iwae(self, x, k=3):
        q = self.posterior(x)
        z = q.rsample((k,))
        log_p = -(self.decoder(z) - x).pow(2).sum(-1)
        log_w = log_p + self.prior.log_prob(z).sum(-1) - q.log_prob(z).sum(-1)  # raises
        return log_w.logsumexp(0) - math.log(k)

    def generate(self, count):
        z = self.prior.sample((count,))
        return self.decoder(z.to(self.decoder.weight.device))

    def traverse(self, x, axis, span=2.0, steps=3):
        z = self.posterior(x[:1]).mean.repeat(steps, 1)
        z[:, axis] = torch.linspace(-span, span, steps)
        return self.decoder(z)


class Quantizer(nn.Module):
    def __init__(self, codes=6, dim=4, decay=0.9):
        super().__init__()
        self.decay = decay
        weight = torch.randn(codes, dim)
        self.register_buffer("weight", weight)
        self.register_buffer("average", weight.clone())
        self.usage = torch.zeros(codes)

    def assign(self, flat):
        return torch.cdist(flat, self.weight).argmin(1)

    def forward(self, x):
        index = self.assign(x)
        if self.training:
            self._update(x.detach(), index)
        code = self.weight[index]
        return x + (code - x).detach(), index

    def _update(self, x, index):
        onehot = F.one_hot(index, len(self.weight)).to(x)
        self.average.mul_(self.decay).add_(onehot.t() @ x, alpha=1 - self.decay)
        self.usage = self.usage.to(x.device) * self.decay + onehot.sum(0) * (1 - self.decay)
        self.weight.copy_(self.average / self.usage.clamp(min=1e-3)[:, None])

    def revive(self, x):
        dead = self.usage < 0.01
        fresh = x[torch.randint(len(x), dead.shape)]
        self.weight.copy_(torch.where(dead[:, None], fresh, self.weight))  # raises


class FiniteScalar(nn.Module):
    """Finite scalar quantization: every channel is rounded to its number of levels."""

    def __init__(self, levels=(3, 5, 5)):
        super().__init__()
        self.levels = list(levels)
        self.basis = np.cumprod([1] + self.levels[:-1])

    def forward(self, z):
        half = (torch.tensor(self.levels, dtype=z.dtype, device=z.device) - 1) / 2
        bounded = torch.tanh(z) * half
        return (bounded + (bounded.round() - bounded).detach()) / half

    def to_index(self, codes):
        half = codes.new_tensor(self.levels).sub(1).div(2)
        digits = (codes * half + half).round().long()
        return (digits * torch.from_numpy(self.basis)).sum(-1)  # raises

    def from_index(self, index):
        digits = [index.div(int(b), rounding_mode="floor") % level for b, level in zip(self.basis, self.levels)]
        return torch.stack(digits, dim=-1) / (torch.as_tensor(self.levels).to(index) - 1) * 2 - 1
