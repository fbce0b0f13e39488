import random

import numpy as np
import torch
from torch.utils.data import Dataset


class Shapes(Dataset):
    def __init__(self, n, classes):
        self.n, self.classes = n, classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.RandomState(i)
        img = rng.rand(3, 8, 8).astype(np.float32)
        mask = np.zeros((8, 8), np.int64)
        for c in range(1, self.classes):
            y, x = rng.randint(0, 5, 2)
            mask[y:y + 3, x:x + 3] = c
        mask[0, 0] = 255
        return {'image': torch.as_tensor(img), 'mask': torch.as_tensor(mask), 'name': f'{i:03d}.png'}


def collate_fn(rows):
    out = {k: [r[k] for r in rows] for k in rows[0]}
    out['image'], out['mask'] = torch.stack(out['image']), torch.stack(out['mask'])
    return out
