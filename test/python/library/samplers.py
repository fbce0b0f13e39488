import math
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

import numpy as np
import torch


@dataclass
class SchedulerOutput:
    prev_sample: torch.FloatTensor
    pred_original_sample: Optional[torch.FloatTensor] = None


def betas_for_alpha_bar(num, max_beta=0.999):
    bar = lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    return torch.tensor([min(1 - bar((i + 1) / num) / bar(i / num), max_beta) for i in range(num)], dtype=torch.float32)


def expand_to(x, like):
    while x.ndim < like.ndim:
        x = x.unsqueeze(-1)
    return x


class ScheduleBase:
    order = 1

    def __init__(self, num_train_timesteps=20, beta_start=0.0001, beta_end=0.02, beta_schedule="linear"):
        self.num_train_timesteps = num_train_timesteps
        if beta_schedule == "linear":
            self.betas = torch.linspace(beta_start, beta_end, num_train_timesteps, dtype=torch.float32)
        elif beta_schedule == "squaredcos":
            self.betas = betas_for_alpha_bar(num_train_timesteps)
        else:
            raise NotImplementedError(beta_schedule)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)
        self.init_noise_sigma = 1.0
        self.timesteps = torch.from_numpy(np.arange(num_train_timesteps)[::-1].copy())

    def scale_model_input(self, sample, timestep=None):
        return sample

    def __len__(self):
        return self.num_train_timesteps


class AncestralScheduler(ScheduleBase):
    """Tables on the host; a step reads single numbers of them."""

    def __init__(self, *args, variance_type="fixed_small", clip=True, thresholding=False, **kw):
        super().__init__(*args, **kw)
        self.one = torch.tensor(1.0)
        self.variance_type, self.clip, self.thresholding = variance_type, clip, thresholding

    def set_timesteps(self, n: int, device: Union[str, torch.device] = None):
        self.n = n
        ratio = self.num_train_timesteps // n
        self.timesteps = torch.from_numpy((np.arange(0, n) * ratio).round()[::-1].copy().astype(np.int64)).to(device)

    def _previous(self, t):
        return t - self.num_train_timesteps // self.n

    def _variance(self, t, predicted=None):
        prev = self._previous(t)
        a, ap = self.alphas_cumprod[t], self.alphas_cumprod[prev] if prev >= 0 else self.one
        beta = 1 - a / ap
        var = torch.clamp((1 - ap) / (1 - a) * beta, min=1e-20)
        if self.variance_type == "fixed_small_log":
            var = torch.exp(0.5 * torch.log(var))
        elif self.variance_type == "learned_range":
            low, high = torch.log(var), torch.log(beta)
            frac = (predicted + 1) / 2
            var = frac * high + (1 - frac) * low
        return var

    def _threshold(self, x):
        s = torch.quantile(x.flatten(1).abs(), 0.95, dim=1).clamp(1, 2)
        s = s.view(-1, *[1] * (x.ndim - 1))
        return torch.maximum(torch.minimum(x, s), -s) / s

    def step(self, eps, t: int, sample, generator=None):
        t = int(t)
        prev = self._previous(t)
        a = self.alphas_cumprod[t]
        ap = self.alphas_cumprod[prev] if prev >= 0 else self.one
        x0 = (sample - (1 - a) ** 0.5 * eps) / a ** 0.5
        if self.thresholding:
            x0 = self._threshold(x0)
        elif self.clip:
            x0 = x0.clamp(-1, 1)
        cur_alpha = a / ap
        mean = ap ** 0.5 * (1 - cur_alpha) / (1 - a) * x0 + cur_alpha ** 0.5 * (1 - ap) / (1 - a) * sample
        if t > 0:
            noise = torch.randn(sample.shape, generator=generator, device=sample.device, dtype=sample.dtype)
            mean = mean + self._variance(t, predicted=eps) ** 0.5 * noise
        return SchedulerOutput(mean, x0)

    def add_noise(self, original, noise, timesteps):
        self.alphas_cumprod = self.alphas_cumprod.to(device=original.device)
        acp = self.alphas_cumprod.to(dtype=original.dtype)
        timesteps = timesteps.to(original.device)
        return expand_to(acp[timesteps].sqrt(), original) * original + expand_to((1 - acp[timesteps]).sqrt(), original) * noise


