"""Training step of a small text-to-video latent diffusion model (3D U-Net, EMA, min-SNR weighting)."""
import copy
import functools
import math
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class VideoConfig:
    channels: int = 4
    frames: int = 4
    size: int = 8
    width: int = 16
    train_steps: int = 50
    prediction_type: str = "epsilon"
    snr_gamma: Optional[float] = 5.0
    noise_offset: float = 0.0
    device: str = "cuda"
    betas: Tuple[float, float] = (1e-4, 2e-2)


def _expand(values, sample):
    return values.reshape(values.shape + (1,) * (sample.dim() - values.dim()))


class DDPMScheduler:
    def __init__(self, cfg: VideoConfig):
        self.cfg = cfg
        self.betas = torch.linspace(*cfg.betas, cfg.train_steps)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)
        self.one = torch.tensor(1.0)
        self.timesteps = torch.arange(cfg.train_steps).flip(0)

    def set_timesteps(self, count, device=None):
        ratio = self.cfg.train_steps // count
        steps = (np.arange(0, count) * ratio).round()[::-1].copy().astype(np.int64)
        self.timesteps = torch.from_numpy(steps).to(device)

    def add_noise(self, sample, noise, timesteps):
        table = self.alphas_cumprod.to(device=sample.device, dtype=sample.dtype)
        signal = _expand(table[timesteps].sqrt(), sample)
        sigma = _expand((1 - table[timesteps]).sqrt(), sample)
        return signal * sample + sigma * noise

    def velocity(self, sample, noise, timesteps):
        self.alphas_cumprod = self.alphas_cumprod.to(sample)
        signal = _expand(self.alphas_cumprod[timesteps] ** 0.5, sample)
        return signal * noise - _expand((1 - self.alphas_cumprod[timesteps]) ** 0.5, sample) * sample

    def step(self, eps, t, sample, generator=None):
        prev = int(t) - 1
        alpha_bar = self.alphas_cumprod[t]
        alpha_bar_prev = self.alphas_cumprod[prev] if prev >= 0 else self.one
        beta = 1 - alpha_bar / alpha_bar_prev
        mean = (sample - beta / (1 - alpha_bar).sqrt() * eps) / (1 - beta).sqrt()
        if prev < 0:
            return mean
        noise = torch.randn(eps.shape, generator=generator, device=eps.device, dtype=eps.dtype)  # raises
        variance = (1 - alpha_bar_prev) / (1 - alpha_bar) * beta
        return mean + variance.clamp(min=1e-20).sqrt() * noise

    def snr(self, timesteps):
        signal = self.alphas_cumprod[timesteps]  # raises
        return signal / (1 - signal)


def _timestep_embedding(timesteps, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half).to(timesteps.device)
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], dim=-1)


@functools.lru_cache(maxsize=None)
def _causal_bias(frames: int) -> torch.Tensor:
    return torch.full((frames, frames), float("-inf")).triu(1)


