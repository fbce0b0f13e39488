"""Noise schedulers and samplers of diffusion models, and the helpers around them."""
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Callable, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class SchedulerOutput:
    prev_sample: torch.FloatTensor
    pred_original_sample: Optional[torch.FloatTensor] = None


def betas_for_alpha_bar(num_diffusion_timesteps: int, max_beta: float = 0.999) -> torch.Tensor:
    def alpha_bar(time_step):
        return math.cos((time_step + 0.008) / 1.008 * math.pi / 2) ** 2

    betas = []
    for i in range(num_diffusion_timesteps):
        t1, t2 = i / num_diffusion_timesteps, (i + 1) / num_diffusion_timesteps
        betas.append(min(1 - alpha_bar(t2) / alpha_bar(t1), max_beta))
    return torch.tensor(betas, dtype=torch.float32)


def randn_tensor(shape, generator=None, device=None, dtype=None) -> torch.Tensor:
    """Noise; a generator of the CPU draws on the CPU, and the noise is moved."""
    rand_device = device
    if generator is not None:
        gen_device = generator[0].device.type if isinstance(generator, list) else generator.device.type
        if gen_device == "cpu":
            rand_device = torch.device("cpu")
    if isinstance(generator, list):
        shape = (1,) + tuple(shape[1:])
        return torch.cat([torch.randn(shape, generator=g, device=rand_device, dtype=dtype) for g in generator]).to(device)
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


class ConfigMixin:
    def register_to_config(self, **kwargs):
        self.config = SimpleNamespace(**kwargs)


class SchedulerMixin(ConfigMixin):
    def _make_betas(self, schedule: str, start: float, end: float, n: int) -> None:
        if schedule == "linear":
            self.betas = torch.linspace(start, end, n, dtype=torch.float32)
        elif schedule == "scaled_linear":
            self.betas = torch.linspace(start ** 0.5, end ** 0.5, n) ** 2
        elif schedule == "squaredcos_cap_v2":
            self.betas = betas_for_alpha_bar(n)
        else:
            raise NotImplementedError(f"{schedule} is not implemented for {self.__class__}")
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)

    def add_noise(self, original_samples, noise, timesteps):
        alphas_cumprod = self.alphas_cumprod.to(device=original_samples.device, dtype=original_samples.dtype)
        timesteps = timesteps.to(original_samples.device)
        a = alphas_cumprod[timesteps] ** 0.5
        s = (1 - alphas_cumprod[timesteps]) ** 0.5
        while a.ndim < original_samples.ndim:
            a, s = a.unsqueeze(-1), s.unsqueeze(-1)
        return a * original_samples + s * noise

    def get_velocity(self, sample, noise, timesteps):
        a = self.alphas_cumprod[timesteps] ** 0.5  # raises
        s = (1 - self.alphas_cumprod[timesteps]) ** 0.5
        shape = (-1,) + (1,) * (sample.ndim - 1)
        return a.view(shape) * noise - s.view(shape) * sample

    def __len__(self):
        return self.config.num_train_timesteps


class DDPMScheduler(SchedulerMixin):
    def __init__(self, num_train_timesteps: int = 20, beta_start: float = 0.0001, beta_end: float = 0.02, beta_schedule: str = "linear",
                 variance_type: str = "fixed_small", clip_sample: bool = True, thresholding: bool = False):
        self.register_to_config(num_train_timesteps=num_train_timesteps, variance_type=variance_type, clip_sample=clip_sample,
                                thresholding=thresholding)
        self._make_betas(beta_schedule, beta_start, beta_end, num_train_timesteps)
        self.one = torch.tensor(1.0)
        self.timesteps = torch.from_numpy(np.arange(0, num_train_timesteps)[::-1].copy())

    def set_timesteps(self, num_inference_steps: int, device=None):
        step = self.config.num_train_timesteps // num_inference_steps
        timesteps = np.arange(0, self.config.num_train_timesteps, step)[::-1].copy()
        self.timesteps = torch.from_numpy(timesteps).to(device)
        self._step = step

    def _get_variance(self, t):
        prev_t = t - getattr(self, "_step", 1)
        alpha_prod_t = self.alphas_cumprod[t]
        alpha_prod_t_prev = self.alphas_cumprod[prev_t] if prev_t >= 0 else self.one
        variance = (1 - alpha_prod_t_prev) / (1 - alpha_prod_t) * (1 - alpha_prod_t / alpha_prod_t_prev)
        return torch.clamp(variance, min=1e-20)

    def _threshold_sample(self, sample, ratio: float = 0.995):
        flat = sample.abs().flatten(1)
        s = torch.quantile(flat, ratio, dim=1).clamp(min=1.0)
        s = torch.maximum(s, torch.ones(s.shape))  # raises
        s = s.view(-1, *([1] * (sample.ndim - 1)))
        return sample.clamp(-1, 1) / s

    def step(self, model_output, timestep: int, sample, generator=None) -> SchedulerOutput:
        t = int(timestep)
        alpha_prod_t = self.alphas_cumprod[t]
        beta_prod_t = 1 - alpha_prod_t
        pred = (sample - beta_prod_t ** 0.5 * model_output) / alpha_prod_t ** 0.5
        if self.config.thresholding:
            pred = self._threshold_sample(pred)
        elif self.config.clip_sample:
            pred = pred.clamp(-1, 1)
        prev = alpha_prod_t ** 0.5 * pred + beta_prod_t ** 0.5 * model_output
        if t > 0:
            noise = randn_tensor(model_output.shape, generator=generator, device=model_output.device, dtype=model_output.dtype)
            prev = prev + self._get_variance(t) ** 0.5 * noise
        return SchedulerOutput(prev, pred)

    def training_losses(self, model: Callable, x_start, loss_weights: bool = False):
        t = torch.randint(0, self.config.num_train_timesteps, (x_start.shape[0],), device=x_start.device)
        noise = torch.randn_like(x_start)
        out = model(self.add_noise(x_start, noise, t), t)
        loss = F.mse_loss(out, noise, reduction="none").flatten(1).mean(1)
        if loss_weights:
            snr = self.alphas_cumprod / (1 - self.alphas_cumprod)
            snr = snr.to(t.device)[t]
            loss = loss * torch.stack([snr, 5.0 * torch.ones_like(snr)], dim=1).min(dim=1)[0] / snr
        return loss.mean()


