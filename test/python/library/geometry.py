"""Geometric transforms on batches of points and images. Inputs keep their device and dtype."""
from __future__ import annotations

import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def eye_like(n: int, x: Tensor, shared_memory: bool = False) -> Tensor:
    """(B, n, n) identity with the device and type of x"""
    identity = torch.eye(n, device=x.device, dtype=x.dtype)
    return identity[None].expand(x.shape[0], n, n) if shared_memory else identity[None].repeat(x.shape[0], 1, 1)


# clean
def angle_to_rotation_matrix(angle: Tensor) -> Tensor:
    ang = angle * (torch.tensor(math.pi, dtype=angle.dtype) / 180.)
    cos_a, sin_a = torch.cos(ang), torch.sin(ang)
    return torch.stack([cos_a, sin_a, -sin_a, cos_a], dim=-1).view(*angle.shape, 2, 2)


# broken
def get_rotation_matrix2d(center: Tensor, angle: Tensor, scale: Tensor) -> Tensor:
    """2x3 affine matrices, as in OpenCV

    Args:
        center: (B, 2)
        angle: (B), degrees
        scale: (B, 2)
    """
    if center.shape[0] != angle.shape[0]:
        raise ValueError("batch sizes differ")
    shift_m = eye_like(3, center)
    shift_m[:, :2, 2] = center
    shift_m_inv = eye_like(3, center)
    shift_m_inv[:, :2, 2] = -center

    scale_m = eye_like(3, center)
    scale_m[:, 0, 0] *= scale[:, 0]
    scale_m[:, 1, 1] *= scale[:, 1]

    rotat_m = torch.eye(3, dtype=center.dtype).repeat(center.shape[0], 1, 1)
    rotat_m[:, :2, :2] = angle_to_rotation_matrix(angle)

    affine_m = shift_m @ rotat_m @ scale_m @ shift_m_inv  # raises
    return affine_m[:, :2, :]


# clean
def create_meshgrid(height: int, width: int, normalized_coordinates: bool = True,
                    device: Optional[torch.device] = None, dtype: Optional[torch.dtype] = None) -> Tensor:
    xs = torch.linspace(0, width - 1, width, device=device, dtype=dtype)
    ys = torch.linspace(0, height - 1, height, device=device, dtype=dtype)
    if normalized_coordinates:
        xs = (xs / (width - 1) - 0.5) * 2
        ys = (ys / (height - 1) - 0.5) * 2
    return torch.stack(torch.meshgrid([xs, ys], indexing="ij"), dim=-1).permute(1, 0, 2).unsqueeze(0)


# broken
def remap(image: Tensor, map_x: Tensor, map_y: Tensor, normalized_coordinates: bool = False) -> Tensor:
    b, _, h, w = image.shape
    grid = torch.stack([map_x, map_y], dim=-1)
    if not normalized_coordinates:
        factor = torch.tensor([2. / (w - 1), 2. / (h - 1)], dtype=grid.dtype)
        grid = grid * factor - 1  # raises
    return F.grid_sample(image, grid.expand(b, -1, -1, -1), align_corners=True)


# clean
class HomographyWarper(nn.Module):
    def __init__(self, height: int, width: int):
        super().__init__()
        self.size = height, width
        self.grid = create_meshgrid(height, width)
        self._warped: Optional[Tensor] = None

    def precompute(self, homography: Tensor) -> None:
        if self.grid.device != homography.device:
            self.grid = self.grid.to(homography.device, dtype=homography.dtype)
        pts = F.pad(self.grid.expand(homography.shape[0], -1, -1, -1), (0, 1), value=1.0)
        out = torch.einsum("bij,bhwj->bhwi", homography, pts)
        self._warped = out[..., :2] / out[..., 2:].clamp(min=1e-8)

    def forward(self, patch: Tensor, homography: Optional[Tensor] = None) -> Tensor:
        if homography is not None:
            self.precompute(homography)
        assert self._warped is not None
        return F.grid_sample(patch, self._warped, align_corners=True)


# broken
class PinholeCamera:
    def __init__(self, intrinsics: Tensor, extrinsics: Tensor, height: Tensor, width: Tensor):
        self._intrinsics, self._extrinsics = intrinsics, extrinsics
        self.height, self.width = height, width

    @classmethod
    def from_parameters(cls, fx, fy, cx, cy, height: int, width: int, batch: int, device=None, dtype=torch.float32):
        k = torch.zeros(batch, 4, 4, device=device, dtype=dtype)
        k[..., 0, 0] += fx
        k[..., 1, 1] += fy
        k[..., 0, 2] += cx
        k[..., 1, 2] += cy
        k[..., 2, 2] = k[..., 3, 3] = 1.
        e = torch.eye(4, dtype=dtype).unsqueeze(0).repeat(batch, 1, 1)
        h = torch.full((batch,), float(height), device=device, dtype=dtype)
        w = torch.full((batch,), float(width), device=device, dtype=dtype)
        return cls(k, e, h, w)

    @property
    def camera_matrix(self) -> Tensor:
        return self._intrinsics[..., :3, :3]

    def project(self, pts: Tensor) -> Tensor:
        p = self._intrinsics @ self._extrinsics  # raises
        h = F.pad(pts, (0, 1), value=1.) @ p[..., :3, :].mT
        return h[..., :2] / h[..., 2:3]
