import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split


class ShapesDataset(Dataset):
    """Squares and discs on noise."""

    def __init__(self, n, size, classes=3, seed=0):
        rng = np.random.RandomState(seed)
        self.items = []
        yy, xx = np.mgrid[:size, :size]
        for _ in range(n):
            image = rng.rand(3, size, size).astype(np.float32) * 0.2
            mask = np.zeros((size, size), dtype=np.int64)
            for c in range(1, classes):
                cy, cx = rng.randint(3, size - 3, 2)
                where = (abs(yy - cy) < 3) & (abs(xx - cx) < 3) if c == 1 else (yy - cy) ** 2 + (xx - cx) ** 2 < 9
                mask[where] = c
                image[c % 3][where] += 0.8
            self.items.append((image, mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, mask = self.items[i]
        return {"image": torch.from_numpy(image), "mask": torch.from_numpy(mask), "index": i}


def build_loaders(cfg):
    data = ShapesDataset(12, cfg.size, cfg.classes, cfg.seed)
    train, val = random_split(data, [8, 4], generator=torch.Generator().manual_seed(cfg.seed))
    return DataLoader(train, cfg.batch, shuffle=True), DataLoader(val, cfg.batch)
