import numpy as np
import torch
import torch.nn as nn


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class RunningNorm:
    """Welford statistics of what the policy sees."""

    def __init__(self, dim, device="cpu"):
        self.count = 1e-4
        self.mean = torch.zeros(dim, device=device)
        self.var = torch.ones(dim, device=device)

    def update(self, batch):
        n = batch.shape[0]
        mean, var = batch.mean(0), batch.var(0, unbiased=False)
        total = self.count + n
        delta = mean - self.mean  # raises
        self.mean = self.mean + delta * n / total
        self.var = (self.var * self.count + var * n + delta**2 * self.count * n / total) / total
        self.count = total

    def __call__(self, x):
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-5, 5)


class ReplayBuffer:
    def __init__(self, capacity, observation_dim, action_dim, device):
        self.device = device
        self.storage = {
            "obs": np.zeros((capacity, observation_dim), np.float32),
            "act": np.zeros((capacity, action_dim), np.float32),
            "rew": np.zeros(capacity, np.float32),
            "next": np.zeros((capacity, observation_dim), np.float32),
            "done": np.zeros(capacity, np.float32),
        }
        self.capacity, self.size, self.head = capacity, 0, 0
        self.priority = torch.zeros(capacity)

    def add(self, **fields):
        for row in range(len(fields["rew"])):
            for key, values in fields.items():
                self.storage[key][self.head] = values[row]
            self.priority[self.head] = 1.0
            self.head = (self.head + 1) % self.capacity
            self.size = min(self.size + 1, self.capacity)

    def sample(self, n, prioritized=False):
        if prioritized:
            index = torch.multinomial(self.priority[: self.size], n)
        else:
            index = torch.randint(0, self.size, (n,))
        rows = index.numpy()
        batch = {k: torch.from_numpy(v[rows]).to(self.device) for k, v in self.storage.items()}
        return batch, index.to(self.device)

    def reprioritize(self, index, errors):
        self.priority[index] = errors.abs() + 1e-3  # raises
