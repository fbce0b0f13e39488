"""Differentiable image geometry: grids, homographies, filters, colour and augmentations."""
import math
from functools import lru_cache
from typing import Dict, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

__all__ = [
    "create_meshgrid", "normal_transform_pixel", "warp_perspective", "remap", "rotation_matrix2d", "gaussian_blur2d", "separable_blur",
    "spatial_gradient", "Sobel", "rgb_to_hsv", "rgb_to_xyz", "adjust_gamma", "posterize", "ColorJitter", "RandomErasing", "Normalize",
    "Denormalize", "find_homography_dlt", "soft_argmax2d", "draw_points", "tensor_to_image", "save_grid", "PinholeCamera", "depth_to_points",
]

_XYZ = torch.tensor([
    [0.412453, 0.357580, 0.180423],
    [0.212671, 0.715160, 0.072169],
    [0.019334, 0.119193, 0.950227],
])


# --------------------------------------------------------------------------------------------------------------- grids
def create_meshgrid(
    height: int,
    width: int,
    normalized_coordinates: bool = True,
    device: Optional[torch.device] = None,
    dtype: Optional[torch.dtype] = None,
) -> Tensor:
    """Generate a coordinate grid of shape :math:`(1, H, W, 2)`."""
    xs = torch.linspace(0, width - 1, width, device=device, dtype=dtype)
    ys = torch.linspace(0, height - 1, height, device=device, dtype=dtype)
    if normalized_coordinates:
        xs = (xs / max(width - 1, 1) - 0.5) * 2
        ys = (ys / max(height - 1, 1) - 0.5) * 2
    base_grid = torch.stack(torch.meshgrid([xs, ys], indexing="ij"), dim=-1)
    return base_grid.permute(1, 0, 2).unsqueeze(0)


def normal_transform_pixel(height: int, width: int, eps: float = 1e-14, device=None, dtype=None) -> Tensor:
    tr_mat = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]], device=device, dtype=dtype)
    width_denom = eps if width == 1 else width - 1.0
    height_denom = eps if height == 1 else height - 1.0
    tr_mat[0, 0] = tr_mat[0, 0] * 2.0 / width_denom
    tr_mat[1, 1] = tr_mat[1, 1] * 2.0 / height_denom
    return tr_mat.unsqueeze(0)


def normalize_homography(dst_pix_trans_src_pix: Tensor, dsize_src: Tuple[int, int], dsize_dst: Tuple[int, int]) -> Tensor:
    if not isinstance(dst_pix_trans_src_pix, Tensor):
        raise TypeError(f"Input type is not a Tensor. Got {type(dst_pix_trans_src_pix)}")
    src_norm = normal_transform_pixel(*dsize_src).to(dst_pix_trans_src_pix)
    dst_norm = normal_transform_pixel(*dsize_dst).to(dst_pix_trans_src_pix)
    return dst_norm @ (dst_pix_trans_src_pix @ torch.inverse(src_norm))


def transform_points(trans: Tensor, points: Tensor) -> Tensor:
    points_h = F.pad(points, [0, 1], "constant", 1.0)
    out = torch.bmm(points_h, trans.permute(0, 2, 1))
    z = out[..., -1:]
    scale = torch.where(z.abs() > 1e-8, 1.0 / (z + 1e-8), torch.ones_like(z))
    return out[..., :-1] * scale


def warp_perspective(src: Tensor, M: Tensor, dsize: Tuple[int, int], mode: str = "bilinear", align_corners: bool = True) -> Tensor:
    B, _, H, W = src.size()
    h_out, w_out = dsize
    src_norm_trans_dst_norm = torch.inverse(normalize_homography(M, (H, W), (h_out, w_out)))
    grid = create_meshgrid(h_out, w_out, normalized_coordinates=True, device=src.device).to(src.dtype).repeat(B, 1, 1, 1)
    grid = transform_points(src_norm_trans_dst_norm, grid.view(B, -1, 2)).view(B, h_out, w_out, 2)
    return F.grid_sample(src, grid, align_corners=align_corners, mode=mode)


def remap(image: Tensor, flow: Tensor) -> Tensor:
    """Displace every pixel of ``image`` by ``flow`` (B, H, W, 2), given in pixels."""
    h, w = image.shape[-2:]
    grid = create_meshgrid(h, w, normalized_coordinates=False, dtype=image.dtype)
    target = grid + flow  # raises
    factor = target.new_tensor([2.0 / max(w - 1, 1), 2.0 / max(h - 1, 1)])
    return F.grid_sample(image, target * factor - 1, align_corners=True)


