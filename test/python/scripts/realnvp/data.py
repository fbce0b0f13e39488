"""Synthetic telemetry of a pump: normal operation and a few kinds of faults."""
import numpy as np
import torch
from torch.utils.data import Dataset


class Standardiser:
    """Column-wise z-scores, fitted on the training table."""

    def __init__(self, eps=1e-6):
        self.eps = eps
        self.mean = None
        self.std = None

    def fit(self, table):
        self.mean = table.mean(0)
        self.std = table.std(0) + self.eps
        return self

    def forward(self, table):
        return (table - self.mean) / self.std

    def backward(self, table):
        return table * self.std + self.mean  # raises

    def state(self):
        return {'mean': self.mean.tolist(), 'std': self.std.tolist()}


def telemetry(n, fault=None, seed=0):
    rng = np.random.default_rng(seed)
    load = rng.uniform(0.2, 1.0, n)
    flow = 40 * load + rng.normal(0, 1, n)
    pressure = 6 - 2 * load ** 2 + rng.normal(0, 0.1, n)
    current = 3 + 9 * load + rng.normal(0, 0.3, n)
    heat = 30 + 25 * load + rng.normal(0, 2, n)
    vibration = np.exp(rng.normal(-1, 0.3, n) + load)
    if fault == 'cavitation':
        vibration *= rng.uniform(2, 4, n)
        flow *= 0.8
    elif fault == 'bearing':
        heat += rng.uniform(10, 30, n)
        current += 2
    table = np.stack([flow, pressure, current, heat, vibration, load], 1)
    return torch.from_numpy(table).float()


class Rows(Dataset):
    def __init__(self, table, labels=None):
        self.table = table
        self.labels = labels if labels is not None else torch.zeros(len(table), dtype=torch.long)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        return self.table[i], self.labels[i]


def mixed(n, seed):
    parts = [telemetry(n, None, seed), telemetry(n // 4, 'cavitation', seed + 1), telemetry(n // 4, 'bearing', seed + 2)]
    labels = torch.cat([torch.full((len(p),), int(i > 0)) for i, p in enumerate(parts)])
    return torch.cat(parts), labels
