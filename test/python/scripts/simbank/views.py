import random

import torch
from torch.utils.data import Dataset, Sampler


class Blobs(Dataset):
    classes = 4

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(n) % self.classes
        centers = torch.randn(self.classes, 1, 8, 8, generator=g)
        self.images = centers[self.labels] + 0.3 * torch.randn(n, 1, 8, 8, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class TwoViews(Dataset):
    def __init__(self, base, noise=0.1):
        self.base, self.noise = base, noise

    def __len__(self):
        return len(self.base)

    def augment(self, x):
        if random.random() < 0.5:
            x = x.flip(-1)
        return x + self.noise * torch.randn_like(x)

    def __getitem__(self, i):
        x, y = self.base[i]
        return (self.augment(x), self.augment(x)), y


class ClassBalancedSampler(Sampler):
    def __init__(self, labels, batch_size, seed):
        self.batch_size, self.rng = batch_size, random.Random(seed)
        self.by_class = {}
        for i, y in enumerate(labels.tolist()):
            self.by_class.setdefault(y, []).append(i)
        self.length = len(labels) // batch_size

    def __len__(self):
        return self.length

    def __iter__(self):
        each = self.batch_size // len(self.by_class)
        for _ in range(self.length):
            yield [i for members in self.by_class.values() for i in self.rng.sample(members, each)]
