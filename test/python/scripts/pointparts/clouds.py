import math

import torch
from torch.utils.data import Dataset

PARTS = ('top', 'stem', 'foot')


class Tables(Dataset):
    """Tables on one leg: a disc, a stem and a foot."""

    def __init__(self, clouds, points, seed=0):
        g = torch.Generator().manual_seed(seed)
        part = torch.multinomial(torch.tensor([0.6, 0.1, 0.3]), clouds * points, True, generator=g).view(clouds, points)
        radius = torch.tensor([0.9, 0.08, 0.4])[part] * torch.rand(clouds, points, generator=g).sqrt()
        angle = 2 * math.pi * torch.rand(clouds, points, generator=g)
        low = torch.tensor([0.75, -0.7, -0.8])[part]
        high = torch.tensor([0.8, 0.75, -0.7])[part]
        height = low + (high - low) * torch.rand(clouds, points, generator=g)
        self.xyz = torch.stack([radius * angle.cos(), radius * angle.sin(), height], -1)
        self.part = part

    def __len__(self):
        return len(self.xyz)

    def __getitem__(self, i):
        return self.xyz[i], self.part[i]

    def weights(self):
        count = torch.bincount(self.part.flatten(), minlength=len(PARTS)).float()
        return count.sum() / (len(PARTS) * count)


def jitter(xyz, sigma=0.02):
    turn = torch.rand(()) * 2 * math.pi
    c, s = turn.cos().item(), turn.sin().item()
    matrix = xyz.new_tensor([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return xyz @ matrix + sigma * torch.randn_like(xyz)
