"""Generative audio and image experiments."""
import contextlib
import functools
import inspect
import math
from abc import ABC, abstractmethod
from typing import Callable, Optional, Sequence, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def linear_beta_schedule(timesteps):
    return torch.linspace(1e-4, 0.02, timesteps)


def cosine_beta_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1, dtype=torch.float64)
    ac = torch.cos((x / timesteps + s) / (1 + s) * math.pi * 0.5) ** 2
    ac = ac / ac[0]
    return torch.clip(1 - ac[1:] / ac[:-1], 0, 0.999).float()


def extract(a, t, x_shape):
    out = a.gather(-1, t)
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


def extract_host(a, t, x_shape):
    out = a.gather(-1, t.cpu())
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).to(t.device)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half, device=t.device) * -(math.log(10000) / (half - 1)))
        args = t[:, None] * freqs[None]
        return torch.cat((args.sin(), args.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, ch=4, dim=8):
        super().__init__()
        self.time = nn.Sequential(SinusoidalPosEmb(dim), nn.Linear(dim, ch), nn.SiLU())
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        return self.out(F.silu(self.inp(x) + self.time(t)[..., None, None]))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=10, schedule: Callable = linear_beta_schedule):
        super().__init__()
        self.model = model
        self.T = timesteps
        betas = schedule(timesteps)
        alphas = 1.0 - betas
        acp = alphas.cumprod(0)
        reg = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        reg("betas", betas)
        reg("alphas_cumprod", acp)
        reg("sqrt_acp", acp.sqrt())
        reg("sqrt_1m_acp", (1 - acp).sqrt())
        self.loss_weight = acp / (1 - acp)

    def q_sample(self, x0, t, noise=None):
        noise = torch.randn_like(x0) if noise is None else noise
        return extract(self.sqrt_acp, t, x0.shape) * x0 + extract(self.sqrt_1m_acp, t, x0.shape) * noise

    def forward(self, x0):
        t = torch.randint(0, self.T, (x0.size(0),), device=x0.device).long()
        noise = torch.randn_like(x0)
        pred = self.model(self.q_sample(x0, t, noise), t)
        return F.mse_loss(pred, noise)

    def weighted(self, x0):
        t = torch.randint(0, self.T, (x0.size(0),), device=x0.device)
        noise = torch.randn_like(x0)
        per = (self.model(self.q_sample(x0, t, noise), t) - noise).pow(2).flatten(1).mean(1)
        return (per * extract_host(self.loss_weight, t, (1,))).mean()

    @torch.no_grad()
    def p_sample_loop(self, shape):
        device = self.betas.device
        x = torch.randn(shape, device=device)
        for i in reversed(range(self.T)):
            t = torch.full((shape[0],), i, device=device, dtype=torch.long)
            eps = self.model(x, t)
            b = self.betas[i]
            x = (x - b / self.sqrt_1m_acp[i] * eps) / (1 - b).sqrt()
            if i:
                x = x + b.sqrt() * torch.randn_like(x)
        return (x.clamp(-1, 1) + 1) / 2


def case_ddpm_train_and_sample():
    diffusion = GaussianDiffusion(Denoiser(), schedule=cosine_beta_schedule).to("cuda")
    x = torch.rand(2, 1, 8, 8, device="cuda") * 2 - 1
    (diffusion(x) + diffusion.weighted(x)).backward()
    return diffusion.p_sample_loop((2, 1, 8, 8)).cpu().numpy().mean()


class MinSNRDiffusion(GaussianDiffusion):
    def __init__(self, *args, gamma=5.0, **kwargs):
        super().__init__(*args, **kwargs)
        snr = self.alphas_cumprod / (1 - self.alphas_cumprod)
        self.snr_weight = snr.clamp(max=gamma) / snr

    def forward(self, x0):
        t = torch.randint(0, self.T, (x0.size(0),), device=x0.device).long()
        noise = torch.randn_like(x0)
        pred = self.model(self.q_sample(x0, t, noise), t)
        per = (pred - noise).square().mean(dim=list(range(1, x0.ndim)))
        w = self.snr_weight[t]  # raises
        return (per * w).mean()


def case_min_snr_weights():
    diffusion = MinSNRDiffusion(Denoiser()).to("cuda")
    return diffusion(torch.rand(2, 1, 8, 8, device="cuda"))


