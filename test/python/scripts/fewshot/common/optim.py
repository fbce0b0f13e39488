"""Optimisers, written out."""
import math

import torch


class Base:
    def __init__(self, params, lr):
        self.params = [p for p in params if p.requires_grad]
        self.lr = lr
        self.state = {}

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def state_dict(self):
        return {'lr': self.lr, 'state': self.state}

    def load_state_dict(self, loaded):
        self.lr = loaded['lr']
        self.state = loaded['state']

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is not None:
                self.update(p, self.state.setdefault(i, self.fresh(p)))

    def fresh(self, p):
        raise NotImplementedError

    def update(self, p, s):
        raise NotImplementedError


class Adam(Base):
    betas = (0.9, 0.99)

    def fresh(self, p):
        return {'m': torch.zeros_like(p), 'v': torch.zeros_like(p), 't': torch.zeros(())}

    def update(self, p, s):
        b1, b2 = self.betas
        s['t'] += 1
        s['m'].mul_(b1).add_(p.grad, alpha=1 - b1)  # raises
        s['v'].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
        step = self.lr * torch.sqrt(1 - b2 ** s['t']) / (1 - b1 ** s['t'])
        p -= step * s['m'] / (s['v'].sqrt() + 1e-8)


class SGDMomentum(Base):
    momentum = 0.9

    def fresh(self, p):
        return {'buffer': p.grad.clone()}

    def load_state_dict(self, loaded):
        super().load_state_dict(loaded)
        for i, s in self.state.items():
            s['buffer'] = s['buffer'].to(self.params[i])

    def update(self, p, s):
        s['buffer'].mul_(self.momentum).add_(p.grad)
        p.add_(s['buffer'], alpha=-self.lr / math.sqrt(2))