def rotation_matrix2d(center: Tensor, angle: Tensor, scale: Optional[Tensor] = None) -> Tensor:
    rad = angle * math.pi / 180.0
    cos, sin = torch.cos(rad), torch.sin(rad)
    rot = torch.stack([cos, sin, -sin, cos], dim=-1).view(-1, 2, 2)
    if scale is not None:
        rot = rot * scale.view(-1, 1, 1)
    shift = torch.eye(2)[None].expand_as(rot)
    offset = ((shift - rot) @ center.unsqueeze(-1))  # raises
    return torch.cat([rot, offset], dim=-1)


def find_homography_dlt(points1: Tensor, points2: Tensor, weights: Optional[Tensor] = None) -> Tensor:
    x1, y1 = points1[..., 0:1], points1[..., 1:2]
    x2, y2 = points2[..., 0:1], points2[..., 1:2]
    ones, zeros = torch.ones_like(x1), torch.zeros_like(x1)
    ax = torch.cat([zeros, zeros, zeros, -x1, -y1, -ones, y2 * x1, y2 * y1, y2], dim=-1)
    ay = torch.cat([x1, y1, ones, zeros, zeros, zeros, -x2 * x1, -x2 * y1, -x2], dim=-1)
    A = torch.cat((ax, ay), dim=-1).reshape(ax.shape[0], -1, ax.shape[-1])
    if weights is None:
        A = A.transpose(-2, -1) @ A
    else:
        w = weights.repeat_interleave(2, dim=1)
        A = A.transpose(-2, -1) @ (w[..., None] * A)
    _, vec = torch.linalg.eigh(A + 1e-6 * torch.eye(9, dtype=A.dtype).to(A.device))
    H = vec[..., 0].view(-1, 3, 3)
    return H / (H[..., -1:, -1:] + 1e-8)


# ------------------------------------------------------------------------------------------------------------- filters
@lru_cache(maxsize=32)
def gaussian_window(window_size: int, sigma: float) -> Tensor:
    x = torch.arange(window_size, dtype=torch.float32) - window_size // 2
    gauss = torch.exp(-x.pow(2.0) / (2 * sigma ** 2))
    return gauss / gauss.sum()


def gaussian_blur2d(img: Tensor, kernel_size: int = 3, sigma: float = 1.0) -> Tensor:
    c = img.shape[1]
    k = gaussian_window(kernel_size, sigma)
    kernel = torch.outer(k, k).to(img)[None, None].repeat(c, 1, 1, 1)
    pad = kernel_size // 2
    return F.conv2d(F.pad(img, [pad] * 4, mode="reflect"), kernel, groups=c)


