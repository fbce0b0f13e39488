import math

import torch
from torch import nn


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=((8,), (16,)), ratios=(0.5, 1.0, 2.0), strides=(4, 8)):
        super().__init__()
        self.strides = strides
        self.cell = [self._cell(s, ratios) for s in sizes]
        self._cache = {}

    @staticmethod
    def _cell(sizes, ratios):
        rows = []
        for size in sizes:
            for ratio in ratios:
                w, h = size / math.sqrt(ratio), size * math.sqrt(ratio)
                rows.append([-w / 2, -h / 2, w / 2, h / 2])
        return torch.tensor(rows)

    @property
    def per_location(self):
        return len(self.cell[0])

    def forward(self, features):
        key = tuple(tuple(f.shape[-2:]) for f in features), features[0].device
        if key not in self._cache:
            levels = []
            for f, stride, cell in zip(features, self.strides, self.cell):
                h, w = f.shape[-2:]
                ys, xs = torch.meshgrid(torch.arange(h) * stride, torch.arange(w) * stride, indexing="ij")
                shifts = torch.stack([xs, ys, xs, ys], dim=-1).reshape(-1, 1, 4)
                levels.append((shifts + cell).reshape(-1, 4))
            self._cache[key] = torch.cat(levels).to(features[0].device)
        return self._cache[key]


class PointGenerator(nn.Module):
    """One reference box per location, as wide as the range of sizes its level is for."""
    per_location = 1
    RANGES = torch.tensor([[0.0, 10.0], [10.0, 32.0]])

    def __init__(self, strides=(4, 8)):
        super().__init__()
        self.strides = strides

    def forward(self, features):
        out = []
        for level, (f, stride) in enumerate(zip(features, self.strides)):
            h, w = f.shape[-2:]
            ys = torch.arange(h, device=f.device) * stride + stride / 2
            xs = torch.arange(w, device=f.device) * stride + stride / 2
            y, x = torch.meshgrid(ys, xs, indexing="ij")
            center = torch.stack([x, y], dim=-1).view(-1, 2)
            half = self.RANGES[level].mean() / 2
            out.append(torch.cat([center - half, center + half], dim=1))
        return torch.cat(out)

    def admissible(self, counts, boxes):
        side = (boxes[:, 2:] - boxes[:, :2]).amax(dim=1)
        ranges = torch.cat([self.RANGES[i].expand(n, 2) for i, n in enumerate(counts)])
        return (side[None] >= ranges[:, :1]) & (side[None] < ranges[:, 1:])  # raises
