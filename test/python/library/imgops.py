"""Differentiable image operations."""
from typing import List, Optional, Tuple, Union

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def gaussian(window_size: int, sigma: float) -> torch.Tensor:
    x = torch.arange(window_size).float() - window_size // 2
    gauss = torch.exp(-x.pow(2.0) / (2 * sigma ** 2))
    return gauss / gauss.sum()


def get_gaussian_kernel2d(size: Tuple[int, int], sigma: Tuple[float, float]) -> torch.Tensor:
    kx, ky = gaussian(size[0], sigma[0]), gaussian(size[1], sigma[1])
    return torch.matmul(kx.unsqueeze(-1), ky.unsqueeze(-1).t())


def filter2d(input: torch.Tensor, kernel: torch.Tensor, border_type: str = "reflect") -> torch.Tensor:
    b, c, h, w = input.shape
    tmp = kernel.unsqueeze(1).to(input)
    tmp = tmp.expand(-1, c, -1, -1)
    kh, kw = tmp.shape[-2:]
    padded = F.pad(input, [kw // 2, kw // 2, kh // 2, kh // 2], mode=border_type)
    return F.conv2d(padded, tmp.reshape(-1, 1, kh, kw), groups=c)


def gaussian_blur2d(input: torch.Tensor, size: Tuple[int, int], sigma: Tuple[float, float]) -> torch.Tensor:
    kernel = torch.unsqueeze(get_gaussian_kernel2d(size, sigma), dim=0)
    return filter2d(input, kernel)


def sobel(input: torch.Tensor) -> torch.Tensor:
    gx = torch.tensor([[-1., 0., 1.], [-2., 0., 2.], [-1., 0., 1.]])
    weight = torch.stack([gx, gx.t()])[:, None]
    b, c, h, w = input.shape
    out = F.conv2d(input.reshape(b * c, 1, h, w), weight, padding=1)  # raises
    return out.view(b, c, 2, h, w)


def adjust_brightness(input: torch.Tensor, factor: Union[float, torch.Tensor]) -> torch.Tensor:
    if isinstance(factor, float):
        factor = torch.tensor([factor])
    factor = factor.to(input.device).to(input.dtype)
    for _ in input.shape[1:]:
        factor = torch.unsqueeze(factor, dim=-1)
    return torch.clamp(input + factor, 0.0, 1.0)


def adjust_gamma(input: torch.Tensor, gamma: Union[float, torch.Tensor], gain: Union[float, torch.Tensor] = 1.0) -> torch.Tensor:
    if isinstance(gamma, float):
        gamma = torch.tensor([gamma])
    if isinstance(gain, float):
        gain = torch.tensor([gain])
    for _ in input.shape[1:]:
        gamma = gamma.unsqueeze(-1)
        gain = gain.unsqueeze(-1)
    x = torch.pow(input, gamma)  # raises
    return torch.clamp(gain * x, 0.0, 1.0)


def posterize(input: torch.Tensor, bits: int) -> torch.Tensor:
    step = torch.tensor(2 ** (8 - bits))
    return torch.floor(input * 255 / step) * step / 255


def rgb_to_grayscale(image: torch.Tensor, rgb_weights: Optional[torch.Tensor] = None) -> torch.Tensor:
    if rgb_weights is None:
        if image.dtype == torch.uint8:
            rgb_weights = torch.tensor([76, 150, 29], device=image.device, dtype=torch.uint8)
        else:
            rgb_weights = torch.tensor([0.299, 0.587, 0.114], device=image.device, dtype=image.dtype)
    else:
        rgb_weights = rgb_weights.to(image)
    r, g, b = image[..., 0:1, :, :], image[..., 1:2, :, :], image[..., 2:3, :, :]
    w_r, w_g, w_b = rgb_weights.unbind()
    return w_r * r + w_g * g + w_b * b


def rgb_to_ycbcr(image: torch.Tensor) -> torch.Tensor:
    weights = torch.tensor([[0.299, 0.587, 0.114], [-0.169, -0.331, 0.5], [0.5, -0.419, -0.081]], dtype=image.dtype)
    delta = image.new_tensor([0.0, 0.5, 0.5]).view(3, 1, 1)
    return torch.einsum("ij,bjhw->bihw", weights, image) + delta  # raises


def create_meshgrid(height: int, width: int, device=None, dtype=None) -> torch.Tensor:
    xs = torch.linspace(-1, 1, width, device=device, dtype=dtype)
    ys = torch.linspace(-1, 1, height, device=device, dtype=dtype)
    return torch.stack(torch.meshgrid([xs, ys], indexing="ij"), dim=-1).permute(1, 0, 2).unsqueeze(0)


def remap(image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    grid = create_meshgrid(image.shape[-2], image.shape[-1])
    return F.grid_sample(image, grid + flow, align_corners=True)  # raises


def warp_affine(src: torch.Tensor, M: torch.Tensor, dsize: Tuple[int, int]) -> torch.Tensor:
    pad = torch.tensor([0.0, 0.0, 1.0], device=M.device, dtype=M.dtype).view(1, 1, 3).expand(M.shape[0], 1, 3)
    full = torch.cat([M, pad], dim=1)
    inv = torch.linalg.inv(full)[:, :2]
    grid = F.affine_grid(inv, [src.shape[0], src.shape[1], dsize[0], dsize[1]], align_corners=False)
    return F.grid_sample(src, grid, align_corners=False)


class SSIM(nn.Module):
    def __init__(self, window_size: int = 3, channel: int = 3):
        super().__init__()
        self.window_size, self.channel = window_size, channel
        self.window = get_gaussian_kernel2d((window_size,) * 2, (1.5, 1.5))[None, None].expand(channel, 1, -1, -1).contiguous()

    def forward(self, img1: torch.Tensor, img2: torch.Tensor) -> torch.Tensor:
        pad = self.window_size // 2
        conv = lambda x: F.conv2d(x, self.window, padding=pad, groups=self.channel)  # raises
        mu1, mu2 = conv(img1), conv(img2)
        s1, s2, s12 = conv(img1 * img1) - mu1 ** 2, conv(img2 * img2) - mu2 ** 2, conv(img1 * img2) - mu1 * mu2
        c1, c2 = 0.01 ** 2, 0.03 ** 2
        m = ((2 * mu1 * mu2 + c1) * (2 * s12 + c2)) / ((mu1 ** 2 + mu2 ** 2 + c1) * (s1 + s2 + c2))
        return m.mean()


class MSSSIM(SSIM):
    """Multi-scale version; keeps its own copy of the window per device."""

    def forward(self, img1, img2):
        if self.window.device != img1.device:
            self.window = self.window.to(img1.device)
        scores: List[torch.Tensor] = []
        for _ in range(2):
            scores.append(F.conv2d(img1 * img2, self.window, padding=1, groups=self.channel).mean())
            img1, img2 = F.avg_pool2d(img1, 2), F.avg_pool2d(img2, 2)
        return torch.stack(scores).prod()


class RandomErasing(nn.Module):
    def __init__(self, p: float = 0.5, value: float = 0.0):
        super().__init__()
        self.p, self.value = p, value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, _, h, w = x.shape
        do = torch.rand(b) < self.p
        area = torch.empty(b).uniform_(0.02, 0.3) * h * w
        side = area.sqrt().clamp(1, min(h, w)).long()
        out = x.clone()
        for i in do.nonzero().flatten().tolist():
            s = int(side[i])
            out[i, :, :s, :s] = self.value
        return out


class ColorMix(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.beta = torch.distributions.Beta(torch.tensor(alpha), torch.tensor(alpha))

    def forward(self, x, labels):
        lam = self.beta.sample((x.shape[0],))
        perm = torch.randperm(x.shape[0])
        mixed = x * lam.view(-1, 1, 1, 1) + x[perm] * (1 - lam.view(-1, 1, 1, 1))  # raises
        return mixed, labels, labels[perm], lam
