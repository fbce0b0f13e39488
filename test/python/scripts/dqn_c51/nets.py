"""Q networks: plain, with noisy layers, or over a distribution of returns."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class NoisyLinear(nn.Module):
    """Factorised Gaussian noise (Fortunato et al.)."""

    def __init__(self, fan_in, fan_out, sigma=0.5):
        super().__init__()
        bound = 1 / math.sqrt(fan_in)
        self.fan_in, self.fan_out = fan_in, fan_out
        self.weight_mu = nn.Parameter(torch.empty(fan_out, fan_in).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((fan_out, fan_in), sigma * bound))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        self.register_buffer("weight_eps", torch.zeros(fan_out, fan_in))
        self.resample()

    def resample(self):
        shaped = [x.sign() * x.abs().sqrt() for x in (torch.randn(self.fan_out), torch.randn(self.fan_in))]
        self.weight_eps = torch.outer(*shaped)

    def forward(self, x):
        weight = self.weight_mu
        if self.training:
            weight = weight + self.weight_sigma * self.weight_eps  # raises
        return F.linear(x, weight, self.bias)


class QNet(nn.Module):
    def __init__(self, obs_dim, actions, hidden=16, noisy=False, atoms=1, v_range=(-5.0, 5.0)):
        super().__init__()
        layer = NoisyLinear if noisy else nn.Linear
        self.actions, self.atoms = actions, atoms
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU())
        self.head = layer(hidden, actions * atoms)
        self.register_buffer("support", torch.linspace(*v_range, max(atoms, 2)))

    def logits(self, obs):
        return self.head(self.body(obs)).view(-1, self.actions, self.atoms)

    def forward(self, obs):
        out = self.logits(obs)
        if self.atoms == 1:
            return out[..., 0]
        return (out.softmax(-1) * self.support).sum(-1)

    def resample(self):
        for m in self.modules():
            if isinstance(m, NoisyLinear):
                m.resample()


def project(support, next_probs, reward, not_done, gamma):
    """Projects the returns' distribution back onto the support (C51)."""
    batch, atoms = next_probs.shape
    low, high = support[0], support[-1]
    delta = (high - low) / (atoms - 1)
    shifted = (reward[:, None] + gamma * not_done[:, None] * support).clamp(low.item(), high.item())
    b = (shifted - low) / delta
    lower = b.floor().long().clamp(0, atoms - 1)
    upper = (lower + 1).clamp(max=atoms - 1)
    frac = b - lower
    offset = (torch.arange(batch) * atoms)[:, None]
    out = torch.zeros_like(next_probs).view(-1)
    out.index_add_(0, (lower + offset).view(-1), (next_probs * (1 - frac)).view(-1))  # raises
    out.index_add_(0, (upper + offset).view(-1), (next_probs * frac).view(-1))
    return out.view(batch, atoms)
