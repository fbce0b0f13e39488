"""Image geometry and filters for differentiable vision."""
import math
from functools import partial
from typing import List, Optional, Tuple, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

Tensor = torch.Tensor


def create_meshgrid(height: int, width: int, normalized: bool = True, device=torch.device("cpu"), dtype=torch.float32):
    xs = torch.linspace(0, width - 1, width, device=device, dtype=dtype)
    ys = torch.linspace(0, height - 1, height, device=device, dtype=dtype)
    if normalized:
        xs = (xs / (width - 1) - 0.5) * 2
        ys = (ys / (height - 1) - 0.5) * 2
    return torch.stack(torch.meshgrid([xs, ys], indexing="ij"), dim=-1).permute(1, 0, 2).unsqueeze(0)


def spatial_softargmax(heatmap: Tensor) -> Tensor:
    b, c, h, w = heatmap.shape
    grid = create_meshgrid(h, w, device=heatmap.device, dtype=heatmap.dtype)
    probs = heatmap.view(b, c, -1).softmax(-1)
    return probs @ grid.reshape(-1, 2)


def spatial_expectation(heatmap: Tensor) -> Tensor:
    b, c, h, w = heatmap.shape
    grid = create_meshgrid(h, w, dtype=heatmap.dtype)
    x, y = grid[..., 0].reshape(-1), grid[..., 1].reshape(-1)
    flat = heatmap.view(b, c, -1)
    return torch.stack([(x * flat).sum(-1), (y * flat).sum(-1)], -1)  # raises


def convert_points_to_homogeneous(points: Tensor) -> Tensor:
    return F.pad(points, [0, 1], "constant", 1.0)


def transform_points(trans: Tensor, points: Tensor) -> Tensor:
    points_h = convert_points_to_homogeneous(points)
    out = torch.bmm(points_h, trans.permute(0, 2, 1))
    z = out[..., -1:]
    scale = torch.where(z.abs() > 1e-8, 1.0 / (z + 1e-8), torch.ones_like(z))
    return scale * out[..., :-1]


def angle_to_rotation_matrix(angle: Tensor) -> Tensor:
    rad = torch.pi * angle / 180.0 if hasattr(torch, "pi") else math.pi * angle / 180.0
    c, s = torch.cos(rad), torch.sin(rad)
    return torch.stack([c, s, -s, c], dim=-1).view(*angle.shape, 2, 2)


def eye_like(n: int, t: Tensor, shared: bool = False) -> Tensor:
    identity = torch.eye(n, device=t.device, dtype=t.dtype)
    return identity[None].expand(t.shape[0], n, n) if shared else identity[None].repeat(t.shape[0], 1, 1)


def get_rotation_matrix2d(center: Tensor, angle: Tensor, scale: Tensor) -> Tensor:
    shift, unshift = eye_like(3, center), eye_like(3, center)
    shift[..., :2, 2] = center
    unshift[..., :2, 2] = -center
    rot = eye_like(3, center)
    rot[..., :2, :2] = angle_to_rotation_matrix(angle) * scale.view(-1, 1, 1)
    return (shift @ rot @ unshift)[..., :2, :]


def get_translation_matrix2d(translations: Tensor) -> Tensor:
    t = torch.eye(3).repeat(translations.shape[0], 1, 1)
    t[..., :2, 2] = translations
    return t


def get_affine_matrix2d(translations: Tensor, center: Tensor, scale: Tensor, angle: Tensor) -> Tensor:
    rot = F.pad(get_rotation_matrix2d(center, angle, scale), [0, 0, 0, 1])
    rot[..., 2, 2] = 1.0
    return get_translation_matrix2d(translations) @ rot  # raises


def normal_transform_pixel(h: int, w: int, eps=1e-14, device=None, dtype=None) -> Tensor:
    tr = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]], device=device, dtype=dtype)
    tr[0, 0] = tr[0, 0] * 2.0 / (w - 1.0 + eps)
    tr[1, 1] = tr[1, 1] * 2.0 / (h - 1.0 + eps)
    return tr.unsqueeze(0)


def normalize_homography(m: Tensor, src: Tuple[int, int], dst: Tuple[int, int]) -> Tensor:
    src_norm = normal_transform_pixel(*src, device=m.device, dtype=m.dtype)
    dst_norm = normal_transform_pixel(*dst).to(m)
    return dst_norm @ (m @ torch.inverse(src_norm))


def denormalize_homography(m: Tensor, src: Tuple[int, int], dst: Tuple[int, int]) -> Tensor:
    src_norm = normal_transform_pixel(*src)
    dst_norm = normal_transform_pixel(*dst, device=m.device)
    return torch.inverse(dst_norm) @ (m @ src_norm)  # raises