class DDIMScheduler:
    """Tables stay on the host; only the values of a step are used."""

    def __init__(self, num_train=10):
        self.alphas_cumprod = torch.cumprod(1 - linear_beta_schedule(num_train), 0)
        self.final_alpha = torch.tensor(1.0)
        self.num_train = num_train
        self.timesteps = torch.from_numpy(np.arange(0, num_train)[::-1].copy())

    def set_timesteps(self, n, device=None):
        step = self.num_train // n
        self.step_size = step
        self.timesteps = torch.from_numpy((np.arange(0, n) * step)[::-1].copy()).to(device)

    def step(self, eps, t, x):
        prev = t - self.step_size
        a_t = self.alphas_cumprod[t]
        a_p = self.alphas_cumprod[prev] if prev >= 0 else self.final_alpha
        x0 = (x - (1 - a_t) ** 0.5 * eps) / a_t ** 0.5
        return a_p ** 0.5 * x0 + (1 - a_p) ** 0.5 * eps

    def add_noise(self, x0, noise, timesteps):
        acp = self.alphas_cumprod.to(device=x0.device, dtype=x0.dtype)
        timesteps = timesteps.to(x0.device)
        s = acp[timesteps] ** 0.5
        while s.ndim < x0.ndim:
            s = s.unsqueeze(-1)
        return s * x0 + (1 - s * s) ** 0.5 * noise

    def get_velocity(self, x0, noise, timesteps):
        a = self.alphas_cumprod[timesteps.cpu()].view(-1, 1, 1, 1)
        return a.sqrt() * noise - (1 - a).sqrt() * x0  # raises


@torch.no_grad()
def case_ddim_loop_with_host_tables():
    net = Denoiser().cuda().eval()
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(5)
    latents = torch.randn(2, 1, 8, 8).to("cuda")
    for t in scheduler.timesteps:
        eps = net(latents, t.expand(2).to(latents.device))
        latents = scheduler.step(eps, t, latents)
    noisy = scheduler.add_noise(latents, torch.randn_like(latents), torch.tensor([3, 7]))
    return noisy.float().std()


def case_v_prediction_target():
    scheduler = DDIMScheduler()
    x0 = torch.randn(2, 1, 8, 8, device="cuda")
    noise = torch.randn(x0.shape, device=x0.device, dtype=x0.dtype)
    t = torch.randint(0, scheduler.num_train, (2,), device=x0.device)
    noisy = scheduler.add_noise(x0, noise, t)
    return F.mse_loss(Denoiser().cuda()(noisy, t), scheduler.get_velocity(x0, noise, t))


def randn_tensor(shape, generator=None, device=None, dtype=None):
    rand_device = device
    if generator is not None:
        gen_device = generator.device.type
        if gen_device != torch.device(device).type and gen_device == "cpu":
            rand_device = "cpu"
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


def case_latents_from_host_generator():
    g = torch.Generator().manual_seed(0)
    latents = randn_tensor((1, 1, 8, 8), generator=g, device="cuda")
    return Denoiser().to(latents.device)(latents, torch.zeros(1, device="cuda"))


def case_latents_generator_type():
    g = torch.Generator()
    g.manual_seed(42)
    net = Denoiser().to("cuda")
    latents = torch.randn((1, 1, 8, 8), device="cuda", generator=g)  # raises
    return net(latents, torch.ones(1, device="cuda"))


def case_guidance_with_repeated_condition():
    device = torch.device("cuda:1")
    net = Denoiser().to(device)
    cond = torch.randn(2, 1, 8, 8, device=device)
    uncond = torch.zeros(2, 1, 8, 8)
    t = torch.tensor([4]).to(device).repeat(4)
    eps = net(torch.cat([uncond, cond]), t)  # raises
    e_u, e_c = eps.chunk(2)
    return e_u + 7.5 * (e_c - e_u)


# ------------------------------------------------------------------ audio


def hz_to_mel(f):
    return 2595.0 * np.log10(1.0 + f / 700.0)


