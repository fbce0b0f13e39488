import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES = ("background", "road", "car", "person")


class SyntheticCity(Dataset):
    def __init__(self, split, size=8, length=6):
        rng = np.random.default_rng({"train": 0, "val": 1}[split])
        self.images = rng.random((length, size, size, 3), dtype=np.float32)
        self.masks = rng.integers(0, len(CLASSES), (length, size, size))
        self.masks[:, 0, 0] = 255

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i]).permute(2, 0, 1).contiguous()
        return {"image": image, "mask": torch.from_numpy(self.masks[i]).long(), "id": i}

    def class_frequencies(self):
        valid = self.masks[self.masks != 255]
        freq = np.bincount(valid, minlength=len(CLASSES)) / valid.size
        return torch.tensor(freq, dtype=torch.float32)
