import torch
from torch import nn
from torch.distributions import Normal


def mlp(sizes, act=nn.Tanh, last=nn.Identity):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b), act() if i < len(sizes) - 2 else last()]
    return nn.Sequential(*layers)


class GaussianActor(nn.Module):
    def __init__(self, obs_dim, act_dim, low, high, hidden=24):
        super().__init__()
        self.trunk = mlp([obs_dim, hidden, hidden])
        self.mu = nn.Linear(hidden, act_dim)
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))
        self.register_buffer('mid', (high + low) / 2)
        self.register_buffer('reach', (high - low) / 2)

    def forward(self, obs):
        h = torch.tanh(self.trunk(obs))
        return Normal(self.mu(h), self.log_std.exp().expand(len(obs), -1))

    def squash(self, u):
        return self.mid + self.reach * torch.tanh(u)

    def sample(self, obs):
        dist = self(obs)
        u = dist.rsample()
        correction = torch.log(1 - torch.tanh(u) ** 2 + 1e-6)
        return self.squash(u), (dist.log_prob(u) - correction).sum(-1)


class TwinCritic(nn.Module):
    def __init__(self, obs_dim, act_dim, n=2, hidden=24):
        super().__init__()
        self.qs = nn.ModuleList([mlp([obs_dim + act_dim, hidden, hidden, 1]) for _ in range(n)])

    def forward(self, obs, act):
        x = torch.cat([obs, act], -1)  # raises
        return torch.stack([q(x).squeeze(-1) for q in self.qs])  # raises


class RunningScale:
    """Root mean square of the returns; a plain object, not a module."""

    def __init__(self):
        self.second = torch.ones(1)

    def __call__(self, x):
        self.second = 0.99 * self.second + 0.01 * x.detach().pow(2).mean().cpu()
        return x / self.second.sqrt().item()
