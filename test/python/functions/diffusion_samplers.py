"""DDPM / DDIM / karras style samplers on toy networks"""
import math
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from tqdm import tqdm
except ImportError:
    def tqdm(it, **_):
        return it


def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)  # raises
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


def linear_beta_schedule(timesteps):
    return torch.linspace(1e-4, 2e-2, timesteps, dtype=torch.float64)


class TimeMLP(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.time = nn.Linear(dim, dim)
        self.net = nn.Linear(dim, dim)
        self.dim = dim

    def embed(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
        args = t[:, None].float() * freqs[None]
        return torch.cat([args.cos(), args.sin()], -1)

    def forward(self, x, t):
        return self.net(x + self.time(self.embed(t)))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=10):
        super().__init__()
        self.model = model
        betas = linear_beta_schedule(timesteps)
        alphas_cumprod = torch.cumprod(1. - betas, dim=0)
        register_buffer = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        register_buffer("betas", betas)
        register_buffer("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        register_buffer("sqrt_one_minus_alphas_cumprod", torch.sqrt(1. - alphas_cumprod))
        self.num_timesteps = timesteps

    @property
    def device(self):
        return self.betas.device

    def q_sample(self, x_start, t, noise=None):
        noise = torch.randn_like(x_start) if noise is None else noise
        return (extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
                + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise)

    def forward(self, x):
        t = torch.randint(0, self.num_timesteps, (x.shape[0],), device=self.device).long()
        noise = torch.randn_like(x)
        return F.mse_loss(self.model(self.q_sample(x, t, noise), t), noise)


def case_ddpm_loss():
    diffusion = GaussianDiffusion(TimeMLP()).cuda()
    diffusion(torch.randn(3, 4).cuda()).backward()


class Schedule:
    """keeps the tables together; used by the trainer and by the sampler"""

    def __init__(self, T):
        self.betas = linear_beta_schedule(T).float()
        self.alpha_bars = (1 - self.betas).cumprod(0)
        self.T = T

    def add_noise(self, x0, t, eps):
        ab = extract(self.alpha_bars, t, x0.shape)
        return ab.sqrt() * x0 + (1 - ab).sqrt() * eps

    def to(self, device):
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(device))
        return self


def case_schedule_for_trainer():
    device = torch.device("cuda")
    sched, net = Schedule(10), TimeMLP().to(device)
    x = torch.randn(2, 4, device=device)
    t = torch.randint(0, sched.T, (2,), device=device)
    eps = torch.randn_like(x)
    F.mse_loss(net(sched.add_noise(x, t, eps), t), eps).backward()


def case_schedule_moved():
    device = torch.device("cuda")
    sched, net = Schedule(10), TimeMLP().to(device)
    sched.to(device)
    x = torch.randn(2, 4, device=device)
    t = torch.randint(0, sched.T, (2,), device=device)
    F.mse_loss(net(sched.add_noise(x, t, torch.randn_like(x)), t), x).backward()


@torch.no_grad()
def p_sample_loop(net, sched, shape, device):
    img = torch.randn(shape, device=device)
    for i in tqdm(reversed(range(sched.T)), total=sched.T, disable=True):
        t = torch.full((shape[0],), i, device=device, dtype=torch.long)
        beta, ab = sched.betas[i], sched.alpha_bars[i]
        eps = net(img, t)
        img = (img - beta / (1 - ab).sqrt() * eps) / (1 - beta).sqrt()
        if i > 0:
            img = img + beta.sqrt() * torch.randn_like(img)
    return img


def case_ancestral_sampling():
    net = TimeMLP().to("cuda:2").eval()
    images = p_sample_loop(net, Schedule(5), (2, 4), "cuda:2")
    return images.cpu().numpy()


@dataclass
class SamplerConfig:
    steps: int = 4
    eta: float = 0.0
    device: str = "cuda"
    extra: dict = field(default_factory=dict)


class DDIMSampler:
    def __init__(self, net, cfg: SamplerConfig):
        self.net, self.cfg = net, cfg

    def make_schedule(self):
        ab = np.cumprod(1 - np.linspace(1e-4, 2e-2, 20))
        idx = np.linspace(0, 19, self.cfg.steps).round().astype(int)
        to_torch = lambda x: torch.from_numpy(x.copy()).float().to(self.cfg.device)
        self.ddim_timesteps = idx
        self.alphas = to_torch(ab[idx])
        self.alphas_prev = torch.from_numpy(np.append(1.0, ab[idx[:-1]])).float()

    def step(self, x, i):
        t = torch.full((len(x),), int(self.ddim_timesteps[i]), device=x.device)
        a = self.alphas.index_select(0, torch.tensor([i], device=x.device))
        a_prev = self.alphas_prev[i:i + 1]
        e = self.net(x, t)
        pred_x0 = (x - (1 - a).sqrt() * e) / a.sqrt()
        return a_prev.sqrt() * pred_x0 + (1 - a_prev).sqrt() * e  # raises

    @torch.no_grad()
    def sample(self, n):
        self.make_schedule()
        x = torch.randn(n, 4, device=self.cfg.device)
        for i in range(self.cfg.steps)[::-1]:
            x = self.step(x, i)
        return x


def case_ddim():
    cfg = SamplerConfig(steps=3)
    DDIMSampler(TimeMLP().to(cfg.device), cfg).sample(2)


def karras_sigmas(n, sigma_min=0.1, sigma_max=10., rho=7., device="cpu"):
    ramp = torch.linspace(0, 1, n)
    lo, hi = sigma_min ** (1 / rho), sigma_max ** (1 / rho)
    sigmas = (hi + ramp * (lo - hi)) ** rho
    return torch.cat([sigmas, sigmas.new_zeros([1])]).to(device)


def to_d(x, sigma, denoised):
    return (x - denoised) / sigma[(...,) + (None,) * (x.ndim - sigma.ndim)]


@torch.no_grad()
def sample_euler(model, x, sigmas, callback=None):
    s_in = x.new_ones([x.shape[0]])
    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i] * s_in)
        d = to_d(x, sigmas[i] * s_in, denoised)
        if callback is not None:
            callback({"x": x, "i": i, "sigma": sigmas[i]})
        x = x + d * (sigmas[i + 1] - sigmas[i])
    return x


