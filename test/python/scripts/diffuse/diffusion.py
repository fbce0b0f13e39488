import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def cosine_betas(steps):
    x = torch.linspace(0, steps, steps + 1, dtype=torch.float64)
    bar = torch.cos((x / steps + 0.008) / 1.008 * math.pi / 2) ** 2
    return (1 - bar[1:] / bar[:-1]).clamp(0, 0.999).float()


def extract(table, t, ndim):
    return table.gather(0, t).view(-1, *([1] * (ndim - 1)))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, size, steps=5, self_condition=True):
        super().__init__()
        self.model, self.size, self.steps, self.self_condition = model, size, steps, self_condition
        betas = cosine_betas(steps)
        bar = torch.cumprod(1 - betas, 0)
        self.register_buffer("betas", betas)
        self.register_buffer("bar", bar)
        self.register_buffer("bar_prev", F.pad(bar[:-1], (1, 0), value=1.0))
        self.posterior = self.betas * (1 - self.bar_prev) / (1 - self.bar)
        snr = bar / (1 - bar)
        self.register_buffer("weight", snr.clamp(max=5) / snr)

    @property
    def device(self):
        return self.betas.device

    def q_sample(self, x, t, noise):
        return extract(self.bar, t, x.ndim).sqrt() * x + (1 - extract(self.bar, t, x.ndim)).sqrt() * noise

    def forward(self, x):
        t = torch.randint(0, self.steps, (x.size(0),), device=self.device).long()
        noise = torch.randn_like(x)
        noisy = self.q_sample(x, t, noise)
        cond = torch.zeros_like(x)
        if self.self_condition:
            with torch.no_grad():
                keep = torch.rand(x.size(0), 1, 1, 1) < 0.5
                cond = self.model(noisy, cond, t).detach() * keep.to(x.device)
        loss = F.mse_loss(self.model(noisy, cond, t), noise, reduction="none").flatten(1).mean(1)
        return (loss * self.weight[t]).mean()

    @torch.no_grad()
    def sample(self, n, channels=1):
        x = torch.randn(n, channels, self.size, self.size, device=self.device)
        cond = torch.zeros_like(x)
        for step in reversed(range(self.steps)):
            t = torch.full((n,), step, device=self.device, dtype=torch.long)
            eps = self.model(x, cond, t)
            a = self.bar[step]
            cond = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = a.sqrt() * cond + (1 - a).sqrt() * eps
            if step > 0:
                # a value of one step is a scalar of the CPU
                x = x + self.posterior[step].sqrt() * torch.randn_like(x)
        return x
