import math

import numpy as np
import torch


def cosine(timesteps, s=0.008):
    x = np.linspace(0, timesteps, timesteps + 1)
    bar = np.cos((x / timesteps + s) / (1 + s) * math.pi / 2) ** 2
    return np.clip(1 - bar[1:] / bar[:-1], 0, 0.999)


def linear(timesteps):
    scale = 1000 / timesteps
    return np.clip(np.linspace(scale * 1e-4, scale * 0.02, timesteps), 0, 0.999)


def betas_for(name, timesteps):
    return torch.from_numpy(globals()[name](timesteps)).float()


def extract(a, t, ndim):
    out = a.gather(-1, t)
    return out.reshape(-1, *([1] * (ndim - 1)))


def extract_host(a, t, ndim):
    out = a.cpu().gather(-1, t.cpu())
    return out.reshape(-1, *([1] * (ndim - 1))).to(t.device)
