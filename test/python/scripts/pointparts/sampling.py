"""Choice of centres; each sampler answers indices of shape (clouds, count)."""
import torch

from registry import SAMPLERS


@SAMPLERS.register('random')
class RandomPoints:
    def __init__(self, count):
        self.count = count

    def __call__(self, xyz):
        return torch.stack([torch.randperm(xyz.shape[1])[:self.count] for _ in xyz])


@SAMPLERS.register('farthest')
class FarthestPoints:
    def __init__(self, count):
        self.count = count

    def __call__(self, xyz):
        n, points, _ = xyz.shape
        rows = torch.arange(n)
        chosen = torch.zeros(n, self.count, dtype=torch.long)
        distance = torch.full((n, points), float('inf'), device=xyz.device)
        last = torch.randint(points, (n,))
        for k in range(self.count):
            chosen[:, k] = last
            centre = xyz[rows, last].unsqueeze(1)
            distance = torch.minimum(distance, ((xyz - centre) ** 2).sum(-1))
            last = distance.argmax(1).cpu()
        return chosen


@SAMPLERS.register('grid')
class GridPoints:
    """The points nearest to the nodes of a cube."""

    def __init__(self, count):
        side = max(2, round(count ** (1 / 3)))
        line = torch.linspace(-0.8, 0.8, side)
        self.nodes = torch.cartesian_prod(line, line, line)

    def __call__(self, xyz):
        gap = xyz.unsqueeze(1) - self.nodes.unsqueeze(1)  # raises
        return (gap ** 2).sum(-1).argmin(-1)


def take(values, index):
    """values (n, points, c) at index (n, ...)."""
    rows = torch.arange(len(values)).view(-1, *[1] * (index.dim() - 1))
    return values[rows.to(index.device), index]


def nearest(centres, xyz, k):
    return torch.cdist(centres, xyz).topk(k, largest=False).indices
