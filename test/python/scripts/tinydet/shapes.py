import random

import torch
from torch.utils.data import Dataset


class Shapes(Dataset):
    """Bright rectangles, of one class for each channel."""

    def __init__(self, n, size=32, seed=0):
        self.n, self.size, self.seed = n, size, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = random.Random(self.seed + i)
        image = torch.rand(3, self.size, self.size) * 0.1
        boxes, labels = [], []
        for _ in range(rng.randint(1, 3)):
            w = rng.randint(6, 14)
            x, y, k = rng.randint(0, self.size - w), rng.randint(0, self.size - w), rng.randrange(3)
            image[k, y:y + w, x:x + w] = 1.0
            boxes.append([x, y, x + w, y + w])
            labels.append(k)
        target = {'boxes': torch.tensor(boxes, dtype=torch.float32), 'labels': torch.tensor(labels), 'id': i}
        return image, target


def collate(items):
    images, targets = zip(*items)
    return torch.stack(images), list(targets)
