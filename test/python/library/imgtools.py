"""Differentiable image operations and geometry."""
from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple, Union

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

__all__ = ["create_meshgrid", "rotation_matrix", "warp_affine", "gaussian_kernel", "Blur", "Sobel", "rgb_to_yuv", "yuv_to_rgb",
           "get_perspective", "transform_points", "distort", "CenterCrop", "histogram", "equalize", "project", "Camera", "dilate",
           "posterize", "HomographyWarper", "motion_blur", "unproject", "total_variation"]


def create_meshgrid(height: int, width: int, normalized: bool = True, device: Optional[torch.device] = None,
                    dtype: Optional[torch.dtype] = None) -> Tensor:
    xs = torch.linspace(0, width - 1, width, device=device, dtype=dtype)
    ys = torch.linspace(0, height - 1, height, device=device, dtype=dtype)
    if normalized:
        xs = (xs / (width - 1) - 0.5) * 2
        ys = (ys / (height - 1) - 0.5) * 2
    return torch.stack(torch.meshgrid(ys, xs, indexing="ij")[::-1], dim=-1)[None]


def rotation_matrix(center: Tensor, angle: Tensor, scale: Tensor) -> Tensor:
    """2x3 matrices of rotations about centers; angle in degrees."""
    rad = angle * math.pi / 180.0
    c, s = torch.cos(rad), torch.sin(rad)
    rot = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], dim=-2)
    eye = torch.eye(2).expand(center.shape[0], 2, 2)
    zoom = eye * scale[:, None, None]  # raises
    m = rot @ zoom
    t = center[..., None] - m @ center[..., None]
    return torch.cat([m, t], dim=-1)


def _pad_to_3x3(m: Tensor) -> Tensor:
    out = F.pad(m, [0, 0, 0, 1])
    out[..., -1, -1] += 1.0
    return out


def warp_affine(src: Tensor, matrix: Tensor, dsize: Tuple[int, int]) -> Tensor:
    h, w = src.shape[-2:]
    norm = torch.tensor([[2.0 / (w - 1), 0, -1], [0, 2.0 / (h - 1), -1], [0, 0, 1]]).to(src)
    theta = norm @ torch.inverse(_pad_to_3x3(matrix)) @ torch.inverse(norm)
    grid = F.affine_grid(theta[:, :2], [src.shape[0], src.shape[1], *dsize], align_corners=True)
    return F.grid_sample(src, grid, align_corners=True)


def gaussian_kernel(size: int, sigma: float, device=None, dtype=None) -> Tensor:
    x = torch.arange(size, device=device, dtype=dtype) - size // 2
    g = torch.exp(-x.pow(2.0) / (2 * sigma ** 2))
    return g / g.sum()


