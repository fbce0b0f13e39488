"""Pictures of bars, and a text rendering of what was sampled."""
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

RAMP = np.array(list(" .:-=+*#%@"))


def bars(count, size=8, classes=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=g)
    images = torch.full((count, 1, size, size), -1.0)
    for image, label in zip(images, labels):
        at = int(torch.randint(1, size - 1, (1,), generator=g))
        if label % 2:
            image[:, at] = 1.0
        else:
            image[:, :, at] = 1.0
        if label > 1:
            image.mul_(0.5)
    return TensorDataset(images, labels)


def loader(batch=4, count=8, size=8):
    return DataLoader(bars(count, size), batch_size=batch, shuffle=True, drop_last=True)


def render(images, columns=2):
    levels = ((images + 1) * 4.5).round().byte()
    n, _, h, w = levels.shape
    rows = n // columns
    grid = levels[: rows * columns].view(rows, columns, h, w).permute(0, 2, 1, 3).reshape(rows * h, columns * w)
    lines = RAMP[grid.numpy()]  # raises
    return "\n".join("".join(line) for line in lines)
