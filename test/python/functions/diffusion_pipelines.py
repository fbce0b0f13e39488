"""Parts of a library for diffusion models: schedulers, samplers, training helpers."""
import copy
import inspect
import math
from dataclasses import dataclass
from typing import Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class SchedulerConfig:
    train_steps: int = 20
    beta_start: float = 1e-3
    beta_end: float = 2e-2
    schedule: str = "linear"
    prediction: str = "epsilon"
    thresholding: bool = False

@dataclass
class StepOutput:
    prev_sample: torch.Tensor
    pred_original: Optional[torch.Tensor] = None

def make_betas(cfg: SchedulerConfig):
    if cfg.schedule == "linear":
        return torch.linspace(cfg.beta_start, cfg.beta_end, cfg.train_steps)
    t = np.arange(cfg.train_steps + 1, dtype=np.float64) / cfg.train_steps
    bar = np.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    return torch.from_numpy(np.clip(1 - bar[1:] / bar[:-1], 0, 0.999)).float()

def extract(table, t, shape):
    return table.gather(0, t).view(-1, *([1] * (len(shape) - 1)))  # raises

def append_dims(x, like):
    return x[(...,) + (None,) * (like.ndim - x.ndim)]

def mean_flat(x):
    return x.mean(dim=list(range(1, x.ndim)))

def randn_tensor(shape, generator=None, device="cpu"):
    where = generator.device if generator is not None else device
    return torch.randn(shape, generator=generator, device=where).to(device)

class SchedulerMixin:
    order = 1
    init_noise_sigma = 1.0
    def __init__(self, **kwargs):
        self.config = SchedulerConfig(**kwargs)
        self.betas = make_betas(self.config)
        self.alphas_cumprod = torch.cumprod(1.0 - self.betas, dim=0)
        self.final = torch.tensor(1.0)
        self.timesteps = torch.arange(self.config.train_steps).flip(0)
    def set_timesteps(self, steps, device=None):
        grid = np.linspace(0, self.config.train_steps - 1, steps).round()[::-1].copy()
        self.timesteps = torch.from_numpy(grid).long().to(device)
        self.steps = steps
    def scale_model_input(self, sample, t):
        return sample
    def add_noise(self, x, noise, t):
        self.alphas_cumprod = self.alphas_cumprod.to(x.device)
        bar = append_dims(self.alphas_cumprod[t.to(x.device)], x)
        return bar.sqrt() * x + (1 - bar).sqrt() * noise
    def previous(self, t):
        return t - self.config.train_steps // self.steps
    def threshold(self, x, quantile=0.9):
        limit = torch.quantile(x.flatten(1).abs(), quantile, dim=1).clamp(min=1.0)
        limit = append_dims(limit, x)
        return torch.max(torch.min(x, limit), -limit) / limit
    def bars(self, t):
        p = self.previous(t)
        return self.alphas_cumprod[t], self.alphas_cumprod[p] if p >= 0 else self.final

class DDIMScheduler(SchedulerMixin):
    def step(self, eps, t, sample, eta=0.0, generator=None, noise=None):
        now, prev = self.bars(t)
        origin = (sample - (1 - now).sqrt() * eps) / now.sqrt()
        if self.config.thresholding:
            origin = self.threshold(origin)
        std = eta * ((1 - prev) / (1 - now) * (1 - now / prev)).sqrt()
        out = prev.sqrt() * origin + (1 - prev - std ** 2).sqrt() * eps
        if eta > 0:
            noise = torch.randn(eps.shape, generator=generator) if noise is None else noise
            out = out + std * noise  # raises
        return StepOutput(out, origin)

class DDPMScheduler(SchedulerMixin):
    def step(self, eps, t, sample, generator=None):
        now, prev = self.bars(t)
        beta = 1 - now / prev
        mean = (sample - beta / (1 - now).sqrt() * eps) / (1 - beta).sqrt()
        if t > 0:
            mean = mean + beta.sqrt() * randn_tensor(eps.shape, generator, eps.device)
        return StepOutput(mean)

