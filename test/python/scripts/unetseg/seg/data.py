"""Images of rectangles and discs with their label maps."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split

CLASSES = ("background", "rectangle", "disc")


class Shapes(Dataset):
    def __init__(self, count=24, size=32, noise=0.1, seed=0):
        self.rng = np.random.default_rng(seed)
        self.size, self.noise = size, noise
        self.items = [self.draw() for _ in range(count)]

    def draw(self):
        mask = np.zeros((self.size, self.size), dtype=np.int64)
        top, left = self.rng.integers(0, self.size // 2, 2)
        mask[top : top + self.size // 3, left : left + self.size // 3] = 1
        centre = self.rng.integers(self.size // 3, self.size, 2)
        rows, columns = np.ogrid[: self.size, : self.size]
        mask[(rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < (self.size // 5) ** 2] = 2
        image = mask / 2 + self.rng.normal(0, self.noise, mask.shape)
        return image.astype(np.float32)[None], mask

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        image, mask = self.items[index]
        return torch.from_numpy(image), torch.from_numpy(mask)


def loaders(config):
    data = Shapes(config.images, config.size)
    held = len(data) // 4
    train, valid = random_split(data, [len(data) - held, held], generator=torch.Generator().manual_seed(config.seed))
    return (
        DataLoader(train, config.batch_size, shuffle=True, pin_memory=True),
        DataLoader(valid, config.batch_size, pin_memory=True),
    )


def class_frequencies(loader, classes):
    counts = torch.zeros(classes)
    for _, mask in loader:
        counts += torch.bincount(mask.flatten(), minlength=classes)
    return counts / counts.sum()
