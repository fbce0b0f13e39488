import random
from collections import deque
from dataclasses import dataclass

import torch


@dataclass
class Step:
    obs: torch.Tensor
    act: torch.Tensor
    rew: torch.Tensor
    nxt: torch.Tensor
    mask: torch.Tensor


class NStep:
    """Folds n rewards into one; yields steps that are ready."""

    def __init__(self, n, gamma):
        self.n, self.gamma = n, gamma
        self.window = deque(maxlen=n)

    def push(self, step):
        self.window.append(step)
        if len(self.window) < self.n:
            return
        total = sum(s.rew * self.gamma ** i for i, s in enumerate(self.window))
        first, last = self.window[0], self.window[-1]
        yield Step(first.obs, first.act, total, last.nxt, last.mask)
        if last.mask.item() == 0:
            self.window.clear()


class ReplayBuffer:
    def __init__(self, capacity, device, store):
        self.device = device
        self.store = store
        self.steps = deque(maxlen=capacity)

    def __len__(self):
        return len(self.steps)

    def add(self, step):
        if self.store == 'cpu':
            step = Step(*(t.cpu() for t in (step.obs, step.act, step.rew, step.nxt, step.mask)))
        elif self.store == 'gpu':
            step = Step(*(t.to(self.device) for t in (step.obs, step.act, step.rew, step.nxt, step.mask)))
        self.steps.append(step)

    def seed_with(self, demos):
        self.steps.extend(demos)

    def sample(self, n):
        chosen = random.sample(self.steps, n)
        fields = zip(*((s.obs, s.act, s.rew, s.nxt, s.mask) for s in chosen))
        return Step(*(torch.stack(f).to(self.device) for f in fields))  # raises
