"""Anchors: a grid of the usual ratios, or priors clustered from the training boxes."""
import numpy as np
import torch
import torch.nn as nn

REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        return cls
    return wrap


class AnchorBase(nn.Module):
    def __init__(self, stride):
        super().__init__()
        self.stride = stride

    @property
    def per_cell(self):
        return len(self.cell)

    def shifts(self, height, width, like):
        ys = torch.arange(height, device=like.device) * self.stride
        xs = torch.arange(width, device=like.device) * self.stride
        yy, xx = torch.meshgrid(ys, xs, indexing="ij")
        return torch.stack([xx, yy, xx, yy], dim=-1).reshape(-1, 1, 4) + self.stride / 2

    def forward(self, feature):
        shifts = self.shifts(*feature.shape[-2:], like=feature)
        return (shifts + self.cell).reshape(-1, 4)  # raises


@register("ratios")
class RatioAnchors(AnchorBase):
    def __init__(self, stride, size=12.0, ratios=(0.5, 1.0, 2.0)):
        super().__init__(stride)
        ratios = torch.tensor(ratios)
        w, h = size / ratios.sqrt(), size * ratios.sqrt()
        self.register_buffer("cell", 0.5 * torch.stack([-w, -h, w, h], dim=1), persistent=False)


@register("clustered")
class ClusteredAnchors(AnchorBase):
    """k-means on widths and heights, by 1 - IoU as in YOLOv2."""

    def __init__(self, stride, sizes=None, k=3, rounds=5):
        super().__init__(stride)
        sizes = np.asarray(sizes if sizes is not None else [[8, 8], [16, 8], [8, 16]], dtype=np.float32)
        centres = sizes[:: max(1, len(sizes) // k)][:k].copy()
        for _ in range(rounds):
            inter = np.minimum(sizes[:, None], centres[None]).prod(-1)
            union = sizes.prod(-1)[:, None] + centres.prod(-1)[None] - inter
            nearest = (inter / union).argmax(1)
            for j in range(len(centres)):
                if (nearest == j).any():
                    centres[j] = sizes[nearest == j].mean(0)
        half = 0.5 * torch.from_numpy(centres)
        self.cell = torch.cat([-half, half], dim=1)