class DDIMScheduler(SchedulerMixin):
    def __init__(self, num_train_timesteps: int = 20, beta_start: float = 0.0001, beta_end: float = 0.02, set_alpha_to_one: bool = True):
        self.register_to_config(num_train_timesteps=num_train_timesteps)
        self._make_betas("scaled_linear", beta_start, beta_end, num_train_timesteps)
        self.final_alpha_cumprod = torch.tensor(1.0) if set_alpha_to_one else self.alphas_cumprod[0]

    def set_timesteps(self, num_inference_steps: int, device=None):
        self.step_ratio = self.config.num_train_timesteps // num_inference_steps
        self.timesteps = (torch.arange(0, num_inference_steps, device=device) * self.step_ratio).flip(0)

    def step(self, model_output, timestep, sample, eta: float = 0.0) -> SchedulerOutput:
        prev_timestep = timestep - self.step_ratio
        alpha_prod_t = self.alphas_cumprod[timestep]
        alpha_prev = self.alphas_cumprod[prev_timestep] if prev_timestep >= 0 else self.final_alpha_cumprod
        x0 = (sample - (1 - alpha_prod_t) ** 0.5 * model_output) / alpha_prod_t ** 0.5
        sigma = eta * ((1 - alpha_prev) / (1 - alpha_prod_t) * (1 - alpha_prod_t / alpha_prev)) ** 0.5
        prev = alpha_prev ** 0.5 * x0 + (1 - alpha_prev - sigma ** 2).clamp(min=0) ** 0.5 * model_output
        if eta > 0:
            prev = prev + sigma * torch.randn(model_output.shape)  # raises
        return SchedulerOutput(prev, x0)

    def reverse_step_batch(self, model_output, timesteps, sample):
        """DDIM inversion, where each row of the batch is at a step of its own."""
        nxt = torch.clamp(timesteps + self.step_ratio, max=self.config.num_train_timesteps - 1)
        table = self.alphas_cumprod.to(sample.dtype)
        a_t = table.to(timesteps.device)[timesteps].view(-1, 1, 1, 1)
        a_n = table[nxt].view(-1, 1, 1, 1)  # raises
        x0 = (sample - (1 - a_t).sqrt() * model_output) / a_t.sqrt()
        return a_n.sqrt() * x0 + (1 - a_n).sqrt() * model_output


