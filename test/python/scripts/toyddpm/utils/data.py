import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def two_moons_images(n, channels):
    rng = np.random.RandomState(3)
    y = rng.randint(0, 4, size=n)
    grid = np.linspace(-1, 1, 8)
    xx, yy = np.meshgrid(grid, grid)
    images = np.cos(xx[None] * (1 + y[:, None, None])) * np.sin(yy[None] + y[:, None, None])
    images = np.repeat(images[:, None], channels, axis=1).astype('float32')
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(y))


def endless(dataset, batch_size):
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)
    while True:
        yield from loader
