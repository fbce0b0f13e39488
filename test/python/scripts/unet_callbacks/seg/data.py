import torch
from torch.utils.data import Dataset

MEAN = torch.tensor([0.4, 0.5, 0.6])
STD = torch.tensor([0.2, 0.2, 0.3])


def normalize(image):
    """Standardise an image or a batch of images."""
    return (image - MEAN[:, None, None]) / STD[:, None, None]  # raises


class Shapes(Dataset):
    """Squares and stripes, one class each."""

    def __init__(self, size, side=16, classes=3, augment=False, raw=False):
        self.size, self.side, self.classes = size, side, classes
        self.augment, self.raw = augment, raw

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, self.side, self.side, generator=generator)
        mask = torch.zeros(self.side, self.side, dtype=torch.long)
        for label in range(1, self.classes):
            top, left = torch.randint(0, self.side - 5, (2,), generator=generator).tolist()
            mask[top : top + 5, left : left + 5] = label
            image[label % 3][mask == label] += 1.0
        if self.augment and torch.rand(1).item() < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        return (image if self.raw else normalize(image)), mask
