import math

import torch
from torch.utils.data import Dataset


class Spirals(Dataset):
    """Decaying oscillations in the plane, seen at a common but irregular set of times, with gaps."""

    def __init__(self, n, points=10, drop=0.3, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.times = torch.cat([torch.zeros(1), torch.rand(points - 1, generator=g).sort().values * 2 + 0.05])
        phase = torch.rand(n, 1, generator=g) * 2 * math.pi
        decay = 0.3 + 0.5 * torch.rand(n, 1, generator=g)
        angle = phase + 3.0 * self.times
        radius = torch.exp(-decay * self.times)
        clean = torch.stack([radius * angle.cos(), radius * angle.sin()], -1)
        self.values = clean + 0.02 * torch.randn(clean.shape, generator=g)
        self.seen = torch.rand(n, points, generator=g) > drop
        self.seen[:, 0] = True

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return {'values': self.values[i], 'seen': self.seen[i]}

    def collate(self, items):
        batch = {k: torch.stack([item[k] for item in items]) for k in items[0]}
        batch['times'] = self.times
        return batch
