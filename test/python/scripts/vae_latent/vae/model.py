import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


class VAE(nn.Module):
    def __init__(self, pixels, code=4, hidden=32, classes=0):
        super().__init__()
        self.code, self.classes = code, classes
        self.encoder = nn.Sequential(nn.Linear(pixels + classes, hidden), nn.SiLU(), nn.Linear(hidden, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code + classes, hidden), nn.SiLU(), nn.Linear(hidden, pixels))
        self.register_buffer("location", torch.zeros(code))
        self.register_buffer("scale", torch.ones(code))

    @property
    def prior(self):
        return Normal(self.location, self.scale)

    @property
    def device(self):
        return self.location.device

    def join(self, x, y):
        if not self.classes:
            return x
        return torch.cat([x, F.one_hot(y, self.classes).to(x.dtype).expand(*x.shape[:-1], -1)], dim=-1)

    def posterior(self, x, y=None):
        mean, log_variance = self.encoder(self.join(x, y)).chunk(2, dim=-1)
        return Normal(mean, torch.exp(0.5 * log_variance.clamp(-8, 8)))

    def bound(self, x, y=None, beta=1.0):
        posterior = self.posterior(x, y)
        logits = self.decoder(self.join(posterior.rsample(), y))
        error = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
        divergence = torch.distributions.kl_divergence(posterior, self.prior).sum(-1)
        return (error + beta * divergence).mean(), divergence.mean().detach()

    @torch.no_grad()
    def likelihood(self, x, y=None, samples=8):
        """Importance-weighted estimate of the log likelihood."""
        posterior = self.posterior(x, y)
        code = posterior.sample((samples,))
        logits = self.decoder(self.join(code, y))
        weight = -F.binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none").sum(-1)
        weight = weight + (self.prior.log_prob(code) - posterior.log_prob(code)).sum(-1)
        return torch.logsumexp(weight, dim=0) - math.log(samples)

    @torch.no_grad()
    def draw(self, count, label=None, generator=None):
        code = torch.randn(count, self.code, generator=generator).to(self.device)
        y = None if label is None else torch.full((count,), label, device=self.device)
        return self.decoder(self.join(code, y)).sigmoid()
