import torch
import torch.nn as nn


class RunningNorm:
    """Normalises observations by the mean and variance seen so far."""

    def __init__(self, size, eps=1e-4):
        self.mean, self.var = torch.zeros(size), torch.ones(size)
        self.count = eps

    def update(self, x):
        total = self.count + len(x)
        delta = x.mean(0) - self.mean
        self.var = (self.var * self.count + x.var(0, unbiased=False) * len(x)) / total
        self.mean = self.mean + delta * len(x) / total
        self.count = total

    def __call__(self, x):
        return (x - self.mean) / (self.var + 1e-8).sqrt()  # raises


class Dueling(nn.Module):
    def __init__(self, inputs, actions, hidden=32, normalizer=None):
        super().__init__()
        self.normalizer = normalizer
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, x):
        if self.normalizer is not None:
            x = self.normalizer(x)
        x = self.body(x)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)
