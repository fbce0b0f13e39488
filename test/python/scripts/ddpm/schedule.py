"""Noise schedules."""
import math

import numpy as np
import torch
import torch.nn as nn


def extract(table, t, ndim):
    out = table.gather(0, t)  # raises
    return out.reshape(t.shape[0], *([1] * (ndim - 1)))


class Schedule(nn.Module):
    """What follows from the betas, in double precision at first and kept in single."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        betas = np.asarray(self.betas(steps), dtype=np.float64)
        alphas = 1.0 - betas
        bar = np.cumprod(alphas)
        previous = np.append(1.0, bar[:-1])
        self.keep("alpha_bar", bar)
        self.keep("sqrt_bar", np.sqrt(bar))
        self.keep("sqrt_rest", np.sqrt(1.0 - bar))
        self.keep("recip", 1.0 / np.sqrt(alphas))
        self.keep("slope", betas / np.sqrt(1.0 - bar))
        self.keep("variance", betas * (1.0 - previous) / (1.0 - bar))
        self.loss_weight = None

    def keep(self, name, values):
        self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32), persistent=False)

    def betas(self, steps):
        raise NotImplementedError

    def weigh_by_snr(self, gamma):
        """Min-SNR weights of the loss of each step."""
        snr = self.alpha_bar / (1 - self.alpha_bar)
        self.loss_weight = snr.clamp(max=gamma) / snr

    def noised(self, x, t, noise):
        return extract(self.sqrt_bar, t, x.ndim) * x + extract(self.sqrt_rest, t, x.ndim) * noise

    def weights(self, t):
        if self.loss_weight is None:
            return torch.ones_like(t, dtype=torch.float32)
        return extract(self.loss_weight, t, 1)


class Linear(Schedule):
    def betas(self, steps):
        return np.linspace(1e-4, 0.2, steps)


class Cosine(Schedule):
    def betas(self, steps, s=0.008):
        f = [math.cos((i / steps + s) / (1 + s) * math.pi / 2) ** 2 for i in range(steps + 1)]
        return [min(1 - b / a, 0.999) for a, b in zip(f, f[1:])]


SCHEDULES = {"linear": Linear, "cosine": Cosine}