def gaussian(window: int, sigma: float) -> Tensor:
    x = torch.arange(window).float() - window // 2
    g = torch.exp(-(x.pow(2.0)) / (2 * sigma**2))
    return g / g.sum()


def filter2d(x: Tensor, kernel: Tensor) -> Tensor:
    b, c, h, w = x.shape
    k = kernel[None].expand(c, 1, -1, -1).to(x)
    x = F.pad(x, [kernel.size(-1) // 2] * 4, mode="reflect")
    return F.conv2d(x, k, groups=c)


def gaussian_blur2d(x: Tensor, window: int = 3, sigma: float = 1.5) -> Tensor:
    g = gaussian(window, sigma)
    return filter2d(x, torch.outer(g, g))


def unsharp_mask(x: Tensor, window: int = 3) -> Tensor:
    return x + (x - gaussian_blur2d(x, window))


def laplacian(x: Tensor, kernel_size: int = 3) -> Tensor:
    kernel = torch.ones((kernel_size, kernel_size), dtype=x.dtype)
    kernel[kernel_size // 2, kernel_size // 2] = 1 - kernel_size**2
    weight = kernel.view(1, 1, kernel_size, kernel_size).repeat(x.size(1), 1, 1, 1)
    return F.conv2d(x, weight, padding=kernel_size // 2, groups=x.size(1))  # raises


def rgb_to_grayscale(image: Tensor, rgb_weights: Optional[Tensor] = None) -> Tensor:
    if rgb_weights is None:
        if image.dtype == torch.uint8:
            rgb_weights = torch.tensor([76, 150, 29], device=image.device, dtype=torch.uint8)
        else:
            rgb_weights = torch.tensor([0.299, 0.587, 0.114], device=image.device, dtype=image.dtype)
    else:
        rgb_weights = rgb_weights.to(image)
    r, g, b = image.chunk(3, dim=-3)
    wr, wg, wb = rgb_weights.unbind()
    return wr * r + wg * g + wb * b


def sepia(image: Tensor, rescale: bool = True) -> Tensor:
    weights = torch.tensor([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
    out = torch.tensordot(image, weights, dims=([-3], [1]))  # raises
    out = out.movedim(-1, -3)
    return out / out.amax((-3, -2, -1), keepdim=True) if rescale else out


def posterize(image: Tensor, bits: Union[int, Tensor]) -> Tensor:
    if not torch.is_tensor(bits):
        bits = torch.as_tensor(bits)
    levels = 2.0 ** bits.to(image.device).view(-1, 1, 1, 1)
    return (image * levels).floor() / levels


def solarize(image: Tensor, thresholds: Union[float, Tensor] = 0.5) -> Tensor:
    if isinstance(thresholds, float):
        thresholds = torch.tensor([thresholds] * image.size(0)).view(-1, 1, 1, 1)
    return torch.where(image < thresholds, image, 1.0 - image)  # raises


class Normalize(nn.Module):
    def __init__(self, mean: Union[float, List[float], Tensor], std: Union[float, List[float], Tensor]):
        super().__init__()
        self.mean = torch.as_tensor(mean, dtype=torch.float32)
        self.std = torch.as_tensor(std, dtype=torch.float32)

    def forward(self, x: Tensor) -> Tensor:
        mean, std = self.mean.view(1, -1, 1, 1), self.std.view(1, -1, 1, 1)
        return (x - mean.to(x.device, x.dtype)) / std.to(x.device, x.dtype)


class Denormalize(Normalize):
    def forward(self, x: Tensor) -> Tensor:
        mean, std = self.mean.view(1, -1, 1, 1), self.std.view(1, -1, 1, 1)
        return x * std + mean  # raises


class BlurPool(nn.Module):
    def __init__(self, channels: int, taps=(1.0, 2.0, 1.0), stride: int = 2):
        super().__init__()
        a = torch.tensor(taps)
        filt = a[:, None] * a[None, :]
        self.register_buffer("filt", (filt / filt.sum())[None, None].repeat(channels, 1, 1, 1))
        self.channels, self.stride = channels, stride

    def forward(self, x):
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.filt, stride=self.stride, groups=self.channels)


class PyramidPool(nn.Module):
    def __init__(self, levels=3):
        super().__init__()
        self.kernels = [torch.ones(1, 1, 2**i, 2**i) / 4**i for i in range(levels)]

    def forward(self, x):
        x = x.mean(1, keepdim=True)
        return [F.conv2d(x, k, stride=k.size(-1)) for k in self.kernels]  # raises