class EulerScheduler(SchedulerMixin):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.sigmas = ((1 - self.alphas_cumprod) / self.alphas_cumprod).sqrt()
        self.log_sigmas = self.sigmas.log()
    def set_timesteps(self, steps, device=None):
        super().set_timesteps(steps, device)
        chosen = self.sigmas.numpy()[self.timesteps.cpu().numpy()]
        self.sigmas_now = torch.from_numpy(np.append(chosen, 0.0).astype(np.float32)).to(device)
    @property
    def init_noise_sigma(self):
        return self.sigmas_now.max()
    def index(self, t):
        return (self.timesteps == t).nonzero().item()  # raises
    def scale_model_input(self, sample, t):
        return sample / (self.sigmas_now[self.index(t)] ** 2 + 1).sqrt()
    def step(self, eps, t, sample, generator=None):
        i = self.index(t)
        return StepOutput(sample + eps * (self.sigmas_now[i + 1] - self.sigmas_now[i]))
    def sigma_to_t(self, sigma):
        dist = sigma.log()[None] - self.log_sigmas[:, None]  # raises
        return dist.abs().argmin(dim=0)

class MultistepScheduler(SchedulerMixin):
    order = 2
    def __init__(self, keep_on_host=False, **kwargs):
        super().__init__(**kwargs)
        self.keep_on_host, self.outputs = keep_on_host, []
    def step(self, eps, t, sample, generator=None):
        self.outputs.append(eps.cpu() if self.keep_on_host else eps)
        if len(self.outputs) > 1:
            eps = torch.lerp(self.outputs[-2], eps, 1.5)  # raises
        now, prev = self.bars(t)
        origin = (sample - (1 - now).sqrt() * eps) / now.sqrt()
        return StepOutput(prev.sqrt() * origin + (1 - prev).sqrt() * eps)

SCHEDULERS = {"ddim": DDIMScheduler, "ddpm": DDPMScheduler, "euler": EulerScheduler, "multistep": MultistepScheduler}

