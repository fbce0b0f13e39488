import torch
from torch.utils.data import DataLoader, Dataset


class Mixture(Dataset):
    """Gaussian blobs; an item is two noisy views and the label."""

    def __init__(self, count, dim, classes, noise, centres=None):
        self.centres = torch.randn(classes, dim) if centres is None else centres
        self.labels = torch.arange(count) % classes
        self.points = self.centres[self.labels] + noise * torch.randn(count, dim)
        self.noise = noise

    def view(self, x):
        keep = (torch.rand_like(x) > 0.1).float()
        return keep * x + self.noise * torch.randn_like(x)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        x = self.points[index]
        return self.view(x), self.view(x), self.labels[index]

    def plain(self):
        for start in range(0, len(self), 32):
            yield self.points[start : start + 32], self.labels[start : start + 32]


def build(config):
    train = Mixture(**config["data"])
    test = Mixture(**{**config["data"], "count": 40}, centres=train.centres)
    loader = DataLoader(train, config["train"]["batch"], shuffle=True, drop_last=True)
    return train, test, loader