class EulerScheduler(ScheduleBase):
    def __init__(self, *args, s_churn=0.0, **kw):
        super().__init__(*args, **kw)
        sig = ((1 - self.alphas_cumprod) / self.alphas_cumprod) ** 0.5
        self.sigmas = torch.cat([sig.flip(0), torch.zeros(1)])
        self.init_noise_sigma = self.sigmas.max()
        self._step = None
        self.s_churn = s_churn

    def set_timesteps(self, n, device=None):
        t = np.linspace(0, self.num_train_timesteps - 1, n, dtype=np.float32)[::-1].copy()
        sig = (((1 - self.alphas_cumprod) / self.alphas_cumprod) ** 0.5).numpy()
        sig = np.interp(t, np.arange(len(sig)), sig)
        self.sigmas = torch.from_numpy(np.append(sig, 0.0).astype(np.float32))
        self.timesteps = torch.from_numpy(t).to(device=device)
        self._step = None

    def index_for(self, timestep):
        if isinstance(timestep, torch.Tensor):
            timestep = timestep.to(self.timesteps.device)
        return (self.timesteps == timestep).nonzero()[0].item()

    def scale_model_input(self, sample, timestep):
        self._step = self.index_for(timestep)
        return sample / (self.sigmas[self._step] ** 2 + 1) ** 0.5

    def step(self, eps, timestep, sample):
        if self._step is None:
            self._step = self.index_for(timestep)
        sigma, nxt = self.sigmas[self._step], self.sigmas[self._step + 1]
        x0 = sample - sigma * eps
        derivative = (sample - x0) / sigma
        self._step += 1
        return SchedulerOutput(sample + derivative * (nxt - sigma), x0)

    def add_noise(self, original, noise, timesteps):
        sigmas = self.sigmas.to(original)
        schedule = self.timesteps.to(original.device)
        idx = [(schedule == t).nonzero().item() for t in timesteps]
        return original + noise * expand_to(sigmas[idx], original)

    def get_scalings(self, sample, timesteps):
        idx = [self.index_for(t) for t in timesteps]
        sigma = expand_to(self.sigmas[idx], sample)
        c_skip = 1 / (sigma ** 2 + 1)
        c_out = -sigma / (sigma ** 2 + 1).sqrt()
        return c_skip * sample, c_out  # raises


class MultistepScheduler(ScheduleBase):
    """Keeps earlier outputs of the model."""

    def __init__(self, *args, solver_order=2, **kw):
        super().__init__(*args, **kw)
        self.lambda_t = torch.log(self.alphas_cumprod.sqrt()) - torch.log((1 - self.alphas_cumprod).sqrt())
        self.outputs = [None] * solver_order
        self.solver_order = solver_order

    def set_timesteps(self, n, device=None):
        self.timesteps = torch.linspace(self.num_train_timesteps - 1, 0, n + 1).round()[:-1].long().to(device)
        self.outputs = [None] * self.solver_order

    def _x0(self, eps, t, sample):
        a = self.alphas_cumprod[t].sqrt()
        s = (1 - self.alphas_cumprod[t]).sqrt()
        return (sample - s * eps) / a

    def step(self, eps, t, prev_t, sample):
        x0 = self._x0(eps, t, sample)
        self.outputs = self.outputs[1:] + [x0]
        h = self.lambda_t[prev_t] - self.lambda_t[t]
        a = self.alphas_cumprod[prev_t].sqrt()
        s = lambda i: (1 - self.alphas_cumprod[i]).sqrt()
        d = x0 if self.outputs[-2] is None else 1.5 * x0 - 0.5 * self.outputs[-2]
        return s(prev_t) / s(t) * sample - a * (torch.exp(-h) - 1.0) * d

    def corrector(self, sample, order):
        """Solves for the coefficients of an earlier outputs' combination."""
        outs = torch.stack([o for o in self.outputs if o is not None], dim=1)
        ks = torch.arange(1, outs.shape[1] + 1, dtype=torch.float32)
        rhos = torch.linalg.solve(torch.stack([ks ** i for i in range(len(ks))]), torch.ones(len(ks)))
        return sample + torch.einsum("k,bkc...->bc...", rhos, outs)  # raises


def karras_sigmas(n, sigma_min=0.02, sigma_max=10.0, rho=7.0, device="cpu"):
    ramp = torch.linspace(0, 1, n)
    lo, hi = sigma_min ** (1 / rho), sigma_max ** (1 / rho)
    sig = (hi + ramp * (lo - hi)) ** rho
    return torch.cat([sig, sig.new_zeros([1])]).to(device)


@torch.no_grad()
def sample_heun(model, x, sigmas):
    s_in = x.new_ones([x.shape[0]])
    for i in range(len(sigmas) - 1):
        den = model(x, sigmas[i] * s_in)
        d = (x - den) / sigmas[i]
        dt = sigmas[i + 1] - sigmas[i]
        if sigmas[i + 1] == 0:
            x = x + d * dt
        else:
            x2 = x + d * dt
            d2 = (x2 - model(x2, sigmas[i + 1] * s_in)) / sigmas[i + 1]
            x = x + (d + d2) / 2 * dt
    return x


