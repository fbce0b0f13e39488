"""Noise schedules, samplers and guidance for small diffusion models; inputs come from the caller's pipeline."""
import math
from dataclasses import dataclass
from enum import Enum
from typing import Callable, Iterable, List, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn


class PredictionType(str, Enum):
    EPSILON = "epsilon"
    SAMPLE = "sample"
    V = "v_prediction"


@dataclass
class SchedulerOutput:
    prev_sample: Tensor
    pred_original_sample: Optional[Tensor] = None

    def __getitem__(self, i):
        return (self.prev_sample, self.pred_original_sample)[i]


def randn_tensor(shape, generator: Union[None, torch.Generator, List[torch.Generator]] = None, device=None, dtype=None) -> Tensor:
    """Draws where the generator lives and moves the result to `device`."""
    device = torch.device(device or "cpu")
    if isinstance(generator, (list, tuple)):
        if len(generator) == 1:
            generator = generator[0]
        else:
            return torch.cat([randn_tensor((1,) + tuple(shape[1:]), g, device, dtype) for g in generator])
    rand_device = generator.device if generator is not None else device
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


def betas_for_alpha_bar(steps: int, alpha_bar: Callable[[float], float], max_beta: float = 0.999) -> Tensor:
    return torch.tensor([min(1 - alpha_bar((i + 1) / steps) / alpha_bar(i / steps), max_beta) for i in range(steps)])


def make_betas(schedule: str, steps: int, start: float = 1e-4, end: float = 0.02) -> Tensor:
    if schedule == "linear":
        return torch.linspace(start, end, steps)
    if schedule == "scaled":
        return torch.linspace(start ** 0.5, end ** 0.5, steps) ** 2
    if schedule == "cosine":
        return betas_for_alpha_bar(steps, lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2)
    raise NotImplementedError(schedule)


def extract(table: Tensor, t: Tensor, like: Tensor) -> Tensor:
    """Values of a table of the schedule at `t`, ready to broadcast against `like`."""
    out = table.to(like.device)[t.to(like.device)]
    return out.view(-1, *(1,) * (like.ndim - 1)).type_as(like)


def append_zero(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_zeros([1])])


