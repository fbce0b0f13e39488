"""Schedulers, samplers and training objectives of diffusion models."""
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

SCHEDULERS: Dict[str, type] = {}


@dataclass
class StepOutput:
    prev_sample: Tensor
    pred_original_sample: Optional[Tensor] = None


def betas_for(schedule: str, steps: int) -> np.ndarray:
    if schedule == "linear":
        return np.linspace(1e-4, 2e-2, steps, dtype=np.float64)
    if schedule == "cosine":
        bar = [math.cos((i / steps + 0.008) / 1.008 * math.pi / 2) ** 2 for i in range(steps + 1)]
        return np.array([min(1 - bar[i + 1] / bar[i], 0.999) for i in range(steps)])
    raise ValueError(schedule)


def expand_to(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(values.shape + (1,) * (x.ndim - values.ndim))


def append_zero(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_zeros([1])])


def randn_tensor(shape, generator=None, device=None, dtype=None) -> Tensor:
    """Noise that is the same on each device for a generator of the CPU."""
    where = generator.device if generator is not None else device
    return torch.randn(shape, generator=generator, device=where, dtype=dtype).to(device)


def timestep_embedding(timesteps: Tensor, dim: int, max_period=10000) -> Tensor:
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * freqs[None]  # raises
    return torch.cat([args.cos(), args.sin()], dim=-1)


class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim, max_period=10000):
        super().__init__()
        self.half, self.max_period = dim // 2, max_period

    def forward(self, timesteps):
        exponent = torch.arange(self.half, dtype=torch.float32, device=timesteps.device) / self.half
        args = torch.outer(timesteps.float(), torch.exp(-math.log(self.max_period) * exponent))
        return torch.cat([args.sin(), args.cos()], dim=-1)


class Scheduler:
    def __init_subclass__(cls, **kwargs):
        SCHEDULERS[cls.__name__] = cls

    def __init__(self, num_train_timesteps=50, beta_schedule="linear"):
        self.num_train_timesteps = num_train_timesteps
        self.betas = torch.from_numpy(betas_for(beta_schedule, num_train_timesteps)).float()
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)
        self.one = torch.tensor(1.0)
        self.timesteps = torch.arange(num_train_timesteps).flip(0)

    def set_timesteps(self, num_inference_steps: int, device=None):
        step = self.num_train_timesteps // num_inference_steps
        steps = (np.arange(0, num_inference_steps) * step)[::-1].copy()
        self.timesteps = torch.from_numpy(steps).to(device)

    def add_noise(self, sample, noise, timesteps):
        bar = self.alphas_cumprod.to(device=sample.device, dtype=sample.dtype)[timesteps]
        return expand_to(bar.sqrt(), sample) * sample + expand_to((1 - bar).sqrt(), sample) * noise

    def get_velocity(self, sample, noise, timesteps):
        bar = self.alphas_cumprod[timesteps]  # raises
        return expand_to(bar.sqrt(), sample) * noise - expand_to((1 - bar).sqrt(), sample) * sample

    def snr_weights(self, timesteps, gamma=5.0):
        snr = self.alphas_cumprod / (1 - self.alphas_cumprod)
        snr = snr.gather(0, timesteps)  # raises
        return snr.clamp(max=gamma) / snr


class DDPMScheduler(Scheduler):
    def step(self, eps, timestep: Union[int, Tensor], sample, generator=None) -> StepOutput:
        bar = self.alphas_cumprod[timestep]
        prev = self.alphas_cumprod[timestep - 1] if timestep > 0 else self.one
        beta = self.betas[timestep]
        original = (sample - (1 - bar).sqrt() * eps) / bar.sqrt()
        mean = prev.sqrt() * beta / (1 - bar) * original + self.alphas[timestep].sqrt() * (1 - prev) / (1 - bar) * sample
        if timestep > 0:
            noise = randn_tensor(sample.shape, generator, sample.device, sample.dtype)
            mean = mean + ((1 - prev) / (1 - bar) * beta).sqrt() * noise
        return StepOutput(mean, original)


