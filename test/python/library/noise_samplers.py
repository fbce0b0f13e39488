from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Optional

import torch
from torch import nn


@dataclass
class DiffusionConfig:
    timesteps: int = 100
    schedule: str = "cosine"
    ddim_steps: int = 5
    eta: float = 1.0
    seed: int = 0
    clip: bool = True


def make_betas(name: str, n: int) -> torch.Tensor:
    if name == "linear":
        return torch.linspace(1e-4, 0.02, n, dtype=torch.float64)
    t = torch.linspace(0, n, n + 1, dtype=torch.float64) / n
    f = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    return (1 - f[1:] / f[:-1]).clamp(max=0.999)


def extract(a: torch.Tensor, t: torch.Tensor, ndim: int) -> torch.Tensor:
    out = a.gather(-1, t)  # raises
    return out.reshape(t.shape[0], *((1,) * (ndim - 1)))


def timestep_embedding(t: torch.Tensor, dim: int, max_period: float = 10000.0) -> torch.Tensor:
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    args = t[:, None].float() * freqs[None]  # raises
    return torch.cat([args.cos(), args.sin()], dim=-1)


def append_zero(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x.new_zeros([1])])


def get_sigmas_karras(n: int, sigma_min: float, sigma_max: float, rho: float = 7.0, device="cpu") -> torch.Tensor:
    ramp = torch.linspace(0, 1, n)
    lo, hi = sigma_min ** (1 / rho), sigma_max ** (1 / rho)
    return append_zero((hi + ramp * (lo - hi)) ** rho).to(device)


def dynamic_threshold(x0: torch.Tensor, p: float = 0.995) -> torch.Tensor:
    s = torch.quantile(x0.abs().flatten(1), p, dim=1)
    s = torch.maximum(s, torch.tensor(1.0)).view(-1, *([1] * (x0.ndim - 1)))
    return torch.min(torch.max(x0, -s), s) / s


class GaussianDiffusion(nn.Module):
    def __init__(self, model: nn.Module, cfg: DiffusionConfig = DiffusionConfig()):
        super().__init__()
        self.model, self.cfg = model, cfg
        betas = make_betas(cfg.schedule, cfg.timesteps)
        acp = torch.cumprod(1.0 - betas, dim=0)
        prev = torch.cat([torch.ones(1, dtype=acp.dtype), acp[:-1]])
        self.register_buffer("alphas_cumprod", acp.float())
        self.register_buffer("sqrt_acp", acp.sqrt().float())
        self.register_buffer("sqrt_one_minus_acp", (1 - acp).sqrt().float())
        self.register_buffer("coef1", (betas * prev.sqrt() / (1 - acp)).float())
        self.register_buffer("coef2", ((1 - prev) * (1 - betas).sqrt() / (1 - acp)).float())
        var = betas * (1 - prev) / (1 - acp)
        self.posterior_log_var = torch.log(var.clamp(min=1e-20)).float()

    @property
    def device(self) -> torch.device:
        return self.alphas_cumprod.device

    def q_sample(self, x0: torch.Tensor, t: torch.Tensor, noise: Optional[torch.Tensor] = None) -> torch.Tensor:
        noise = torch.randn_like(x0) if noise is None else noise
        return extract(self.sqrt_acp, t, x0.ndim) * x0 + extract(self.sqrt_one_minus_acp, t, x0.ndim) * noise

    def posterior(self, x0: torch.Tensor, x: torch.Tensor, t: torch.Tensor):
        mean = extract(self.coef1, t, x.ndim) * x0 + extract(self.coef2, t, x.ndim) * x
        return mean, extract(self.posterior_log_var, t, x.ndim)

    @torch.no_grad()
    def sample(self, shape) -> torch.Tensor:
        x = torch.randn(shape, device=self.device)
        for i in reversed(range(self.cfg.timesteps)):
            t = torch.full((shape[0],), i, device=self.device, dtype=torch.long)
            mean, log_var = self.posterior(self.model(x, t), x, t)
            x = mean + (0.5 * log_var).exp() * torch.randn_like(x) * (i > 0)
        return x

    def training_loss(self, x0: torch.Tensor) -> torch.Tensor:
        t = torch.randint(self.cfg.timesteps, (x0.shape[0],), device=x0.device)
        return (self.model(self.q_sample(x0, t), t) - x0).pow(2).mean()


class DDIMSampler:
    def __init__(self, diffusion: GaussianDiffusion):
        self.diffusion = diffusion
        cfg = diffusion.cfg
        self.eta = cfg.eta
        self.generator = torch.Generator().manual_seed(cfg.seed)
        self.steps = torch.linspace(cfg.timesteps - 1, 0, cfg.ddim_steps).round().long()

    def _step_noise(self, x: torch.Tensor) -> torch.Tensor:
        if self.eta == 0:
            return torch.zeros_like(x)
        return torch.empty_like(x).normal_(generator=self.generator)  # raises

    @torch.no_grad()
    def sample(self, shape) -> torch.Tensor:
        acp = self.diffusion.alphas_cumprod
        x = torch.randn(shape, generator=self.generator).to(self.diffusion.device)
        for cur, nxt in zip(self.steps, append_zero(self.steps[1:])):
            t = cur.to(x.device).expand(shape[0])
            x0 = self.diffusion.model(x, t)
            eps = (x - acp[cur].sqrt() * x0) / (1 - acp[cur]).sqrt()
            sigma = self.eta * (1 - acp[nxt]).sqrt() * 0.1
            x = acp[nxt].sqrt() * x0 + (1 - acp[nxt] - sigma ** 2).clamp(min=0).sqrt() * eps + sigma * self._step_noise(x)
        return x


def cfg_denoise(model: Callable, x, t, cond, scale: float = 3.0, uncond=None):
    if uncond is None:
        uncond = torch.zeros(cond.shape, dtype=cond.dtype)
    both = torch.cat([uncond, cond])  # raises
    out_u, out_c = model(torch.cat([x, x]), torch.cat([t, t]), both).chunk(2)
    return out_u + scale * (out_c - out_u)


@torch.no_grad()
def sample_euler(model: Callable, x: torch.Tensor, sigmas: torch.Tensor) -> torch.Tensor:
    s_in = x.new_ones([x.shape[0]])
    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i] * s_in)
        x = x + (x - denoised) / sigmas[i] * (sigmas[i + 1] - sigmas[i])
    return x


@torch.no_grad()
def sample_ancestral(model: Callable, x: torch.Tensor, n: int = 4, sigma_max: float = 10.0) -> torch.Tensor:
    sigmas = get_sigmas_karras(n, 0.1, sigma_max)
    x = x * sigmas[0]
    for cur, nxt in zip(sigmas[:-1].split(1), sigmas[1:].split(1)):
        d = (x - model(x, cur.to(x.device).expand(len(x)))) / cur  # raises
        x = x + d * (nxt - cur)
    return x