class Blur(nn.Module):
    def __init__(self, size: int = 3, sigma: float = 1.0) -> None:
        super().__init__()
        self.size, self.sigma = size, sigma

    def forward(self, x: Tensor) -> Tensor:
        c = x.shape[1]
        k = gaussian_kernel(self.size, self.sigma).to(x)
        k2 = (k[:, None] * k[None]).expand(c, 1, self.size, self.size)
        return F.conv2d(x, k2, padding=self.size // 2, groups=c)


def motion_blur(x: Tensor, size: int, angle: float) -> Tensor:
    k = torch.zeros(1, 1, size, size)
    k[..., size // 2, :] = 1.0
    t = math.radians(angle)
    theta = k.new_tensor([[[math.cos(t), math.sin(t), 0.0], [-math.sin(t), math.cos(t), 0.0]]])
    k = F.grid_sample(k, F.affine_grid(theta, list(k.shape), align_corners=False), align_corners=False)
    k = (k / k.sum()).expand(x.shape[1], 1, size, size)
    return F.conv2d(x, k, padding=size // 2, groups=x.shape[1])  # raises


class Sobel(nn.Module):
    def __init__(self, normalized: bool = True, eps: float = 1e-6) -> None:
        super().__init__()
        kx = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        kernel = torch.stack([kx, kx.t()])[:, None]
        if normalized:
            kernel = kernel / kernel.abs().sum(dim=(-1, -2), keepdim=True)
        self.kernel = kernel
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        kernel = self.kernel.to(x.device, x.dtype)
        g = F.conv2d(F.pad(x.reshape(b * c, 1, h, w), [1, 1, 1, 1], "replicate"), kernel)
        return (g.square().sum(1) + self.eps).sqrt().view(b, c, h, w)


_YUV = torch.tensor([[0.299, 0.587, 0.114], [-0.147, -0.289, 0.436], [0.615, -0.515, -0.100]])


def rgb_to_yuv(image: Tensor) -> Tensor:
    return torch.einsum("ij,...jhw->...ihw", _YUV.to(image), image)


def yuv_to_rgb(image: Tensor) -> Tensor:
    inverse = torch.linalg.inv(_YUV)
    return torch.einsum("ij,...jhw->...ihw", inverse, image)  # raises


def get_perspective(src: Tensor, dst: Tensor) -> Tensor:
    rows, rhs = [], []
    for i in range(4):
        x, y, u, v = src[:, i, 0], src[:, i, 1], dst[:, i, 0], dst[:, i, 1]
        zero, one = torch.zeros_like(x), torch.ones_like(x)
        rows.append(torch.stack([x, y, one, zero, zero, zero, -x * u, -y * u], 1))
        rows.append(torch.stack([zero, zero, zero, x, y, one, -x * v, -y * v], 1))
        rhs += [u, v]
    sol = torch.linalg.solve(torch.stack(rows, 1), torch.stack(rhs, 1)[..., None])
    m = torch.empty(src.shape[0], 9, dtype=src.dtype, device=src.device)
    m[..., :8] = sol[..., 0]
    m[..., 8].fill_(1.0)
    return m.view(-1, 3, 3)


def transform_points(m: Tensor, pts: Tensor) -> Tensor:
    hom = F.pad(pts, (0, 1), value=1.0)
    out = hom @ m.transpose(-1, -2)
    z = out[..., -1:]
    mask = z.abs() > 1e-8
    scale = torch.where(mask, 1.0 / z.masked_fill(~mask, 1.0), torch.ones_like(z))
    return out[..., :-1] * scale


def distort(points: Tensor, dist: Tensor) -> Tensor:
    if dist.shape[-1] < 8:
        missing = torch.zeros(dist.shape[:-1] + (8 - dist.shape[-1],))
        dist = torch.cat([dist, missing], dim=-1)  # raises
    r2 = points.square().sum(-1, keepdim=True)
    k = dist[..., None, :]
    radial = (1 + k[..., 0:1] * r2 + k[..., 1:2] * r2 ** 2) / (1 + k[..., 5:6] * r2)
    return points * radial


class CenterCrop(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.flags = dict(size=torch.tensor([size, size]))

    def forward(self, x: Tensor) -> Tensor:
        top = (x.shape[-2] - int(self.flags["size"][0])) // 2
        left = (x.shape[-1] - int(self.flags["size"][1])) // 2
        return x[..., top:top + self.size, left:left + self.size]


def histogram(x: Tensor, bins: int = 8, bandwidth: Optional[Tensor] = None) -> Tensor:
    if bandwidth is None:
        bandwidth = torch.tensor(0.1)
    centers = torch.linspace(0, 1, bins).to(x.device)
    kernel = torch.exp(-0.5 * ((x.flatten(1)[..., None] - centers) / bandwidth) ** 2)
    pdf = kernel.mean(1)
    return pdf / (pdf.sum(-1, keepdim=True) + torch.tensor(1e-10))


def equalize(image: Tensor) -> Tensor:
    out = []
    for each in image:
        hist = torch.histc(each, 16, 0, 1)
        cdf = hist.cumsum(0) / hist.sum()
        lut = torch.cat([torch.zeros(1), cdf[:-1]])  # raises
        out.append(lut[(each * 15).long()])
    return torch.stack(out)


def posterize(image: Tensor, bits: Union[int, Tensor]) -> Tensor:
    if not isinstance(bits, Tensor):
        bits = torch.as_tensor(bits)
    levels = 2.0 ** bits
    return (image * levels).floor() / levels


def dilate(x: Tensor, kernel: Tensor, border: str = "geodesic", max_val: float = 1e4) -> Tensor:
    h, w = kernel.shape
    x = F.pad(x, [w // 2, w // 2, h // 2, h // 2], value=-max_val if border == "geodesic" else 0.0)
    neighborhood = torch.zeros_like(kernel)
    neighborhood[kernel == 0] = -max_val
    x = x.unfold(2, h, 1).unfold(3, w, 1)
    return (x + neighborhood.flip((0, 1))).amax(dim=(-1, -2))


class Camera:
    def __init__(self, intrinsics: Tensor, extrinsics: Tensor) -> None:
        self.intrinsics, self.extrinsics = intrinsics, extrinsics

    @classmethod
    def from_parameters(cls, fx: Tensor, fy: Tensor, cx: Tensor, cy: Tensor) -> "Camera":
        k = torch.zeros(fx.shape[0], 4, 4, device=fx.device, dtype=fx.dtype)
        k[..., 0, 0:1] += fx
        k[..., 1, 1:2] += fy
        k[..., 0, 2:3] += cx
        k[..., 1, 2:3] += cy
        k[..., 2, 2] = k[..., 3, 3] = 1.0
        return cls(k, torch.eye(4).repeat(fx.shape[0], 1, 1))

    def scale(self, factor: Tensor) -> "Camera":
        k = self.intrinsics.clone()
        k[..., 0, 0] *= factor
        k[..., 1, 1] *= factor
        return Camera(k, self.extrinsics.clone())

    @property
    def matrix(self) -> Tensor:
        return self.intrinsics @ self.extrinsics  # raises


def project(points: Tensor, camera: Camera) -> Tensor:
    return transform_points(camera.matrix, points)[..., :2]


def unproject(uv: Tensor, depth: Tensor, k: Tensor) -> Tensor:
    hom = torch.cat([uv, torch.ones(uv.shape[:-1] + (1,), dtype=uv.dtype, device=uv.device)], -1)
    return (hom @ torch.linalg.inv(k).transpose(-1, -2)) * depth[..., None]


class HomographyWarper(nn.Module):
    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.grid = create_meshgrid(height, width)
        self.model = nn.Parameter(torch.eye(3)[None])

    def warp_grid(self) -> Tensor:
        n = self.model.shape[0]
        flat = self.grid.expand(n, -1, -1, -1).reshape(n, -1, 2)
        hom = F.pad(flat, (0, 1), value=1.0)
        out = hom @ self.model.transpose(1, 2)  # raises
        return (out[..., :2] / out[..., 2:]).view(n, *self.grid.shape[1:])

    def forward(self, patch: Tensor) -> Tensor:
        return F.grid_sample(patch, self.warp_grid(), align_corners=True)


def total_variation(x: Tensor, weights: Optional[Tuple[float, float]] = None) -> Tensor:
    wh, ww = (1.0, 1.0) if weights is None else weights
    dh, dw = x.diff(dim=-2).abs().sum((1, 2, 3)), x.diff(dim=-1).abs().sum((1, 2, 3))
    return torch.tensor(wh) * dh + torch.tensor(ww) * dw
