import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class NoisyLinear(nn.Module):
    def __init__(self, fin, fout, sigma=0.5):
        super().__init__()
        self.mu = nn.Parameter(torch.empty(fout, fin).uniform_(-1, 1) / math.sqrt(fin))
        self.sigma = nn.Parameter(torch.full((fout, fin), sigma / math.sqrt(fin)))
        self.bias = nn.Parameter(torch.zeros(fout))
        self.register_buffer("eps", torch.zeros(fout, fin))

    def resample(self):
        i, o = torch.randn(self.mu.size(1)), torch.randn(self.mu.size(0))
        f = lambda x: x.sign() * x.abs().sqrt()
        self.eps.copy_(torch.outer(f(o), f(i)))

    def forward(self, x):
        return F.linear(x, self.mu + self.sigma * self.eps if self.training else self.mu, self.bias)


class DuelingDQN(nn.Module):
    def __init__(self, obs_dim, actions, hidden=8, atoms=5):
        super().__init__()
        self.actions, self.atoms = actions, atoms
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU())
        self.value, self.adv = NoisyLinear(hidden, atoms), NoisyLinear(hidden, actions * atoms)
        self.register_buffer("support", torch.linspace(-2, 2, atoms))

    def dist(self, x):
        h = self.body(x)
        adv = self.adv(h).view(-1, self.actions, self.atoms)
        return (self.value(h).unsqueeze(1) + adv - adv.mean(1, keepdim=True)).softmax(-1)

    def forward(self, x):
        return (self.dist(x) * self.support).sum(-1)

    def resample(self):
        for m in self.modules():
            if isinstance(m, NoisyLinear):
                m.resample()
