# DDPM / DDIM / Euler samplers and the training loop around them.
from __future__ import annotations

import contextlib
import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Optional, Union

import numpy as np
import torch
from torch import nn, Tensor
import torch.nn.functional as F


def betas_for_alpha_bar(n: int, max_beta: float = 0.999) -> Tensor:
    def alpha_bar(t):
        return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    return torch.tensor([min(1 - alpha_bar((i + 1) / n) / alpha_bar(i / n), max_beta) for i in range(n)])


def timestep_embedding(t: Tensor, dim: int) -> Tensor:
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half).to(device=t.device)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], dim=-1)


class UNetish(nn.Module):
    def __init__(self, ch=4, temb=8):
        super().__init__()
        self.temb = temb
        self.inp = nn.Conv2d(ch, 8, 3, padding=1)
        self.t_mlp = nn.Sequential(nn.Linear(temb, 8), nn.SiLU(), nn.Linear(8, 8))
        self.out = nn.Conv2d(8, ch, 3, padding=1)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, x: Tensor, t: Union[Tensor, float, int]) -> Tensor:
        if not torch.is_tensor(t):
            t = torch.tensor([t], dtype=torch.long, device=x.device)
        elif t.ndim == 0:
            t = t[None].to(x.device)
        t = t.expand(x.shape[0])
        h = self.inp(x) + self.t_mlp(timestep_embedding(t, self.temb))[:, :, None, None]
        return self.out(F.silu(h))


