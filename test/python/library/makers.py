from typing import Generic, List, TypeVar

import torch
from torch import Tensor, nn

C = TypeVar("C")


class Camera:
    def __init__(self, intrinsics, extrinsics):
        self.intrinsics, self.extrinsics = intrinsics, extrinsics

    @classmethod
    def of(cls, focal: Tensor):
        k = torch.zeros(focal.shape[0], 4, 4, device=focal.device)
        k[..., 0, 0] += focal
        return cls(k, torch.eye(4).repeat(focal.shape[0], 1, 1))

    @property
    def matrix(self):
        return self.intrinsics @ self.extrinsics  # raises

    def scaled(self, factor: Tensor):
        k = self.intrinsics.clone()
        k[..., 0, 0] *= factor
        return Camera(k, self.extrinsics.clone())


class Lens:
    def __init__(self, curve, offset):
        self.curve, self.offset = curve, offset

    @staticmethod
    def of(points: Tensor):
        return Lens(points.diff(dim=0), torch.zeros(1, points.shape[-1], dtype=points.dtype, device=points.device))

    def bend(self, x: Tensor):
        return x * self.curve + self.offset


class Base(nn.Module, Generic[C]):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder


class Tagger(Base[int]):
    @staticmethod
    def of(sizes: List[int]):
        return Tagger(nn.Linear(sizes[0], sizes[1]))

    def forward(self, x: Tensor):
        return self.encoder(x)


class Masks:
    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    @staticmethod
    def of(rows: List[List[float]]):
        return Masks(torch.stack([torch.tensor(row) for row in rows]))

    def to(self, device):
        return Masks(self.tensor.to(device))

    def within(self, boxes: Tensor):
        return torch.cat([self.tensor, boxes], dim=1)