@torch.no_grad()
def sample_lms(model, x, sigmas, order=2):
    ds = []
    coefs = torch.full((order,), 1.0 / order)
    for i in range(len(sigmas) - 1):
        d = (x - model(x, sigmas[i].expand(x.shape[0]).to(x.device))) / sigmas[i]
        ds = (ds + [d])[-order:]
        stacked = torch.stack(ds)
        mixed = torch.tensordot(coefs[:len(ds)], stacked, dims=1)  # raises
        x = x + mixed * (sigmas[i + 1] - sigmas[i])
    return x


def compute_snr(scheduler, timesteps):
    acp = scheduler.alphas_cumprod
    alpha = (acp ** 0.5).to(timesteps.device)[timesteps].float()
    sigma = ((1.0 - acp) ** 0.5).to(device=timesteps.device)[timesteps].float()
    return (alpha / sigma) ** 2


def min_snr_loss(scheduler, pred, target, timesteps, gamma=5.0):
    snr = compute_snr(scheduler, timesteps)
    weight = torch.stack([snr, gamma * torch.ones_like(timesteps)], dim=1).min(dim=1)[0] / snr
    loss = torch.nn.functional.mse_loss(pred, target, reduction="none")
    return (loss.mean(dim=list(range(1, loss.ndim))) * weight).mean()


def debiased_loss(scheduler, pred, target, timesteps):
    table = torch.stack([a / (1 - a) for a in scheduler.alphas_cumprod])
    weight = 1 / table[timesteps.tolist()].clamp(max=1000).sqrt()
    loss = (pred - target).square().flatten(1).mean(1)
    return (loss * weight).mean()  # raises


def sinusoidal_embedding(timesteps, dim, max_period=10000, flip=False):
    half = dim // 2
    exponent = -math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32)
    freqs = torch.exp(exponent / half).to(device=timesteps.device)
    args = timesteps[:, None].float() * freqs[None]
    halves = [torch.sin(args), torch.cos(args)]
    emb = torch.cat(halves[::-1] if flip else halves, dim=-1)
    if dim % 2:
        emb = torch.cat([emb, torch.zeros_like(emb[:, :1])], dim=-1)
    return emb


def get_2d_sincos(dim, grid_size, cls_token=False):
    axis = np.arange(grid_size, dtype=np.float32)
    omega = 1.0 / 10000 ** (np.arange(dim // 4) / (dim / 4.0))
    grid = np.stack(np.meshgrid(axis, axis)).reshape(2, -1)
    emb = np.concatenate([f(g[:, None] * omega) for g in grid for f in (np.sin, np.cos)], axis=1)
    return np.concatenate([np.zeros([1, dim]), emb]) if cls_token else emb


class PosEmbed2D(torch.nn.Module):
    def __init__(self, dim, grid_size):
        super().__init__()
        self.register_buffer("table", torch.from_numpy(get_2d_sincos(dim, grid_size)).float()[None], persistent=False)
        self.dim, self.grid_size = dim, grid_size

    def forward(self, x):
        n = int(x.shape[1] ** 0.5)
        if n == self.grid_size:
            return x + self.table
        fresh = torch.from_numpy(get_2d_sincos(self.dim, n)).to(x.dtype)
        return x + fresh  # raises


class FourierFeatures(torch.nn.Module):
    def __init__(self, dim, scale=16.0, trainable=False):
        super().__init__()
        w = torch.randn(dim) * scale
        self.weight = torch.nn.Parameter(w, requires_grad=trainable)

    def forward(self, x):
        proj = x[:, None] * self.weight[None, :] * 2 * np.pi
        return torch.cat([proj.sin(), proj.cos()], dim=-1)


def rotary_1d(dim, positions, theta=10000.0):
    if isinstance(positions, int):
        positions = torch.arange(positions)
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2, device=positions.device)[: dim // 2] / dim)
    angle = torch.outer(positions.float(), freqs)
    return angle.cos().repeat_interleave(2, dim=1), angle.sin().repeat_interleave(2, dim=1)


def apply_rotary(x, freqs=None):
    cos, sin = rotary_1d(x.shape[-1], x.shape[-2]) if freqs is None else freqs
    pair = x.unflatten(-1, (-1, 2))
    rotated = torch.stack([-pair[..., 1], pair[..., 0]], -1).flatten(-2)
    return x * cos + rotated * sin  # raises
