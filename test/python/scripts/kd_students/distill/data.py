import torch
from torch.utils.data import DataLoader, TensorDataset


def spirals(count, classes=3, noise=0.1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % classes
    radius = torch.rand(count, generator=generator)
    angle = 4 * radius + label * (2 * torch.pi / classes) + noise * torch.randn(count, generator=generator)
    x = torch.stack([radius * angle.cos(), radius * angle.sin(), radius.square()], dim=1)
    return TensorDataset(x, label)


def loaders(batch_size):
    train = DataLoader(spirals(96), batch_size, shuffle=True, drop_last=True)
    test = DataLoader(spirals(48, seed=1), batch_size)
    return train, test


class Prefetcher:
    """Iterates over a loader with the batches already on the device."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        following = None
        for batch in self.loader:
            batch = [each.to(self.device, non_blocking=True) for each in batch]
            if following is not None:
                yield following
            following = batch
        if following is not None:
            yield following


def mixup(x, y, alpha):
    """Mixed inputs, both labels, and how much of the first is in each sample."""
    share = torch.distributions.Beta(alpha, alpha).sample((x.size(0),))
    order = torch.randperm(x.size(0), device=x.device)
    mixed = torch.lerp(x[order], x, share.view(-1, *[1] * (x.dim() - 1)))  # raises
    return mixed, y, y[order], share