def case_euler_with_host_sigmas():
    model = TimeMLP().cuda()
    trace = []
    x = torch.randn(2, 4, device="cuda") * 10
    sample_euler(model, x, karras_sigmas(4), callback=lambda info: trace.append(float(info["sigma"])))
    assert trace == sorted(trace, reverse=True)


def case_heun_two_stage():
    model = TimeMLP().cuda()
    sigmas = karras_sigmas(4)
    x = torch.randn(2, 4).cuda()
    sigma_batch = sigmas[:-1].unsqueeze(1).repeat(1, 2)
    for s in sigma_batch:
        denoised = model(x, s.to(x.device))
        x = x + (x - denoised) / s[:, None]  # raises
    return x


def randn_tensor(shape, generator=None, device=None, dtype=None):
    """as in diffusers: sample where the generator lives, then move"""
    rand_device = device
    device = device or torch.device("cpu")
    if generator is not None:
        gen_type = generator.device.type
        if gen_type != torch.device(device).type and gen_type == "cpu":
            rand_device = "cpu"
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


def case_seeded_latents():
    gen = torch.Generator().manual_seed(0)
    latents = randn_tensor((1, 4), generator=gen, device=torch.device("cuda:0"))
    return TimeMLP().to("cuda:0")(latents, torch.zeros(1, device="cuda:0"))


def case_seeded_noise_for_mask():
    generator = torch.Generator().manual_seed(42)
    net = TimeMLP().to("cuda")
    image = torch.randn(1, 4, device="cuda")
    noise = torch.randn(image.shape, generator=generator, device=image.device)  # raises
    return net(image + 0.1 * noise, torch.zeros(1, device="cuda"))


def case_cfg_two_branches():
    """classifier free guidance with the conditioning cached by the text encoder"""
    text_encoder = nn.Embedding(10, 4).to("cuda:1")
    unet = TimeMLP().to("cuda:0")
    cond = text_encoder(torch.tensor([[1, 2]]).to("cuda:1")).mean(1)
    uncond = torch.zeros_like(cond)
    context = torch.cat([uncond, cond])
    latents = torch.randn(1, 4, device="cuda:0")
    t = torch.tensor([3], device="cuda:0")
    eps = unet(torch.cat([latents] * 2) + context, t)  # raises
    e_u, e_c = eps.chunk(2)
    return e_u + 7.5 * (e_c - e_u)


def case_snr_weights():
    sched = Schedule(10)
    snr = sched.alpha_bars / (1 - sched.alpha_bars)
    timesteps = torch.randint(0, 10, (3,), device="cuda")
    losses = torch.rand(3, device="cuda", requires_grad=True)
    w = torch.stack([snr[t] for t in timesteps])
    w = torch.minimum(w, torch.full_like(w, 5.0)) / w
    (losses * w.to(losses.device)).mean().backward()
    weight = snr[timesteps]  # raises
    return weight