@functools.lru_cache(maxsize=None)
def mel_filters(n_mels, n_fft, sr, device):
    pts = np.linspace(hz_to_mel(0), hz_to_mel(sr / 2), n_mels + 2)
    hz = 700 * (10 ** (pts / 2595) - 1)
    freqs = np.linspace(0, sr / 2, n_fft // 2 + 1)
    up = (freqs[None] - hz[:-2, None]) / np.diff(hz)[:-1, None]
    down = (hz[2:, None] - freqs[None]) / np.diff(hz)[1:, None]
    return torch.from_numpy(np.maximum(0, np.minimum(up, down))).float().to(device)


@functools.lru_cache(maxsize=None)
def resample_kernel(orig, new, width=4):
    idx = torch.arange(-width, width + 1, dtype=torch.float32) / orig
    phase = torch.arange(0, -new, -1, dtype=torch.float32)[:, None] / new
    t = (phase + idx[None]) * min(orig, new) * 0.95
    k = torch.where(t == 0, torch.ones_like(t), torch.sin(math.pi * t) / (math.pi * t))
    return k[:, None]


def log_mel(audio, n_fft=32, hop=16, n_mels=6, sr=8000):
    window = torch.hann_window(n_fft).to(audio.device)
    frames = audio.unfold(-1, n_fft, hop) * window
    power = torch.fft.rfft(frames).abs() ** 2
    mel = power @ mel_filters(n_mels, n_fft, sr, audio.device).T
    return torch.clamp(mel, min=1e-10).log10().transpose(-1, -2)


def case_log_mel_cached_per_device():
    wave = torch.randn(2, 160)
    return [log_mel(wave.to(d)).mean().item() for d in ("cpu", "cuda:0", "cuda:1", "cuda:0")]


def resample(wave, orig, new):
    k = resample_kernel(orig, new)
    n = (k.size(-1) - 1) // 2
    padded = F.pad(wave[:, None], (n, n + orig))
    return F.conv1d(padded, k, stride=orig).transpose(1, 2).reshape(wave.size(0), -1)  # raises


def case_resample_host_then_gpu():
    wave = torch.randn(2, 64)
    reference = resample(wave, 4, 3)
    return resample(wave.cuda(), 4, 3).cpu() - reference


class SpecAugment(nn.Module):
    def __init__(self, time_mask=4, freq_mask=2):
        super().__init__()
        self.time_mask, self.freq_mask = time_mask, freq_mask

    @staticmethod
    def _span(length, width, device):
        start = torch.randint(0, length - width, ()).item()
        pos = torch.arange(length, device=device)
        return (pos >= start) & (pos < start + width)

    def forward(self, spec):
        if not self.training:
            return spec
        f = self._span(spec.size(-2), self.freq_mask, spec.device)
        t = self._span(spec.size(-1), self.time_mask, None)
        spec = spec.masked_fill(f[:, None], 0.0)
        spec[..., t] = 0.0
        return spec


def case_spec_augment_index_mask():
    aug = SpecAugment().train()
    return aug(torch.randn(2, 6, 10).cuda()).sum()


class TimeStretch(nn.Module):
    def __init__(self, hop=16, n_freq=17):
        super().__init__()
        self.register_buffer("phase_advance", torch.linspace(0, math.pi * hop, n_freq)[..., None])

    def forward(self, spec, rate):
        steps = torch.arange(0, spec.size(-1) - 1, rate, device=spec.device)
        left = spec[..., steps.long()]
        right = spec[..., (steps + 1).long()]
        alpha = steps % 1.0
        mag = alpha * right.abs() + (1 - alpha) * left.abs()
        phase = torch.cumsum(right.angle() - left.angle() - self.phase_advance, -1)
        return torch.polar(mag, phase)


class RandomTimeStretch:
    def __init__(self, low=0.8, high=1.2):
        self.low, self.high = low, high
        self.stretch = TimeStretch()

    def __call__(self, spec):
        rate = float(torch.empty(1).uniform_(self.low, self.high))
        return self.stretch(spec, rate)


def case_time_stretch_plain_wrapper():
    spec = torch.view_as_complex(torch.randn(1, 17, 12, 2)).to("cuda")
    direct = TimeStretch().to("cuda")(spec, 1.1)
    augment = RandomTimeStretch()
    augment.stretch.to(spec.device)
    return direct.abs().mean() + augment(spec).abs().mean()


class PitchTracker(nn.Module):
    def __init__(self, bins=12):
        super().__init__()
        self.proj = nn.Linear(16, bins)
        self.centers = nn.Parameter(torch.linspace(50.0, 500.0, bins), requires_grad=False)
        self.notes = torch.linspace(50.0, 500.0, 48)

    def forward(self, frames):
        p = self.proj(frames).softmax(-1)
        return (p * self.centers).sum(-1)

    def nearest_note(self, frames):
        f0 = self(frames)
        return (f0[..., None] - self.notes).abs().argmin(-1)  # raises


def case_pitch_nearest_note():
    tracker = PitchTracker().cuda()
    frames = torch.randn(1, 5, 16, device=next(tracker.parameters()).device)
    smooth = tracker(frames)
    return tracker.nearest_note(frames), smooth


def ctc_collate(items):
    feats = nn.utils.rnn.pad_sequence([f for f, _ in items], batch_first=True)
    targets = torch.cat([t for _, t in items])
    return feats, targets, torch.tensor([len(f) for f, _ in items]), torch.tensor([len(t) for _, t in items])


def case_ctc_lengths_on_host():
    items = [(torch.randn(n, 6), torch.randint(1, 5, (3,))) for n in (9, 7)]
    feats, targets, feat_len, target_len = ctc_collate(items)
    net = nn.Linear(6, 5).cuda()
    logp = net(feats.cuda()).log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(logp, targets, feat_len, target_len)


class VectorQuantizer(nn.Module):
    def __init__(self, n=8, dim=4):
        super().__init__()
        self.codebook = nn.Embedding(n, dim)
        self.usage = torch.zeros(n)

    def forward(self, z):
        flat = z.reshape(-1, z.size(-1))
        idx = torch.cdist(flat, self.codebook.weight).argmin(-1)
        q = self.codebook(idx).view_as(z)
        if self.training:
            self.usage = self.usage * 0.99 + torch.bincount(idx, minlength=len(self.usage)).cpu() * 0.01
        return z + (q - z).detach(), idx

    def dead_codes(self):
        return self.usage < 1e-3

    def revive(self, z):
        flat = z.reshape(-1, z.size(-1))
        dead = self.dead_codes().nonzero().flatten()
        pick = torch.randint(0, flat.size(0), (len(dead),))
        with torch.no_grad():
            self.codebook.weight[dead] = flat[pick]


def case_vq_usage_on_host():
    vq = VectorQuantizer().cuda().train()
    z = torch.randn(2, 5, 4, device="cuda")
    out, idx = vq(z)
    vq.revive(z)
    return out.mean(), idx
