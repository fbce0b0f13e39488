import collections

import numpy as np
import torch

Transition = collections.namedtuple("Transition", "state action reward following done")
Batch = collections.namedtuple("Batch", (*Transition._fields, "weight", "index"))


class Replay:
    def __init__(self, capacity, device, seed=0):
        self.capacity, self.device = capacity, device
        self.rng = np.random.default_rng(seed)
        self.items = []
        self.next = 0

    def __len__(self):
        return len(self.items)

    def push(self, *values):
        if len(self.items) < self.capacity:
            self.items.append(None)
        self.items[self.next] = Transition(*values)
        self.next = (self.next + 1) % self.capacity

    def collate(self, rows, **extra):
        columns = Transition(*zip(*rows))
        return Batch(
            state=torch.tensor(np.stack(columns.state), device=self.device),
            action=torch.tensor(columns.action, device=self.device),
            reward=torch.tensor(columns.reward, dtype=torch.float32, device=self.device),
            following=torch.tensor(np.stack(columns.following), device=self.device),
            done=torch.tensor(columns.done, dtype=torch.float32, device=self.device),
            **extra,
        )

    def sample(self, size):
        index = self.rng.integers(len(self.items), size=size)
        return self.collate([self.items[i] for i in index], weight=None, index=index)

    def update(self, index, errors):
        pass


class PrioritizedReplay(Replay):
    def __init__(self, capacity, device, seed=0, alpha=0.6, beta=0.4):
        super().__init__(capacity, device, seed)
        self.alpha, self.beta = alpha, beta
        self.priority = np.zeros(capacity)

    def push(self, *values):
        self.priority[self.next] = self.priority.max() or 1.0
        super().push(*values)

    def sample(self, size):
        share = self.priority[: len(self.items)] ** self.alpha
        share /= share.sum()
        index = self.rng.choice(len(self.items), size=size, p=share)
        weight = (len(self.items) * share[index]) ** -self.beta
        weight = torch.from_numpy((weight / weight.max()).astype(np.float32))
        return self.collate([self.items[i] for i in index], weight=weight, index=index)

    def update(self, index, errors):
        self.priority[index] = errors.detach().abs().cpu().numpy() + 1e-3
