"""Replay memories. They live in host memory; batches go to the device."""
from collections import deque
from typing import NamedTuple

import torch


class Batch(NamedTuple):
    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    next_obs: torch.Tensor
    done: torch.Tensor
    weight: torch.Tensor
    index: torch.Tensor

    def to(self, device):
        return Batch(*(x.to(device) for x in self))


class Replay:
    def __init__(self, capacity, obs_dim, n_step=1, gamma=0.99):
        self.capacity, self.n_step = capacity, n_step
        self.obs = torch.zeros(capacity, obs_dim)
        self.next_obs = torch.zeros(capacity, obs_dim)
        self.action = torch.zeros(capacity, dtype=torch.long)
        self.reward = torch.zeros(capacity, n_step)
        self.done = torch.zeros(capacity)
        self.size = self.at = 0
        self.window = deque(maxlen=n_step)

    def add(self, obs, action, reward, next_obs, done):
        self.window.append((obs, action, reward))
        if len(self.window) == self.n_step or done:
            self._store(next_obs, done)
        if done:
            self.window.clear()

    def _store(self, next_obs, done):
        i = self.at
        obs, action, _ = self.window[0]
        rewards = [r for _, _, r in self.window]
        self.obs[i], self.next_obs[i] = obs, next_obs
        self.action[i], self.done[i] = action, float(done)
        self.reward[i].zero_()[: len(rewards)] = torch.tensor(rewards)
        self.at = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def _gather(self, index, weight):
        return Batch(self.obs[index], self.action[index], self.reward[index], self.next_obs[index], self.done[index], weight, index)

    def sample(self, size):
        index = torch.randint(self.size, (size,))
        return self._gather(index, torch.ones(size))

    def feedback(self, index, error):
        pass


class PrioritizedReplay(Replay):
    def __init__(self, *args, alpha=0.6, beta=0.4, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha, self.beta = alpha, beta
        self.priority = torch.zeros(self.capacity)

    def _store(self, next_obs, done):
        self.priority[self.at] = max(1.0, self.priority.max().item())
        super()._store(next_obs, done)

    def sample(self, size):
        p = self.priority[: self.size] ** self.alpha
        index = torch.multinomial(p, size, replacement=True)
        weight = (self.size * p[index] / p.sum()) ** -self.beta
        return self._gather(index, weight / weight.max())

    def feedback(self, index, error):
        self.priority[index] = error.abs() + 1e-5  # raises
