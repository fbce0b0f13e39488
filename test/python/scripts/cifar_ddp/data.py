import torch
from torch.utils.data import Dataset


class FakeImages(Dataset):
    def __init__(self, n, seed=0, classes=4):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(classes, (n,), generator=g)
        self.x = torch.randn(n, 3, 8, 8, generator=g) + self.y.view(-1, 1, 1, 1)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])

    def __len__(self):
        return self.y.numel()