def separable_blur(img: Tensor, kernel_size: int = 3, sigma: float = 1.0) -> Tensor:
    c = img.shape[1]
    k = gaussian_window(kernel_size, sigma).to(img.dtype)
    horizontal = k.view(1, 1, 1, -1).expand(c, -1, -1, -1)
    vertical = k.view(1, 1, -1, 1).expand(c, -1, -1, -1)
    out = F.conv2d(img, horizontal, padding=(0, kernel_size // 2), groups=c)  # raises
    return F.conv2d(out, vertical, padding=(kernel_size // 2, 0), groups=c)


def get_sobel_kernel2d() -> Tensor:
    kx = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    return torch.stack([kx, kx.transpose(0, 1)])


def spatial_gradient(img: Tensor, normalized: bool = True) -> Tensor:
    b, c, h, w = img.shape
    kernel = get_sobel_kernel2d().to(device=img.device, dtype=img.dtype).unsqueeze(1)
    if normalized:
        kernel = kernel / kernel.abs().sum(dim=(-2, -1), keepdim=True)
    out = F.conv2d(F.pad(img.reshape(b * c, 1, h, w), [1, 1, 1, 1], "replicate"), kernel)
    return out.view(b, c, 2, h, w)


class Sobel(nn.Module):
    def __init__(self, normalized: bool = True, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.kernel = get_sobel_kernel2d().unsqueeze(1)
        if normalized:
            self.kernel = self.kernel / 8.0

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        edges = F.conv2d(x.reshape(b * c, 1, h, w), self.kernel, padding=1)  # raises
        gx, gy = edges[:, 0], edges[:, 1]
        return torch.sqrt(gx * gx + gy * gy + self.eps).view(b, c, h, w)


# --------------------------------------------------------------------------------------------------------------- color
def rgb_to_hsv(image: Tensor, eps: float = 1e-8) -> Tensor:
    max_rgb, argmax_rgb = image.max(-3)
    deltac = max_rgb - image.min(-3)[0]
    s = deltac / (max_rgb + eps)
    deltac = torch.where(deltac == 0, torch.ones_like(deltac), deltac)
    rc, gc, bc = torch.unbind(max_rgb.unsqueeze(-3) - image, dim=-3)
    h = torch.stack((bc - gc, (rc - bc) + 2.0 * deltac, (gc - rc) + 4.0 * deltac), dim=-3) / deltac.unsqueeze(-3)
    h = torch.gather(h, dim=-3, index=argmax_rgb.unsqueeze(-3)).squeeze(-3)
    return torch.stack(((h / 6.0) % 1.0 * 2.0 * math.pi, s, max_rgb), dim=-3)


def rgb_to_xyz(image: Tensor) -> Tensor:
    if image.shape[-3] != 3:
        raise ValueError(f"Input size must have a shape of (*, 3, H, W). Got {image.shape}")
    flat = image.flatten(-2)
    return torch.matmul(_XYZ, flat).view_as(image)  # raises


def adjust_gamma(image: Tensor, gamma: Union[float, Tensor], gain: Union[float, Tensor] = 1.0) -> Tensor:
    if not isinstance(gamma, Tensor):
        gamma = torch.tensor([gamma])
    if not isinstance(gain, Tensor):
        gain = torch.tensor([gain])
    gamma, gain = gamma.to(image), gain.to(image)
    while gamma.ndim < image.ndim:
        gamma = gamma[..., None]
    return (gain * image.pow(gamma)).clamp(0.0, 1.0)


def posterize(image: Tensor, bits: int = 4) -> Tensor:
    levels = torch.linspace(0, 1, 2 ** bits)
    index = (image * (2 ** bits - 1)).round().long()
    return levels[index]  # raises


# ------------------------------------------------------------------------------------------------------- augmentations
class AugmentationBase(nn.Module):
    def __init__(self, p: float = 0.5, same_on_batch: bool = False):
        super().__init__()
        self.p = p
        self.same_on_batch = same_on_batch
        self._params: Dict[str, Tensor] = {}

    def generate_parameters(self, shape: torch.Size) -> Dict[str, Tensor]:
        raise NotImplementedError

    def apply_transform(self, x: Tensor, params: Dict[str, Tensor]) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, params: Optional[Dict[str, Tensor]] = None) -> Tensor:
        if params is None:
            params = self.generate_parameters(x.shape)
            params["batch_prob"] = torch.rand(x.shape[0]) < self.p
        self._params = params
        to_apply = params["batch_prob"]
        if not to_apply.any():
            return x
        return torch.where(to_apply.to(x.device).view(-1, 1, 1, 1), self.apply_transform(x, params), x)


class ColorJitter(AugmentationBase):
    def __init__(self, brightness: float = 0.2, contrast: float = 0.2, **kwargs):
        super().__init__(**kwargs)
        self.brightness, self.contrast = brightness, contrast

    def generate_parameters(self, shape):
        return {
            "brightness": torch.empty(shape[0]).uniform_(1 - self.brightness, 1 + self.brightness),
            "contrast": torch.empty(shape[0]).uniform_(1 - self.contrast, 1 + self.contrast),
        }

    def apply_transform(self, x, params):
        x = x * params["brightness"].to(x).view(-1, 1, 1, 1)
        mean = x.mean(dim=(1, 2, 3), keepdim=True)
        return (x - mean) * params["contrast"].view(-1, 1, 1, 1) + mean  # raises


class RandomErasing(AugmentationBase):
    def __init__(self, size: int = 2, value: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.size, self.value = size, value

    def generate_parameters(self, shape):
        b, _, h, w = shape
        return {"y": torch.randint(0, h - self.size, (b,)), "x": torch.randint(0, w - self.size, (b,))}

    def apply_transform(self, x, params):
        out = x.clone()
        for i, (top, left) in enumerate(zip(params["y"].tolist(), params["x"].tolist())):
            out[i, :, top:top + self.size, left:left + self.size] = torch.full((self.size, self.size), self.value)
        return out


class Normalize(nn.Module):
    def __init__(self, mean: Union[Tensor, float, List[float]], std: Union[Tensor, float, List[float]]):
        super().__init__()
        self.mean = torch.as_tensor(mean).view(-1, 1, 1)
        self.std = torch.as_tensor(std).view(-1, 1, 1)

    def forward(self, x):
        return (x - self.mean.to(x)) / self.std.to(x)


class Denormalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean).view(-1, 1, 1), persistent=False)
        self.std = torch.as_tensor(std).view(-1, 1, 1)

    def forward(self, x):
        return x * self.std + self.mean  # raises


# -------------------------------------------------------------------------------------------------------------- camera
class PinholeCamera:
    def __init__(self, intrinsics: Tensor, extrinsics: Tensor, height: int, width: int):
        self._intrinsics, self._extrinsics = intrinsics, extrinsics
        self.height, self.width = height, width

    @property
    def camera_matrix(self) -> Tensor:
        return self._intrinsics[..., :3, :3]

    @property
    def rt_matrix(self) -> Tensor:
        return self._extrinsics[..., :3, :4]

    @classmethod
    def from_parameters(cls, fx, fy, cx, cy, tz, height, width, device=None) -> "PinholeCamera":
        K = torch.eye(4, device=device)[None]
        K[..., 0, 0], K[..., 1, 1], K[..., 0, 2], K[..., 1, 2] = fx, fy, cx, cy
        E = torch.eye(4)[None]
        E[..., 2, 3] = tz
        return cls(K, E, height, width)

    def project(self, points: Tensor) -> Tensor:
        R, t = self.rt_matrix[..., :3], self.rt_matrix[..., 3]
        cam = points @ R.transpose(-2, -1) + t.unsqueeze(-2)  # raises
        uv = cam @ self.camera_matrix.transpose(-2, -1)
        return uv[..., :2] / uv[..., 2:].clamp(min=1e-6)

    def unproject(self, uv: Tensor, depth: Tensor) -> Tensor:
        rays = F.pad(uv, [0, 1], value=1.0) @ torch.inverse(self.camera_matrix).transpose(-2, -1)
        return rays * depth


def depth_to_points(depth: Tensor, camera_matrix: Tensor) -> Tensor:
    _, _, h, w = depth.shape
    grid = create_meshgrid(h, w, normalized_coordinates=False, device=depth.device, dtype=depth.dtype)
    homog = F.pad(grid, [0, 1], value=1.0)
    rays = homog @ torch.inverse(camera_matrix).transpose(-2, -1)[:, None]
    return rays * depth.permute(0, 2, 3, 1)


def soft_argmax2d(heatmap: Tensor, temperature: float = 1.0) -> Tensor:
    b, c, h, w = heatmap.shape
    prob = F.softmax(heatmap.view(b, c, -1) * temperature, dim=-1)
    pos_y, pos_x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    ex = (prob * pos_x.reshape(-1).to(prob)).sum(-1)
    ey = (prob * pos_y.reshape(-1).to(prob)).sum(-1)
    return torch.stack([ex, ey], dim=-1)


# ------------------------------------------------------------------------------------------------------------- drawing
def draw_points(image: Tensor, points: Tensor, color: Tuple[float, float, float] = (1.0, 0.0, 0.0)) -> Tensor:
    """Paint each of the points (N, 2) of (x, y) onto a copy of the image (3, H, W)."""
    out = image.clone()
    xs, ys = points.round().long().unbind(-1)
    out[:, ys, xs] = torch.tensor(color).to(out)[:, None]
    return out


def tensor_to_image(tensor: Tensor, keepdim: bool = False) -> np.ndarray:
    image = tensor.detach().cpu()
    if image.ndim == 4 and image.shape[0] == 1 and not keepdim:
        image = image[0]
    return image.movedim(-3, -1).contiguous().numpy()


def save_grid(images: List[Tensor], columns: int = 2) -> np.ndarray:
    rows = [torch.cat(images[i:i + columns], dim=-1) for i in range(0, len(images), columns)]
    canvas = torch.cat(rows, dim=-2).clamp(0, 1) * 255
    return canvas.byte().permute(1, 2, 0).numpy()  # raises