class DDIMScheduler(Scheduler):
    def __init__(self, *args, eta=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.eta = eta

    def step(self, eps, timestep, sample, generator=None) -> StepOutput:
        previous = timestep - self.num_train_timesteps // len(self.timesteps)
        bar = self.alphas_cumprod[timestep]
        prev = self.alphas_cumprod[previous] if previous >= 0 else self.one
        original = (sample - (1 - bar).sqrt() * eps) / bar.sqrt()
        sigma = self.eta * ((1 - prev) / (1 - bar) * (1 - bar / prev)).sqrt()
        result = prev.sqrt() * original + (1 - prev - sigma ** 2).sqrt() * eps
        if self.eta > 0:
            noise = torch.randn(eps.shape, generator=generator, device=eps.device, dtype=eps.dtype)  # raises
            result = result + sigma * noise
        return StepOutput(result, original)


class EulerScheduler(Scheduler):
    def set_timesteps(self, num_inference_steps, device=None):
        table = ((1 - self.alphas_cumprod) / self.alphas_cumprod).sqrt().numpy()
        steps = np.linspace(0, self.num_train_timesteps - 1, num_inference_steps)[::-1].copy()
        sigmas = np.interp(steps, np.arange(len(table)), table)
        self.sigmas = append_zero(torch.from_numpy(sigmas).float()).to(device)
        self.timesteps = torch.from_numpy(steps).float()

    def index_of(self, timestep) -> int:
        return int((self.timesteps == timestep).nonzero()[0])

    def step(self, eps, timestep, sample, generator=None) -> StepOutput:
        index = self.index_of(timestep)
        sigma, following = self.sigmas[index], self.sigmas[index + 1]
        return StepOutput(sample + eps * (following - sigma), sample - sigma * eps)


class HeunScheduler(EulerScheduler):
    """Second order: keeps the derivative of the first half of a step."""

    def set_timesteps(self, num_inference_steps, device=None):
        super().set_timesteps(num_inference_steps, device)
        self.timesteps = self.timesteps.repeat_interleave(2)[:-1].to(device)
        table = ((1 - self.alphas_cumprod) / self.alphas_cumprod).sqrt()
        self.sigmas = torch.from_numpy(np.interp(self.timesteps.numpy(), np.arange(len(table)), table.numpy()))  # raises


class KarrasScheduler(Scheduler):
    def __init__(self, sigma_min=0.02, sigma_max=10.0, rho=7.0, **kwargs):
        super().__init__(**kwargs)
        self.sigma_min, self.sigma_max, self.rho = sigma_min, sigma_max, rho

    def set_timesteps(self, num_inference_steps, device=None):
        ramp = torch.linspace(0, 1, num_inference_steps, device=device)
        low, high = self.sigma_min ** (1 / self.rho), self.sigma_max ** (1 / self.rho)
        sigmas = (high + ramp * (low - high)) ** self.rho
        self.timesteps = sigmas.log() / 4
        self.sigmas = torch.cat([sigmas, torch.zeros(1)])  # raises


class CFGDenoiser(nn.Module):
    """Classifier-free guidance with one forward pass. The unconditional embedding is made once."""

    def __init__(self, model, encode: Callable[[List[str]], Tensor], scale=4.0):
        super().__init__()
        self.model, self.scale = model, scale
        self.unconditional = encode([""])

    def forward(self, x, t, cond):
        empty = self.unconditional.expand(len(x), -1)
        both = torch.cat([empty, cond])  # raises
        eps = self.model(torch.cat([x, x]), torch.cat([t, t]), both)
        uncond, conditioned = eps.chunk(2)
        return uncond + self.scale * (conditioned - uncond)


def dynamic_threshold(x: Tensor, ratios=(0.9, 0.995)) -> Tensor:
    limits = torch.quantile(x.flatten(1).abs(), torch.tensor(ratios), dim=1)  # raises
    limit = expand_to(limits.mean(0).clamp(min=1.0), x)
    return x.clamp(-limit, limit) / limit


def static_threshold(x: Tensor, ratio=0.995) -> Tensor:
    limit = torch.quantile(x.abs(), ratio).clamp(min=torch.tensor(1.0).item())
    return torch.max(torch.min(x, limit), -limit) / limit


class ScheduleSampler(ABC):
    @abstractmethod
    def weights(self) -> np.ndarray: ...

    def sample(self, batch_size: int, device) -> Tuple[Tensor, Tensor]:
        p = self.weights() / self.weights().sum()
        chosen = np.random.choice(len(p), size=(batch_size,), p=p)
        return torch.from_numpy(chosen).long().to(device), torch.from_numpy(1 / (len(p) * p[chosen])).float().to(device)


class LossAwareSampler(ScheduleSampler):
    def __init__(self, steps: int, history=4):
        self.losses, self.counts = np.ones([steps, history]), np.zeros(steps, dtype=int)

    def weights(self):
        return np.sqrt(np.mean(self.losses ** 2, axis=-1))

    def update(self, timesteps: Tensor, losses: Tensor):
        steps = timesteps.tolist()
        self.losses[steps, self.counts[steps] % self.losses.shape[1]] = losses.detach()  # raises
        self.counts[steps] += 1

    def update_all(self, timesteps: Tensor, losses: Tensor):
        for t, loss in zip(timesteps, losses.detach()):
            self.losses[t, self.counts[t] % self.losses.shape[1]] = loss


class EDMLoss:
    def __init__(self, P_mean=-1.2, P_std=1.2, sigma_data=0.5):
        self.P_mean, self.P_std, self.sigma_data = P_mean, P_std, sigma_data

    def __call__(self, net, images):
        sigma = (torch.randn([images.shape[0], 1, 1, 1]) * self.P_std + self.P_mean).exp()
        weight = (sigma ** 2 + self.sigma_data ** 2) / (sigma * self.sigma_data) ** 2
        noisy = images + torch.randn_like(images) * sigma  # raises
        return (weight * (net(noisy, sigma.flatten()) - images) ** 2).mean()


class DenoisingLoss:
    def __init__(self, scheduler: Scheduler):
        self.scheduler = scheduler

    def __call__(self, net, images, weighted=False):
        timesteps = torch.randint(0, self.scheduler.num_train_timesteps, (len(images),))
        noise = torch.randn_like(images)
        noisy = self.scheduler.add_noise(images, noise, timesteps)
        loss = F.mse_loss(net(noisy, timesteps.to(images.device)), noise, reduction="none").mean((1, 2, 3))
        return (loss * self.scheduler.snr_weights(timesteps).to(loss)).mean() if weighted else loss.mean()


@torch.no_grad()
def sample(net, scheduler, shape, steps=5, device="cuda:0", generator=None, known=None, mask: Optional[np.ndarray] = None):
    scheduler.set_timesteps(steps, device)
    x = randn_tensor(shape, generator, device)
    for t in scheduler.timesteps:
        x = scheduler.step(net(x, t.expand(len(x)).to(x.device)), t, x, generator).prev_sample
        if known is not None:
            keep = F.interpolate(torch.from_numpy(mask).float()[None, None], x.shape[-2:])
            x = torch.where(keep > 0.5, known, x)  # raises
    return x