class DDPMScheduler:
    """tables live on the host, as in diffusers"""

    def __init__(self, n=20):
        self.betas = betas_for_alpha_bar(n)
        self.alphas_cumprod = torch.cumprod(1.0 - self.betas, dim=0)
        self.timesteps = torch.arange(n - 1, -1, -1)
        self.n = n
        self.sigmas: Optional[Tensor] = None

    def set_timesteps(self, k: int, device=None):
        ts = np.linspace(0, self.n - 1, k).round()[::-1].copy().astype(np.int64)
        self.timesteps = torch.from_numpy(ts).to(device)
        sig = ((1 - self.alphas_cumprod) / self.alphas_cumprod) ** 0.5
        self.sigmas = torch.cat([sig[self.timesteps.cpu()], torch.zeros(1)])

    def add_noise(self, x0: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        ac = self.alphas_cumprod.to(device=x0.device, dtype=x0.dtype)
        timesteps = timesteps.to(x0.device)
        sa = ac[timesteps] ** 0.5
        while sa.ndim < x0.ndim:
            sa = sa.unsqueeze(-1)
        return sa * x0 + (1 - sa ** 2).clamp(min=0).sqrt() * noise

    def snr(self, timesteps: Tensor) -> Tensor:
        ac = self.alphas_cumprod
        return (ac / (1 - ac))[timesteps]  # raises

    def step(self, eps: Tensor, t, x: Tensor, generator=None) -> Tensor:
        a = self.alphas_cumprod[t]
        prev = self.alphas_cumprod[t - 1] if t > 0 else torch.tensor(1.0)
        x0 = (x - (1 - a) ** 0.5 * eps) / a ** 0.5
        return prev ** 0.5 * x0 + (1 - prev) ** 0.5 * eps

    def euler_multistep(self, outputs: list[Tensor], i: int, x: Tensor) -> Tensor:
        dt = self.sigmas[i + 1:i + 2] - self.sigmas[i:i + 1]
        return x + outputs[-1] * dt  # raises


@dataclass
class EMA:
    model: nn.Module
    decay: float = .99

    def __post_init__(self):
        self.shadow = [p.detach().clone() for p in self.model.parameters()]

    def to(self, device):
        self.shadow = [s.to(device) for s in self.shadow]

    @torch.no_grad()
    def step(self, params):
        for s, p in zip(self.shadow, params):
            s.sub_((1 - self.decay) * (s - p))  # raises

    @contextlib.contextmanager
    def swapped(self, params):
        params = list(params)
        keep = [p.data.clone() for p in params]
        for p, s in zip(params, self.shadow):
            p.data.copy_(s)
        try:
            yield
        finally:
            for p, k in zip(params, keep):
                p.data.copy_(k)


# clean
def case_ddim_loop_with_host_tables():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    unet = UNetish().to(device).eval()
    sched = DDPMScheduler()
    sched.set_timesteps(4)
    g = torch.Generator().manual_seed(0)
    latents = torch.randn(2, 4, 8, 8, generator=g).to(unet.device)
    with torch.inference_mode():
        for t in sched.timesteps:
            eps = unet(latents, t)
            latents = sched.step(eps, t, latents)    # 0-dim host alphas with gpu latents
    image = (latents / 2 + .5).clamp(0, 1).cpu().permute(0, 2, 3, 1).float().numpy()
    return image.shape


# broken
def case_min_snr_weighting():
    unet = UNetish().cuda()
    sched = DDPMScheduler()
    x0 = torch.randn(3, 4, 8, 8, device="cuda")
    noise = torch.randn_like(x0)
    t = torch.randint(0, sched.n, (x0.shape[0],), device=x0.device).long()
    pred = unet(sched.add_noise(x0, noise, t), t)
    loss = F.mse_loss(pred, noise, reduction="none").mean(dim=list(range(1, pred.ndim)))
    weight = torch.clamp(sched.snr(t), max=5.0)
    return (loss * weight).mean()


# broken
def case_euler_with_sigma_slices():
    unet = UNetish().to("cuda:0")
    sched = DDPMScheduler()
    sched.set_timesteps(3, device="cuda:0")
    x = torch.randn(1, 4, 8, 8, device=unet.device)
    hist = []
    with torch.no_grad():
        for i, t in enumerate(sched.timesteps):
            hist.append(unet(x, t))
            x = sched.euler_multistep(hist[-2:], i, x)
    return x


# clean
def case_ema_swap_eval():
    net = UNetish()
    ema = EMA(net)
    net.cuda()
    ema.to("cuda")
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    sched = DDPMScheduler()
    for _ in range(2):
        x0 = torch.rand(2, 4, 8, 8).cuda() * 2 - 1
        noise = torch.randn(x0.shape, device=x0.device)
        t = torch.randint(0, sched.n, (2,))
        loss = F.mse_loss(net(sched.add_noise(x0, noise, t), t.cuda()), noise)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        ema.step(net.parameters())
    frozen = deepcopy(net)
    with ema.swapped(net.parameters()):
        a = net(x0, 3)
    return (a - frozen(x0, 3)).abs().max().item()


# broken
def case_ema_resumed_on_host():
    net = UNetish()
    ema = EMA(net)
    net.to("cuda")
    snapshot = {"ema": [s.cpu() for s in ema.shadow], "decay": ema.decay}
    ema.shadow = [s.clone() for s in snapshot["ema"]]
    net(torch.rand(1, 4, 8, 8, device=net.device), 1).mean().backward()
    with torch.no_grad():
        for p in net.parameters():
            p.add_(p.grad, alpha=-.1)
    ema.step(net.parameters())


# clean
def case_generator_lists_follow_device():
    def randn_tensor(shape, generator=None, device=None, dtype=None):
        rand_device = device
        if generator is not None:
            kind = generator.device.type if not isinstance(generator, list) else generator[0].device.type
            if kind != torch.device(device).type and kind == "cpu":
                rand_device = "cpu"
        if isinstance(generator, list):
            shape = (1,) + tuple(shape[1:])
            out = [torch.randn(shape, generator=g, device=rand_device, dtype=dtype) for g in generator]
            return torch.cat(out, dim=0).to(device)
        return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)

    net = UNetish().cuda()
    a = randn_tensor((2, 4, 8, 8), [torch.Generator().manual_seed(i) for i in range(2)], device=net.device)
    b = randn_tensor((2, 4, 8, 8), torch.Generator("cuda").manual_seed(1), device=net.device)
    guidance = torch.tensor(7.5)
    uncond, cond = net(torch.cat([a, b]), 5).chunk(2)
    return (uncond + guidance * (cond - uncond)).mean().item()