class TimeEmbedding(nn.Module):
    def __init__(self, dim, kind="sinusoidal"):
        super().__init__()
        self.kind, self.dim = kind, dim
        self.freqs = torch.exp(-math.log(1e4) * torch.arange(dim // 2) / (dim // 2))
        if kind == "fourier":
            self.weight = nn.Parameter(torch.randn(dim // 2), requires_grad=False)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU())
    def forward(self, t):
        freqs = self.weight if self.kind == "fourier" else self.freqs.to(t.device)
        args = t.float()[:, None] * freqs[None]
        return self.mlp(torch.cat([args.sin(), args.cos()], dim=-1))

class ScaleShift(nn.Module):
    def __init__(self, channels, dim):
        super().__init__()
        self.norm, self.proj = nn.GroupNorm(2, channels), nn.Linear(dim, channels * 2)
    def forward(self, x, emb):
        scale, shift = self.proj(emb)[:, :, None, None].chunk(2, dim=1)
        return self.norm(x) * (1 + scale) + shift

class TinyUNet(nn.Module):
    def __init__(self, channels=4, dim=8, classes=None, kind="sinusoidal", blocks=2, track=False):
        super().__init__()
        self.time = TimeEmbedding(dim, kind)
        self.label = nn.Embedding(classes + 1, dim) if classes else None
        self.inp, self.out = nn.Conv2d(2, channels, 3, padding=1), nn.Conv2d(channels, 2, 3, padding=1)
        self.mods = nn.ModuleList(ScaleShift(channels, dim) for _ in range(blocks))
        self.skips = [nn.Conv2d(channels, channels, 1) for _ in range(blocks)] if track else []
    @property
    def device(self):
        return next(self.parameters()).device
    def forward(self, x, t, y=None, context=None):
        if not torch.is_tensor(t):
            t = torch.tensor([t], device=x.device)
        emb = self.time(t.to(x.device).expand(len(x)))
        if self.label is not None and y is not None:
            emb = emb + self.label(y)  # raises
        h = self.inp(x)
        for i, mod in enumerate(self.mods):
            h = F.silu(mod(h, emb))
            h = h + self.skips[i](h) if self.skips else h  # raises
        return self.out(h)

class EMA:
    def __init__(self, model, decay=0.9, device=None, copy_buffers=True):
        self.decay, self.updates = decay, torch.tensor(0)
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}
        if device is not None:
            self.shadow = {k: v.to(device) for k, v in self.shadow.items()}
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, float((1 + self.updates) / (10 + self.updates)))
        for name, value in model.state_dict().items():
            self.shadow[name].mul_(decay).add_(value, alpha=1 - decay)  # raises
    def copy_to(self, model):
        model.load_state_dict(self.shadow)
        return model

class LossAwareSampler:
    def __init__(self, steps, history=2):
        self.losses = np.zeros((steps, history))
        self.counts = np.zeros(steps, dtype=int)
    def weights(self):
        w = np.sqrt((self.losses ** 2).mean(-1)) + 1e-3
        return w / w.sum()
    def sample(self, batch, device):
        p = self.weights()
        index = np.random.choice(len(p), size=(batch,), p=p)
        return torch.from_numpy(index).long().to(device), torch.from_numpy(1 / (len(p) * p[index])).float().to(device)
    def update(self, t, losses):
        for step, loss in zip(t, losses):
            self.losses[step, self.counts[step] % 2] = loss
            self.counts[step] += 1
    def update_all(self, t, losses):
        self.losses[t.cpu().numpy(), 0] = losses.detach()  # raises

class SNRWeight:
    def __init__(self, scheduler, gamma=5.0):
        bar = scheduler.alphas_cumprod
        self.snr, self.gamma = bar / (1 - bar), gamma
    def __call__(self, t):
        snr = self.snr[t]  # raises
        return snr.clamp(max=self.gamma) / snr

class HostSNRWeight(SNRWeight):
    def __call__(self, t):
        return super().__call__(t.cpu()).to(t.device)

class Trainer:
    def __init__(self, model, scheduler, weight=None, drop_label=0.0, ema=None, sampler=None):
        self.model, self.scheduler, self.weight, self.drop, self.ema = model, scheduler, weight, drop_label, ema
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        self.sampler, self.null = sampler, None
    def times(self, batch):
        device = self.model.device
        if self.sampler is None:
            return torch.randint(0, self.scheduler.config.train_steps, (batch,), device=device), None
        return self.sampler.sample(batch, device)
    def labels(self, y):
        if self.drop:
            mask = torch.rand(len(y)) < self.drop
            y = y.clone()
            y[mask] = self.model.label.num_embeddings - 1
        return y
    def step(self, x, y=None):
        t, extra = self.times(len(x))
        noise = torch.randn_like(x)
        y = self.labels(y) if y is not None else None
        pred = self.model(self.scheduler.add_noise(x, noise, t), t, y)
        losses = mean_flat((pred - noise) ** 2)
        if self.sampler is not None:
            self.sampler.update(t, losses)
            losses = losses * extra
        loss = (losses * (1 if self.weight is None else self.weight(t))).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.ema is not None:
            self.ema.update(self.model)
        return loss.item()

class GaussianDiffusion:
    def __init__(self, steps=20, schedule="cosine"):
        self.alphas_cumprod = torch.cumprod(1 - make_betas(SchedulerConfig(steps, schedule=schedule)), 0)
        self.tables = {"sqrt_bar": self.alphas_cumprod.sqrt(), "sqrt_one": (1 - self.alphas_cumprod).sqrt()}
    def to(self, device):
        self.alphas_cumprod = self.alphas_cumprod.to(device)
        return self
    def to_all(self, device):
        self.tables = {k: v.to(device) for k, v in self.tables.items()}
        return self.to(device)
    def q_sample(self, x, t, noise):
        return extract(self.tables["sqrt_bar"], t, x.shape) * x + extract(self.tables["sqrt_one"], t, x.shape) * noise

class Guidance:
    def __init__(self, model, scale=2.0, rescale=0.0, null=None):
        self.model, self.scale, self.rescale, self.null = model, scale, torch.tensor(rescale), null
    def __call__(self, x, t, y):
        null = torch.full_like(y, self.model.label.num_embeddings - 1)
        uncond, cond = self.model(torch.cat([x, x]), t, torch.cat([null, y])).chunk(2)
        eps = uncond + self.scale * (cond - uncond)
        ratio = cond.std(dim=(1, 2, 3), keepdim=True) / eps.std(dim=(1, 2, 3), keepdim=True)
        return self.rescale * (eps * ratio) + (1 - self.rescale) * eps

class Pipeline:
    def __init__(self, model, scheduler, device=None):
        self.model, self.scheduler = model, scheduler
        self.device = torch.device(device) if device is not None else model.device
    def extra_kwargs(self, eta, generator):
        accepted = inspect.signature(self.scheduler.step).parameters
        return {k: v for k, v in {"eta": eta, "generator": generator}.items() if k in accepted}
    @torch.no_grad()
    def __call__(self, batch=2, steps=4, eta=0.0, generator=None, y=None, timesteps_on=None, mask=None, known=None):
        self.scheduler.set_timesteps(steps, self.device)
        x = randn_tensor((batch, 2, 6, 6), generator, self.device) * self.scheduler.init_noise_sigma
        times = self.scheduler.timesteps if timesteps_on is None else self.scheduler.timesteps.tolist()
        for t in times:
            inp = self.scheduler.scale_model_input(x, t)
            eps = self.model(inp, t) if y is None else self.model(inp, t, y)
            x = self.scheduler.step(eps, t, x, **self.extra_kwargs(eta, generator)).prev_sample
            if mask is not None:
                x = mask * known + (1 - mask) * x  # raises
        return (x / 2 + 0.5).clamp(0, 1)
    def images(self, **kwargs):
        return (self(**kwargs).permute(0, 2, 3, 1) * 255).round().cpu().numpy().astype("uint8")

def heun(model, x, sigmas):
    for now, after in zip(sigmas[:-1], sigmas[1:]):
        d = model(x / (now ** 2 + 1).sqrt(), 1)
        trial = x + d * (after - now)
        x = trial if after == 0 else x + (d + model(trial, 1)) / 2 * (after - now)
    return x

def karras(n, low=0.1, high=2.0, rho=7.0, device="cpu"):
    ramp = torch.linspace(0, 1, n)
    sigmas = (high ** (1 / rho) + ramp * (low ** (1 / rho) - high ** (1 / rho))) ** rho
    return torch.cat([sigmas, sigmas.new_zeros([1])]).to(device)

def images(n=3, device="cuda"):
    return torch.rand(n, 2, 6, 6, device=device)

def case_train_snr_weight():
    scheduler = DDPMScheduler()
    return Trainer(TinyUNet().cuda(), scheduler, weight=SNRWeight(scheduler)).step(images())
def case_train_snr_weight_on_host():
    scheduler = DDPMScheduler(schedule="cosine")
    return Trainer(TinyUNet().cuda(), scheduler, weight=HostSNRWeight(scheduler)).step(images())
def case_train_ema_before_move():
    model = TinyUNet()
    ema = EMA(model)
    return Trainer(model.cuda(), DDPMScheduler(), ema=ema).step(images())
def case_train_ema_then_copied():
    model = TinyUNet(kind="fourier").to("cuda:1")
    ema = EMA(model)
    Trainer(model, DDPMScheduler(), ema=ema).step(images(device="cuda:1"))
    return ema.copy_to(TinyUNet(kind="fourier"))(images(device="cpu"), 3).detach().numpy().sum()
def case_train_labels_dropped():
    trainer = Trainer(TinyUNet(classes=3).cuda(), DDPMScheduler(), drop_label=0.5)
    return trainer.step(images(), torch.tensor([0, 1, 2]).cuda())
def case_train_labels_of_loader():
    trainer = Trainer(TinyUNet(classes=3).cuda(), DDPMScheduler(), drop_label=0.5)
    return trainer.step(images(), torch.tensor([0, 1, 2]))
def case_train_loss_aware():
    return Trainer(TinyUNet().cuda(), DDPMScheduler(), sampler=LossAwareSampler(20)).step(images())
def case_loss_aware_all():
    sampler = LossAwareSampler(20)
    t, weights = sampler.sample(4, "cuda")
    return sampler.update_all(t, weights * 2)
def case_unet_with_skips():
    return TinyUNet(track=True).cuda()(images(), 3)
def case_diffusion_moved():
    t = torch.randint(0, 20, (3,), device="cuda")
    return GaussianDiffusion().to("cuda").q_sample(images(), t, images())
def case_diffusion_moved_with_tables():
    t = torch.randint(0, 20, (3,), device="cuda:2")
    return GaussianDiffusion().to_all("cuda:2").q_sample(images(device="cuda:2"), t, images(device="cuda:2"))
def case_ddim():
    return Pipeline(TinyUNet().cuda(), SCHEDULERS["ddim"](thresholding=True)).images()
def case_ddim_with_eta():
    return Pipeline(TinyUNet().cuda(), SCHEDULERS["ddim"]())(eta=0.5)
def case_ddpm_generator_on_host():
    return Pipeline(TinyUNet().to("cuda:3"), SCHEDULERS["ddpm"]()).images(generator=torch.Generator().manual_seed(1))
def case_euler():
    return Pipeline(TinyUNet().cuda(), SCHEDULERS["euler"]()).images(timesteps_on="host")
def case_euler_resumed():
    scheduler, model = SCHEDULERS["euler"](), TinyUNet().cuda()
    scheduler.set_timesteps(4, "cuda")
    start = scheduler.timesteps.cpu()[2:]
    return [scheduler.step(model(images(), t), t, images()) for t in start]
def case_euler_resumed_on_another_gpu():
    scheduler, model = SCHEDULERS["euler"](), TinyUNet().to("cuda:1")
    scheduler.set_timesteps(4, "cuda:0")
    t = scheduler.timesteps.to("cuda:1")[1]
    return scheduler.step(model(images(device="cuda:1"), t), t, images(device="cuda:1"))
def case_euler_sigma_to_t():
    scheduler = SCHEDULERS["euler"]()
    return scheduler.sigma_to_t(karras(4, device="cuda")[:-1])
def case_multistep():
    return Pipeline(TinyUNet().cuda(), SCHEDULERS["multistep"]()).images(steps=3)
def case_multistep_history_on_host():
    return Pipeline(TinyUNet().cuda(), SCHEDULERS["multistep"](keep_on_host=True))(steps=3)
def case_guided():
    model = TinyUNet(classes=3).cuda()
    return Pipeline(Guidance(model, rescale=0.7), SCHEDULERS["ddim"](), device="cuda")(y=torch.tensor([0, 2]).cuda())
def case_inpainting():
    mask = torch.zeros(1, 1, 6, 6)
    mask[..., 2:4, 2:4] = 1
    return Pipeline(TinyUNet().cuda(), SCHEDULERS["ddim"]())(mask=mask, known=images(2, "cpu"))
def case_heun_sigmas_on_host():
    with torch.no_grad():
        return heun(TinyUNet().cuda(), images(), karras(4))