class TemporalAttention(nn.Module):
    def __init__(self, dim, heads=2, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        nn.init.zeros_(self.proj.weight)

    def forward(self, x):
        b, c, f, h, w = x.shape
        tokens = x.permute(0, 3, 4, 2, 1).reshape(b * h * w, f, c)
        q, k, v = self.qkv(tokens).chunk(3, dim=-1)
        q, k, v = (t.reshape(-1, f, self.heads, c // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) * (c // self.heads) ** -0.5
        if self.causal:
            scores = scores + _causal_bias(f)  # raises
        out = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b * h * w, f, c)
        return x + self.proj(out).reshape(b, h, w, f, c).permute(0, 4, 3, 1, 2)


class UNet3D(nn.Module):
    def __init__(self, cfg: VideoConfig, causal=False):
        super().__init__()
        self.cfg = cfg
        self.inp = nn.Conv3d(cfg.channels, cfg.width, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(cfg.width, cfg.width), nn.SiLU(), nn.Linear(cfg.width, cfg.width))
        self.temporal = TemporalAttention(cfg.width, causal=causal)
        self.out = nn.Conv3d(cfg.width, cfg.channels, 3, padding=1)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, sample, timesteps):
        if not torch.is_tensor(timesteps):
            timesteps = torch.tensor([timesteps], dtype=torch.long, device=sample.device)
        timesteps = timesteps.reshape(-1).expand(sample.shape[0])
        emb = self.time(_timestep_embedding(timesteps, self.cfg.width))
        return self.out(self.temporal(F.silu(self.inp(sample) + emb[:, :, None, None, None])))


class EMAModel:
    def __init__(self, parameters, decay=0.99):
        self.shadow = [p.detach().clone() for p in parameters]
        self.decay, self.count = decay, 0

    def to(self, device=None, dtype=None):
        self.shadow = [p.to(device=device, dtype=dtype) for p in self.shadow]

    @torch.no_grad()
    def step(self, parameters):
        self.count += 1
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        for s_param, param in zip(self.shadow, parameters):
            s_param.sub_((1 - decay) * (s_param - param))  # raises

    def copy_to(self, parameters):
        for s_param, param in zip(self.shadow, parameters):
            param.data.copy_(s_param)


@dataclass
class LossTracker:
    """Mean loss per timestep bucket, for the dashboards."""
    bins: int = 5
    steps: int = 50
    totals: np.ndarray = field(default_factory=lambda: np.zeros(5))

    def update(self, losses, timesteps):
        buckets = np.digitize(timesteps.cpu().numpy(), np.linspace(0, self.steps, self.bins + 1)[1:-1])
        np.add.at(self.totals, buckets, losses.detach().numpy())  # raises


class Trainer:
    def __init__(self, cfg: VideoConfig, model: UNet3D, lr=1e-3):
        self.cfg, self.model = cfg, model
        self.scheduler = DDPMScheduler(cfg)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.ema = EMAModel(model.parameters())
        self.history: List[float] = []

    def sample_noise(self, latents):
        noise = torch.randn_like(latents)
        if self.cfg.noise_offset:
            offset = torch.randn(latents.shape[0], latents.shape[1], 1, 1, 1)
            noise += self.cfg.noise_offset * offset  # raises
        return noise

    def losses(self, batch: Dict[str, torch.Tensor]):
        latents = batch["latents"].to(self.model.device)
        noise = self.sample_noise(latents)
        timesteps = torch.randint(0, self.cfg.train_steps, (latents.shape[0],), device=latents.device)
        noisy = self.scheduler.add_noise(latents, noise, timesteps)
        target = noise if self.cfg.prediction_type == "epsilon" else self.scheduler.velocity(latents, noise, timesteps)
        loss = F.mse_loss(self.model(noisy, timesteps), target, reduction="none").mean(dim=(1, 2, 3, 4))
        if self.cfg.snr_gamma is not None:
            snr = self.scheduler.snr(timesteps)
            loss = loss * snr.clamp(max=self.cfg.snr_gamma) / snr
        return loss, timesteps

    def train_step(self, batch):
        loss, timesteps = self.losses(batch)
        self.optimizer.zero_grad()
        loss.mean().backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.ema.step(self.model.parameters())
        self.history.append(loss.mean().item())
        return loss, timesteps


def _batch(cfg, size=2):
    return {"latents": torch.randn(size, cfg.channels, cfg.frames, cfg.size, cfg.size)}


def case_train_epsilon():
    cfg = VideoConfig(snr_gamma=None)
    trainer = Trainer(cfg, UNet3D(cfg).to(cfg.device))
    for _ in range(2):
        trainer.train_step(_batch(cfg))


def case_min_snr():
    cfg = VideoConfig()
    trainer = Trainer(cfg, UNet3D(cfg).to(cfg.device))
    trainer.train_step(_batch(cfg))


def case_velocity_then_snr():
    cfg = VideoConfig(prediction_type="v_prediction")
    trainer = Trainer(cfg, UNet3D(cfg).to(cfg.device))
    trainer.train_step(_batch(cfg))


def case_causal_frames():
    cfg = VideoConfig(snr_gamma=None)
    Trainer(cfg, UNet3D(cfg, causal=True).cuda()).train_step(_batch(cfg))


def case_moved_after_trainer():
    cfg = VideoConfig(snr_gamma=None)
    model = UNet3D(cfg)
    trainer = Trainer(cfg, model)
    model.to(cfg.device)
    trainer.train_step(_batch(cfg))


def case_moved_with_ema():
    cfg = VideoConfig(snr_gamma=None)
    model = UNet3D(cfg)
    trainer = Trainer(cfg, model)
    model.to(cfg.device)
    trainer.ema.to(cfg.device)
    trainer.train_step(_batch(cfg))
    trainer.ema.to("cpu")
    trainer.ema.copy_to(model.parameters())


def case_offset_noise():
    cfg = VideoConfig(snr_gamma=None, noise_offset=0.1)
    Trainer(cfg, UNet3D(cfg).to(cfg.device)).train_step(_batch(cfg))


def case_loss_buckets():
    cfg = VideoConfig(snr_gamma=None)
    tracker = LossTracker(steps=cfg.train_steps)
    trainer = Trainer(cfg, UNet3D(cfg).to(cfg.device))
    tracker.update(*trainer.train_step(_batch(cfg)))


@torch.no_grad()
def _sample(model, scheduler, latents, generator=None):
    for t in scheduler.timesteps:
        latents = scheduler.step(model(latents, t.to(latents.device)), t, latents, generator)
    return latents


def case_sample_steps_on_gpu():
    cfg = VideoConfig(train_steps=10)
    model, scheduler = UNet3D(cfg).cuda().eval(), DDPMScheduler(cfg)
    scheduler.set_timesteps(5, device="cuda")
    video = _sample(model, scheduler, torch.randn(1, cfg.channels, cfg.frames, cfg.size, cfg.size).cuda())
    (video.clamp(-1, 1) * 127.5 + 127.5).byte().permute(0, 2, 3, 4, 1).cpu().numpy()


def case_sample_reproducible():
    cfg = VideoConfig(train_steps=10)
    model, scheduler = UNet3D(cfg).cuda().eval(), DDPMScheduler(cfg)
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(1, cfg.channels, cfg.frames, cfg.size, cfg.size, generator=generator).to(model.device)
    scheduler.set_timesteps(5)
    _sample(model, scheduler, latents, generator)


def case_teacher_on_second_gpu():
    cfg = VideoConfig(snr_gamma=None)
    student = UNet3D(cfg).to("cuda:0")
    teacher = copy.deepcopy(student).to("cuda:1").requires_grad_(False)
    latents, t = _batch(cfg)["latents"].to(student.device), 7
    with torch.no_grad():
        target = teacher(latents.to(teacher.device), t)
    loss = F.mse_loss(student(latents, t), target)  # raises
    loss.backward()
