from collections import deque, namedtuple

import numpy as np
import torch

Transition = namedtuple("Transition", ["obs", "action", "reward", "next_obs", "done"])


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6, beta=0.4, seed=0):
        self.memory = deque(maxlen=capacity)
        self.priorities = deque(maxlen=capacity)
        self.alpha, self.beta = alpha, beta
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.memory)

    def push(self, *args):
        self.memory.append(Transition(*args))
        self.priorities.append(max(self.priorities, default=1.0))

    def sample(self, n, device):
        p = np.array(self.priorities) ** self.alpha
        p = p / p.sum()
        rows = self.rng.choice(len(self.memory), n, p=p)
        batch = Transition(*zip(*[self.memory[i] for i in rows]))
        weights = (len(self.memory) * p[rows]) ** -self.beta
        tensors = {
            "obs": torch.tensor(batch.obs, device=device),
            "action": torch.tensor(batch.action, device=device),
            "reward": torch.tensor(batch.reward, device=device),
            "next_obs": torch.tensor(batch.next_obs, device=device),
            "done": torch.tensor(batch.done, dtype=torch.float32, device=device),
        }
        return tensors, torch.as_tensor(weights / weights.max(), dtype=torch.float32), rows

    def update(self, rows, errors):
        for row, error in zip(rows, errors):
            self.priorities[row] = abs(error) + 1e-5
