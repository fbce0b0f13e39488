from collections import namedtuple

import numpy as np
import torch

import globals as G

Batch = namedtuple('Batch', 'obs action reward next_obs done weight index')


class Uniform:
    def __init__(self, capacity):
        self.capacity = capacity
        self.storage = []
        self.pos = 0

    def add(self, *transition):
        if len(self.storage) < self.capacity:
            self.storage.append(transition)
        else:
            self.storage[self.pos] = transition
        self.pos = (self.pos + 1) % self.capacity

    def gather(self, index, weight=None):
        columns = zip(*(self.storage[i] for i in index))
        obs, action, reward, next_obs, done = (torch.as_tensor(np.asarray(c)) for c in columns)
        weight = torch.ones(len(index)) if weight is None else weight
        tensors = [obs.float(), action.long(), reward.float(), next_obs.float(), done.float(), weight]
        return Batch(*(t.to(G.DEVICE) for t in tensors), index=index)

    def sample(self, n):
        return self.gather(np.random.randint(len(self.storage), size=n))


class Prioritized(Uniform):
    def __init__(self, capacity, alpha=0.6, beta=0.4):
        super().__init__(capacity)
        self.alpha, self.beta = alpha, beta
        self.priority = np.zeros(capacity, dtype=np.float32)
        self.largest = 1.0

    def add(self, *transition):
        self.priority[self.pos] = self.largest
        super().add(*transition)

    def sample(self, n):
        scaled = self.priority[:len(self.storage)] ** self.alpha
        p = scaled / scaled.sum()
        index = np.random.choice(len(p), size=n, p=p / p.sum())
        weight = (len(p) * p[index]) ** -self.beta
        return self.gather(index, torch.from_numpy((weight / weight.max()).astype(np.float32)))

    def update_priorities(self, index, priority):
        values = np.abs(np.asarray(priority)) + 1e-4  # raises
        self.priority[index] = values
        self.largest = max(self.largest, float(values.max()))


class OnDevice:
    """All transitions live where the networks do."""

    def __init__(self, capacity):
        self.capacity, self.size, self.pos = capacity, 0, 0
        self.columns = None

    def add(self, *transition):
        rows = [torch.as_tensor(x, dtype=torch.float32) for x in transition]
        if self.columns is None:
            self.columns = [torch.zeros((self.capacity,) + tuple(r.shape), device=G.DEVICE) for r in rows]
        for column, row in zip(self.columns, rows):
            column[self.pos] = row
        self.pos = (self.pos + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        index = torch.randint(self.size, (n,))
        obs, action, reward, next_obs, done = (c[index] for c in self.columns)
        return Batch(obs, action.long(), reward, next_obs, done, torch.ones_like(reward), index)


def make_buffer(args):
    kinds = dict(uniform=Uniform, per=Prioritized, gpu=OnDevice)
    return kinds[args.buffer](args.capacity)