class EulerDiscreteScheduler(SchedulerMixin):
    def __init__(self, num_train_timesteps: int = 20, beta_start: float = 0.0001, beta_end: float = 0.02):
        self.register_to_config(num_train_timesteps=num_train_timesteps)
        self._make_betas("linear", beta_start, beta_end, num_train_timesteps)
        sigmas = ((1 - self.alphas_cumprod) / self.alphas_cumprod) ** 0.5
        self.sigmas = torch.cat([sigmas.flip(0), torch.zeros(1)])
        self.timesteps = torch.arange(num_train_timesteps).flip(0).float()

    @property
    def init_noise_sigma(self):
        return self.sigmas.max()

    def set_timesteps(self, num_inference_steps: int, device: Union[str, torch.device] = None):
        timesteps = np.linspace(0, self.config.num_train_timesteps - 1, num_inference_steps)[::-1].copy()
        sigmas = np.array(((1 - self.alphas_cumprod) / self.alphas_cumprod) ** 0.5)
        sigmas = np.interp(timesteps, np.arange(0, len(sigmas)), sigmas)
        self.sigmas = torch.from_numpy(np.concatenate([sigmas, [0.0]]).astype(np.float32)).to(device=device)
        self.timesteps = torch.from_numpy(timesteps.astype(np.float32))

    def index_for_timestep(self, timestep) -> int:
        return (self.timesteps == float(timestep)).nonzero()[0].item()

    def scale_model_input(self, sample, timestep):
        sigma = self.sigmas[self.index_for_timestep(timestep)]
        return sample / ((sigma ** 2 + 1) ** 0.5)

    def step(self, model_output, timestep, sample, s_churn: float = 0.0):
        i = self.index_for_timestep(timestep)
        sigma = self.sigmas[i]
        gamma = min(s_churn / (len(self.sigmas) - 1), 2 ** 0.5 - 1)
        sigma_hat = sigma * (gamma + 1)
        if gamma > 0:
            sample = sample + torch.randn_like(sample) * (sigma_hat ** 2 - sigma ** 2) ** 0.5
        pred = sample - sigma_hat * model_output
        derivative = (sample - pred) / sigma_hat
        return SchedulerOutput(sample + derivative * (self.sigmas[i + 1] - sigma_hat), pred)

    def add_noise(self, original_samples, noise, timesteps):
        schedule = self.timesteps
        sigmas = self.sigmas.to(original_samples)
        indices = [(schedule == t).nonzero().item() for t in timesteps]  # raises
        sigma = sigmas[indices].flatten()
        return original_samples + noise * sigma.view(-1, *([1] * (original_samples.ndim - 1)))


class MultistepSolver(SchedulerMixin):
    """Second order multistep; keeps the outputs of the model between steps."""

    def __init__(self, num_train_timesteps: int = 20):
        self.register_to_config(num_train_timesteps=num_train_timesteps)
        self._make_betas("squaredcos_cap_v2", 0.0, 0.0, num_train_timesteps)
        self.lambda_t = torch.log(self.alphas_cumprod.sqrt()) - torch.log((1 - self.alphas_cumprod).sqrt())
        self.model_outputs: List[Optional[torch.Tensor]] = [None, None]
        self.lower_order_nums = 0

    def reset(self, shape=None):
        self.model_outputs = [None, None] if shape is None else [torch.zeros(shape), torch.zeros(shape)]
        self.lower_order_nums = 0 if shape is None else 2

    def step(self, model_output, t: int, prev_t: int, sample):
        alpha, sigma = self.alphas_cumprod[t].sqrt(), (1 - self.alphas_cumprod[t]).sqrt()
        x0 = (sample - sigma * model_output) / alpha
        self.model_outputs = [self.model_outputs[-1], x0]
        h = self.lambda_t[prev_t] - self.lambda_t[t]
        ratio = (1 - self.alphas_cumprod[prev_t]).sqrt() / sigma
        D = x0
        if self.lower_order_nums > 0:
            D = 1.5 * x0 - 0.5 * self.model_outputs[0]  # raises
        self.lower_order_nums += 1
        return ratio * sample - self.alphas_cumprod[prev_t].sqrt() * torch.expm1(-h) * D


# ------------------------------------------------------------------------------------------------------------ conditioning
def get_timestep_embedding(timesteps: torch.Tensor, embedding_dim: int, max_period: int = 10000) -> torch.Tensor:
    half = embedding_dim // 2
    exponent = -math.log(max_period) * torch.arange(half, dtype=torch.float32, device=timesteps.device) / half
    emb = timesteps[:, None].float() * torch.exp(exponent)[None, :]
    emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=-1)
    return F.pad(emb, (0, 1)) if embedding_dim % 2 else emb


