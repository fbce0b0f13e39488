import numpy as np
import torch


class ReplayBuffer:
    def __init__(self, obs_dim, act_dim, size, device):
        self.device = device
        self.data = {"obs": np.zeros((size, obs_dim), np.float32), "next_obs": np.zeros((size, obs_dim), np.float32),
                     "act": np.zeros((size, act_dim), np.float32), "rew": np.zeros(size, np.float32), "done": np.zeros(size, np.float32)}
        self.size, self.ptr, self.n = size, 0, 0

    def add(self, **kw):
        for k, v in kw.items():
            self.data[k][self.ptr] = v
        self.ptr = (self.ptr + 1) % self.size
        self.n = min(self.n + 1, self.size)

    def sample(self, batch):
        idx = np.random.randint(0, self.n, batch)
        return {k: torch.as_tensor(v[idx], device=self.device) for k, v in self.data.items()}
