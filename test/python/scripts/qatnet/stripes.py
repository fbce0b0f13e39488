import torch
from torch.utils.data import Dataset


class Stripes(Dataset):
    """Horizontal, vertical and slanted stripes."""

    classes = 3

    def __init__(self, n, size=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(self.classes, (n,), generator=g)
        line = torch.arange(size).float()
        y, x = torch.meshgrid(line, line, indexing='ij')
        ways = torch.stack([y, x, (x + y) / 2 ** 0.5])
        phase = 6.28 * torch.rand(n, 1, 1, generator=g)
        self.images = torch.sin(ways[self.labels] * 1.8 + phase).unsqueeze(1)
        self.images += 0.2 * torch.randn(self.images.shape, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]