def get_2d_sincos_pos_embed(embed_dim: int, h: int, w: int) -> np.ndarray:
    grid = np.stack(np.meshgrid(np.arange(w, dtype=np.float32), np.arange(h, dtype=np.float32)))
    omega = 1.0 / 100 ** (np.arange(embed_dim // 4) / (embed_dim / 4.0))
    out = np.concatenate([np.outer(g.reshape(-1), omega) for g in grid], axis=1)
    return np.concatenate([np.sin(out), np.cos(out)], axis=1)


class PatchEmbed(nn.Module):
    def __init__(self, size: int = 4, patch: int = 2, dim: int = 8):
        super().__init__()
        self.proj = nn.Conv2d(1, dim, patch, patch)
        self.dim, self.grid = dim, size // patch
        self.register_buffer("pos_embed", torch.from_numpy(get_2d_sincos_pos_embed(dim, self.grid, self.grid)).float()[None], persistent=False)

    def forward(self, latent):
        h, w = latent.shape[-2] // 2, latent.shape[-1] // 2
        latent = self.proj(latent).flatten(2).transpose(1, 2)
        if (h, w) == (self.grid, self.grid):
            return latent + self.pos_embed
        pos_embed = torch.from_numpy(get_2d_sincos_pos_embed(self.dim, h, w)).float().unsqueeze(0)
        return latent + pos_embed  # raises


class LabelDropout(nn.Module):
    """Drops the label of a row for guidance without a classifier."""

    def __init__(self, num_classes: int, dim: int, prob: float = 0.1):
        super().__init__()
        self.table = nn.Embedding(num_classes + 1, dim)
        self.num_classes, self.prob = num_classes, prob

    def token_drop(self, labels, force_drop_ids=None):
        if force_drop_ids is None:
            drop_ids = torch.rand(labels.shape[0], device=labels.device) < self.prob
        else:
            drop_ids = torch.tensor(force_drop_ids == 1)
        return torch.where(drop_ids, self.num_classes, labels)

    def forward(self, labels, force_drop_ids=None):
        return self.table(self.token_drop(labels, force_drop_ids))


def guidance_with_null_token(model: Callable, x, t, labels, null_token: int, scale: float = 3.0):
    null = torch.full((labels.shape[0],), null_token)
    both = torch.cat([labels, null])  # raises
    out = model(torch.cat([x, x]), torch.cat([t, t]), both)
    cond, uncond = out.chunk(2)
    return uncond + scale * (cond - uncond)


class EMAModel:
    """Exponential moving average of parameters."""

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float = 0.99):
        self.shadow_params = [p.clone().detach() for p in parameters]
        self.decay = decay

    @torch.no_grad()
    def step(self, parameters: Iterable[nn.Parameter]) -> None:
        for s, p in zip(self.shadow_params, list(parameters)):
            s.sub_((1 - self.decay) * (s - p))

    def copy_to(self, parameters):
        for s, p in zip(self.shadow_params, list(parameters)):
            p.data.copy_(s.to(p.device).data)

    def to(self, device=None):
        self.shadow_params = [p.to(device=device) for p in self.shadow_params]


# ------------------------------------------------------------------------------------------------------------ time samplers
class LossAwareSampler:
    """Draws the steps in proportion to the losses of late; the history is kept on the CPU."""

    def __init__(self, num_timesteps: int, history: int = 2):
        self.losses = torch.zeros(num_timesteps, history)
        self.counts = torch.zeros(num_timesteps, dtype=torch.int)

    def sample(self, batch_size: int, device) -> Tuple[torch.Tensor, torch.Tensor]:
        weights = (self.losses ** 2).mean(-1).sqrt() + 1e-3
        p = weights / weights.sum()
        indices = torch.multinomial(p, batch_size, replacement=True)
        return indices.to(device), (1 / (len(p) * p[indices])).to(device)

    def update_with_losses(self, ts: torch.Tensor, losses: torch.Tensor) -> None:
        for t, loss in zip(ts.tolist(), losses.tolist()):
            self.losses[t, self.counts[t] % self.losses.shape[1]] = loss
            self.counts[t] += 1

    def update_all(self, ts: torch.Tensor, losses: torch.Tensor) -> None:
        self.losses[ts, -1] = losses.detach()  # raises


def karras_sigmas(n: int, sigma_min: float = 0.1, sigma_max: float = 10.0, rho: float = 7.0, device="cpu") -> torch.Tensor:
    ramp = torch.linspace(0, 1, n)
    lo, hi = sigma_min ** (1 / rho), sigma_max ** (1 / rho)
    sigmas = (hi + ramp * (lo - hi)) ** rho
    return torch.cat([sigmas, sigmas.new_zeros([1])]).to(device)


@torch.no_grad()
def sample_ancestral(model: Callable, x: torch.Tensor, steps: int = 3) -> torch.Tensor:
    s_in = torch.ones(x.shape[0])
    for sigma in karras_sigmas(steps, device=x.device)[:-1]:
        denoised = model(x, sigma * s_in)  # raises
        x = denoised + torch.randn_like(x) * sigma * 0.5
    return x


class DiagonalGaussianDistribution:
    def __init__(self, parameters: torch.Tensor, deterministic: bool = False):
        self.mean, logvar = torch.chunk(parameters, 2, dim=1)
        self.logvar = logvar.clamp(-30.0, 20.0)
        self.std = torch.zeros_like(self.mean) if deterministic else torch.exp(0.5 * self.logvar)

    def sample(self, generator=None):
        return self.mean + self.std * randn_tensor(self.mean.shape, generator, self.mean.device, self.mean.dtype)

    def kl(self):
        return 0.5 * (self.mean ** 2 + self.logvar.exp() - 1.0 - self.logvar).flatten(1).sum(1)