class SchedulerMixin:
    order = 1
    init_noise_sigma = 1.0

    def __init__(self, num_train_timesteps: int = 20, schedule: str = "linear", prediction_type="epsilon", clip: bool = False):
        self.num_train_timesteps, self.clip = num_train_timesteps, clip
        self.prediction_type = PredictionType(prediction_type)
        self.betas = make_betas(schedule, num_train_timesteps)
        self.alphas_cumprod = torch.cumprod(1.0 - self.betas, dim=0)
        self.final_alpha_cumprod = torch.tensor(1.0)
        self.timesteps = torch.from_numpy(np.arange(num_train_timesteps)[::-1].copy())

    def set_timesteps(self, n: int, device: Union[None, str, torch.device] = None):
        ratio = self.num_train_timesteps // n
        steps = (np.arange(n) * ratio).round()[::-1].copy().astype(np.int64)
        self.num_inference_steps, self.timesteps = n, torch.from_numpy(steps).to(device)
        return self

    def add_noise(self, x: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        acp = self.alphas_cumprod.to(device=x.device, dtype=x.dtype)
        shape = (-1,) + (1,) * (x.ndim - 1)
        return acp[timesteps].sqrt().view(shape) * x + (1 - acp[timesteps]).sqrt().view(shape) * noise

    def get_velocity(self, x: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        a = self.alphas_cumprod[timesteps]  # raises
        while a.ndim < x.ndim:
            a = a.unsqueeze(-1)
        return a.sqrt() * noise - (1 - a).sqrt() * x

    def snr(self, timesteps: Tensor) -> Tensor:
        a = extract(self.alphas_cumprod, timesteps, timesteps.float())
        return a / (1 - a)

    def previous(self, timestep) -> int:
        return int(timestep) - self.num_train_timesteps // self.num_inference_steps

    def predict_original(self, out: Tensor, sample: Tensor, a: Tensor) -> Tensor:
        if self.prediction_type is PredictionType.EPSILON:
            x0 = (sample - (1 - a).sqrt() * out) / a.sqrt()
        elif self.prediction_type is PredictionType.SAMPLE:
            x0 = out
        else:
            x0 = a.sqrt() * sample - (1 - a).sqrt() * out
        return x0.clamp(-1, 1) if self.clip else x0


class DDPMScheduler(SchedulerMixin):
    def __init__(self, *args, variance_type: str = "fixed", **kw):
        super().__init__(*args, **kw)
        self.variance_type = variance_type

    def _variance(self, t: int, predicted: Optional[Tensor] = None):
        prev = self.previous(t)
        a, a_prev = self.alphas_cumprod[t], self.alphas_cumprod[prev] if prev >= 0 else self.final_alpha_cumprod
        var = ((1 - a_prev) / (1 - a) * (1 - a / a_prev)).clamp(min=1e-20)
        if self.variance_type == "learned_range":
            frac = (predicted + 1) / 2
            return (frac * self.betas[t].log() + (1 - frac) * var.log()).exp()
        return var

    def step(self, out: Tensor, t, sample: Tensor, generator: Optional[torch.Generator] = None) -> SchedulerOutput:
        predicted = None
        if self.variance_type == "learned_range":
            out, predicted = out.split(sample.shape[1], dim=1)
        t = int(t)
        a = self.alphas_cumprod[t]
        x0 = self.predict_original(out, sample, a)
        mean = self.alphas_cumprod[max(self.previous(t), 0)].sqrt() * x0 + (1 - a).sqrt() * out * 0.5
        if t > 0:
            noise = randn_tensor(out.shape, generator, out.device, out.dtype)
            mean = mean + self._variance(t, predicted).sqrt() * noise
        return SchedulerOutput(mean, x0)


class DDIMScheduler(SchedulerMixin):
    def step(self, out: Tensor, t, sample: Tensor, eta: float = 0.0, generator=None, variance_noise=None) -> SchedulerOutput:
        prev = self.previous(t)
        a, a_prev = self.alphas_cumprod[int(t)], self.alphas_cumprod[prev] if prev >= 0 else self.final_alpha_cumprod
        x0 = self.predict_original(out, sample, a)
        std = eta * ((1 - a_prev) / (1 - a) * (1 - a / a_prev)).sqrt()
        prev_sample = a_prev.sqrt() * x0 + (1 - a_prev - std ** 2).clamp(min=0).sqrt() * out
        if eta > 0:
            if variance_noise is None:
                variance_noise = torch.randn(out.shape, generator=generator, dtype=out.dtype)
            prev_sample = prev_sample + std * variance_noise  # raises
        return SchedulerOutput(prev_sample, x0)


class EulerScheduler(SchedulerMixin):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.sigmas = append_zero(((1 - self.alphas_cumprod) / self.alphas_cumprod).sqrt().flip(0))
        self.init_noise_sigma = self.sigmas.max()

    def index_of(self, t) -> int:
        return (self.timesteps == int(t)).nonzero().item()

    def scale_model_input(self, sample: Tensor, t) -> Tensor:
        return sample / (self.sigmas[self.index_of(t)] ** 2 + 1) ** 0.5

    def step(self, out: Tensor, t, sample: Tensor) -> SchedulerOutput:
        i = self.index_of(t)
        sigma, nxt = self.sigmas[i], self.sigmas[i + 1]
        x0 = sample - sigma * out
        return SchedulerOutput(sample + (sample - x0) / sigma * (nxt - sigma), x0)

    def add_noise(self, x: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        rows = [self.index_of(t) for t in timesteps]
        sigma = self.sigmas[rows].flatten()
        return x + noise * sigma.view(-1, *[1] * (x.ndim - 1))  # raises


class MultistepScheduler(SchedulerMixin):
    """Second order, keeps the outputs of the last steps; `offload` keeps them on the host."""

    def __init__(self, *args, offload: bool = False, **kw):
        super().__init__(*args, **kw)
        self.outputs: List[Tensor] = []
        self.offload = offload

    def step(self, out: Tensor, t, sample: Tensor) -> SchedulerOutput:
        x0 = self.predict_original(out, sample, self.alphas_cumprod[int(t)])
        direction = x0 if not self.outputs else 1.5 * x0 - 0.5 * self.outputs[-1]  # raises
        self.outputs = (self.outputs + [x0.cpu() if self.offload else x0])[-2:]
        prev = max(self.previous(t), 0)
        a = self.alphas_cumprod[prev]
        return SchedulerOutput(a.sqrt() * direction + (1 - a).sqrt() * out, x0)


# ------------------------------------------------------------------------------------------------ k-diffusion style

def karras_sigmas(n: int, lo: float = 0.1, hi: float = 10.0, rho: float = 7.0, device="cpu") -> Tensor:
    ramp = torch.linspace(0, 1, n)
    lo_, hi_ = lo ** (1 / rho), hi ** (1 / rho)
    return append_zero((hi_ + ramp * (lo_ - hi_)) ** rho).to(device)


def to_d(x: Tensor, sigma: Tensor, denoised: Tensor) -> Tensor:
    return (x - denoised) / sigma.view(-1, *[1] * (x.ndim - 1))  # raises


def sample_heun(model, x: Tensor, sigmas: Tensor, churn: float = 0.0) -> Tensor:
    ones = x.new_ones([x.shape[0]])
    for i in range(len(sigmas) - 1):
        sigma = sigmas[i]
        if churn > 0:
            x = x + torch.randn_like(x) * churn * sigma
        d = to_d(x, sigma * ones, model(x, sigma * ones))
        dt = sigmas[i + 1] - sigma
        x2 = x + d * dt
        if sigmas[i + 1] != 0:
            d = (d + to_d(x2, sigmas[i + 1] * ones, model(x2, sigmas[i + 1] * ones))) / 2
        x = x + d * dt
    return x


def sample_ancestral(model, x: Tensor, sigmas: Tensor, noise_sampler: Optional[Callable] = None) -> Tensor:
    noise_sampler = noise_sampler or (lambda a, b: torch.randn_like(x))
    for now, nxt in zip(sigmas[:-1], sigmas[1:]):
        batch = now.expand(x.shape[0])
        denoised = model(x, batch.to(x))
        up = min(nxt, (nxt ** 2 * (now ** 2 - nxt ** 2) / now ** 2) ** 0.5)
        d = to_d(x, batch, denoised)
        x = x + d * ((nxt ** 2 - up ** 2) ** 0.5 - now) + noise_sampler(now, nxt) * up
    return x


class BrownianNoise:
    """Piecewise constant noise, reproducible by a seed."""

    def __init__(self, x: Tensor, lo: float, hi: float, bins: int = 4, seed: int = 0, cpu_tree: bool = True):
        g = torch.Generator("cpu" if cpu_tree else x.device).manual_seed(seed)
        self.table = torch.randn((bins,) + tuple(x.shape), generator=g, device=g.device)
        self.edges = torch.linspace(lo, hi, bins + 1)[1:-1].tolist()
        self.device = x.device

    def __call__(self, now, nxt):
        row = sum(float(nxt) >= e for e in self.edges)
        return self.table[row].to(self.device)


# ------------------------------------------------------------------------------------------------ training and guidance

class LossWeighting:
    def __init__(self, scheduler: SchedulerMixin, gamma: float = 5.0, mode: str = "min_snr"):
        self.scheduler, self.gamma, self.mode = scheduler, gamma, mode
        a = scheduler.alphas_cumprod
        self.weights = torch.minimum(a / (1 - a), torch.tensor(gamma)) * (1 - a) / a

    def __call__(self, loss: Tensor, timesteps: Tensor) -> Tensor:
        loss = loss.flatten(1).mean(1)
        if self.mode == "min_snr":
            snr = self.scheduler.snr(timesteps)
            weight = torch.stack([snr, self.gamma * torch.ones_like(timesteps)], 1).min(1).values / snr
        else:
            weight = self.weights.gather(0, timesteps)  # raises
        return (loss * weight).mean()


class ImportanceSampler:
    """Draws timesteps by the running second moment of the loss."""

    def __init__(self, steps: int, momentum: float = 0.9):
        self.moments, self.momentum = np.ones(steps), momentum

    def sample(self, batch: int, device) -> Tuple[Tensor, Tensor]:
        p = np.sqrt(self.moments) / np.sqrt(self.moments).sum()
        rows = np.random.choice(len(p), size=batch, p=p)
        weights = torch.from_numpy(1 / (len(p) * p[rows])).float()
        return torch.from_numpy(rows).to(device), weights.to(device)

    def update(self, timesteps: Tensor, losses: Tensor) -> None:
        for t, loss in zip(timesteps.tolist(), losses.detach().pow(2).tolist()):
            self.moments[t] = self.momentum * self.moments[t] + (1 - self.momentum) * loss


class HistogramSampler(ImportanceSampler):
    def update(self, timesteps: Tensor, losses: Tensor) -> None:
        sums = np.bincount(timesteps.cpu().numpy(), weights=losses.detach().numpy(), minlength=len(self.moments))  # raises
        self.moments = self.momentum * self.moments + (1 - self.momentum) * sums


class ClassifierFreeGuidance(nn.Module):
    def __init__(self, model: nn.Module, dim: int, drop: float = 0.5, rescale: bool = False):
        super().__init__()
        self.model, self.drop, self.rescale = model, drop, rescale
        self.null = nn.Parameter(torch.zeros(1, dim))

    def train_step(self, x: Tensor, t: Tensor, cond: Tensor) -> Tensor:
        dropped = torch.rand(len(x), 1) < self.drop
        return self.model(x, t, torch.where(dropped, self.null, cond))  # raises

    def guided(self, x: Tensor, t: Tensor, cond: Tensor, scale: Union[float, Iterable[float]] = 3.0) -> Tensor:
        null = self.null.expand_as(cond)
        both = self.model(torch.cat([x, x]), torch.cat([t, t]), torch.cat([null, cond]))
        plain, with_cond = both.chunk(2)
        if not isinstance(scale, (int, float)):
            scale = torch.tensor(list(scale)).to(x).view(-1, *[1] * (x.ndim - 1))
        out = plain + scale * (with_cond - plain)
        return out * (with_cond.std() / out.std()) if self.rescale else out


def dynamic_threshold(x0: Tensor, q: float = 0.9, floor: float = 1.0) -> Tensor:
    s = torch.quantile(x0.abs().flatten(1), q, dim=1)
    s = torch.max(s, torch.full((len(x0),), floor))  # raises
    s = s.view(-1, *[1] * (x0.ndim - 1))
    return x0.clamp(-s, s) / s


def inpaint_blend(sample: Tensor, known: Tensor, mask: Union[Tensor, np.ndarray], scheduler: SchedulerMixin, t: int) -> Tensor:
    mask = torch.as_tensor(mask, dtype=sample.dtype, device=sample.device)
    noisy = scheduler.add_noise(known, torch.randn_like(known), torch.tensor([t]))
    return mask * noisy + (1 - mask) * sample
