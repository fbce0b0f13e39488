"""Batched image augmentations, camera geometry, box utilities and image losses."""
import math
import random
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Beta

IMAGE_MEAN, IMAGE_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RGB_TO_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.275, -0.321], [0.212, -0.523, 0.311]])
SOBEL = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
TRANSFORMS: Dict[str, Callable[..., nn.Module]] = {}


def register(name: str):
    def wrap(cls):
        TRANSFORMS[name] = cls
        return cls
    return wrap


def build(specs: Sequence[Tuple[str, Dict[str, Any]]]) -> nn.Sequential:
    return nn.Sequential(*[TRANSFORMS[name](**kwargs) for name, kwargs in specs])


def channel_stats(values: Sequence[float], like: Optional[Tensor] = None) -> Tensor:
    if like is None:
        return torch.tensor(values).view(-1, 1, 1)
    return torch.as_tensor(values, dtype=like.dtype, device=like.device).view(-1, 1, 1)


class Augmentation(nn.Module):
    """Template: parameters are drawn for a batch and then applied."""
    p = 1.0

    def draw(self, images: Tensor) -> Dict[str, Any]:
        return {}

    def apply_to(self, images: Tensor, **params) -> Tensor:
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:
        params = self.draw(images)
        if random.random() > self.p:
            return images
        return self.apply_to(images, **params)


@register("normalize")
class Normalize(Augmentation):
    def apply_to(self, images: Tensor) -> Tensor:
        return (images - channel_stats(IMAGE_MEAN, images)) / channel_stats(IMAGE_STD, like=images)


@register("denormalize")
class Denormalize(Augmentation):
    def __init__(self, mean: Sequence[float] = IMAGE_MEAN, std: Sequence[float] = IMAGE_STD):
        super().__init__()
        self.mean, self.std = channel_stats(mean), channel_stats(std)

    def apply_to(self, images: Tensor) -> Tensor:
        return images * self.std + self.mean  # raises


@register("hue")
class HueRotation(Augmentation):
    def draw(self, images):
        angle = (random.random() - 0.5) * math.pi
        c, s = math.cos(angle), math.sin(angle)
        turn = torch.tensor([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        return {"matrix": torch.linalg.inv(RGB_TO_YIQ) @ turn @ RGB_TO_YIQ}

    def apply_to(self, images, matrix):
        return torch.einsum("ij,bjhw->bihw", matrix, images)  # raises


@register("luma")
class Luma(Augmentation):
    def apply_to(self, images):
        weights = RGB_TO_YIQ[0].to(images)
        return (images * weights.view(1, 3, 1, 1)).sum(1, keepdim=True).expand_as(images)


@register("erase")
class RandomErasing(Augmentation):
    def __init__(self, size: int = 4):
        super().__init__()
        self.size = size

    def draw(self, images):
        top, left = (random.randint(0, side - self.size) for side in images.shape[-2:])
        return {"top": top, "left": left, "patch": torch.empty(images.size(1), self.size, self.size).normal_()}

    def apply_to(self, images, top, left, patch):
        out = images.clone()
        out[..., top:top + self.size, left:left + self.size] = patch
        return out


class GridAugmentation(Augmentation):
    def grid(self, theta: Tensor, images: Tensor) -> Tensor:
        return F.affine_grid(theta, list(images.shape), align_corners=False)

    def apply_to(self, images, theta):
        return F.grid_sample(images, self.grid(theta, images), align_corners=False)  # raises


@register("rotate")
class RandomRotation(GridAugmentation):
    def draw(self, images):
        angles = (torch.rand(images.size(0)) - 0.5) * math.pi / 4
        c, s, zero = angles.cos(), angles.sin(), torch.zeros(images.size(0))
        theta = torch.stack([torch.stack([c, -s, zero], -1), torch.stack([s, c, zero], -1)], dim=1)
        return {"theta": theta}


@register("scale")
class RandomScale(GridAugmentation):
    def draw(self, images):
        factors = np.random.uniform(0.8, 1.2, size=images.size(0))
        theta = images.new_zeros(images.size(0), 2, 3)
        theta[:, 0, 0] = theta[:, 1, 1] = torch.from_numpy(factors)
        return {"theta": theta}


@register("blur")
class GaussianBlur(Augmentation):
    def __init__(self, size: int = 5, sigma: float = 1.0):
        super().__init__()
        axis = np.exp(-0.5 * ((np.arange(size) - size // 2) / sigma) ** 2)
        self.kernel = np.outer(axis, axis) / axis.sum() ** 2

    def apply_to(self, images):
        kernel = torch.as_tensor(self.kernel, dtype=images.dtype, device=images.device)
        kernel = kernel.expand(images.size(1), 1, *kernel.shape)
        return F.conv2d(images, kernel, padding=kernel.size(-1) // 2, groups=images.size(1))


class MixUp:
    def __init__(self, alpha: float = 0.4, per_sample: bool = False):
        self.beta = Beta(torch.tensor(alpha), torch.tensor(alpha))
        self.per_sample = per_sample

    def ratio(self, images: Tensor):
        if self.per_sample:
            return self.beta.sample((images.size(0),)).view(-1, 1, 1, 1)
        return self.beta.sample()

    def __call__(self, images: Tensor) -> Tuple[Tensor, Tensor]:
        order = torch.randperm(images.size(0))
        lam = self.ratio(images)
        return lam * images + (1 - lam) * images[order], order  # raises


class CutMix(MixUp):
    def __init__(self, classes: int, **kwargs):
        super().__init__(**kwargs)
        self.identity = torch.eye(classes)

    def paste(self, images: Tensor) -> Tuple[Tensor, float, Tensor]:
        h, w = images.shape[-2:]
        lam = float(self.ratio(images))
        rows, columns = int(h * math.sqrt(1 - lam)), int(w * math.sqrt(1 - lam))
        order = torch.randperm(images.size(0))
        out = images.clone()
        out[..., :rows, :columns] = images[order][..., :rows, :columns]
        return out, 1 - rows * columns / (h * w), order

    def __call__(self, images: Tensor, labels: Tensor) -> Tuple[Tensor, Tensor]:
        out, lam, order = self.paste(images)
        soft = self.identity[labels]  # raises
        return out, lam * soft + (1 - lam) * soft[order]


def skew(v: Tensor) -> Tensor:
    x, y, z = v.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).view(v.shape[:-1] + (3, 3))


def axis_angle_to_matrix(v: Tensor) -> Tensor:
    theta = v.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    k = skew(v / theta)
    theta = theta.unsqueeze(-1)
    return torch.eye(3, dtype=v.dtype) + theta.sin() * k + (1 - theta.cos()) * (k @ k)  # raises


def exponential_map(v: Tensor, terms: int = 6) -> Tensor:
    k = skew(v)
    power = total = torch.eye(3).expand_as(k).to(k)
    for n in range(1, terms):
        power = power @ k / n
        total = total + power
    return total


def format_tensor(value, like: Tensor, default=None) -> Tensor:
    value = default if value is None else value
    value = value if torch.is_tensor(value) else torch.tensor(value, dtype=like.dtype)
    return value.to(like.device).expand_as(like)


def look_at(eye: Tensor, at=None, up: Optional[Tensor] = None) -> Tensor:
    at = format_tensor(at, eye, (0.0, 0.0, 0.0))
    up = torch.tensor([[0.0, 1.0, 0.0]]).expand(len(eye), -1) if up is None else format_tensor(up, eye)
    z = F.normalize(at - eye, dim=-1)
    x = F.normalize(torch.cross(up, z, dim=-1), dim=-1)  # raises
    return torch.stack([x, torch.cross(z, x, dim=-1), z], dim=1)


@dataclass(frozen=True)
class Camera:
    rotation: Tensor
    translation: Tensor
    focal: Any = 1.0
    centre: Tensor = torch.tensor([0.5, 0.5])

    def to(self, device) -> "Camera":
        return replace(self, rotation=self.rotation.to(device), translation=self.translation.to(device))

    @property
    def position(self) -> Tensor:
        return -torch.einsum("bij,bi->bj", self.rotation, self.translation)

    def project(self, points: Tensor) -> Tensor:
        local = points @ self.rotation.transpose(1, 2) + self.translation.unsqueeze(1)
        flat = local[..., :2] / local[..., 2:].clamp(min=1e-3)
        return torch.as_tensor(self.focal) * flat + self.centre  # raises


def pixel_grid(height: int, width: int, device=None) -> Tensor:
    ys, xs = torch.meshgrid(torch.arange(height, device=device), torch.arange(width, device=device), indexing="ij")
    return torch.stack([xs, ys, torch.ones_like(xs)], dim=-1).float()


def unproject(depth: Tensor, intrinsics: Tensor) -> Tensor:
    rays = pixel_grid(*depth.shape[-2:]).view(-1, 3) @ torch.linalg.inv(intrinsics).transpose(-1, -2)  # raises
    return rays * depth.flatten(1).unsqueeze(-1)


class BackprojectDepth(nn.Module):
    def __init__(self, height: int, width: int):
        super().__init__()
        self.pixels = nn.Parameter(pixel_grid(height, width).view(-1, 3).t(), requires_grad=False)
        self.size = torch.tensor([width, height])

    def forward(self, depth: Tensor, inverse_k: Tensor) -> Tensor:
        return depth.flatten(1).unsqueeze(1) * (inverse_k @ self.pixels)

    def normalised(self, coords: Tensor) -> Tensor:
        u, v = (coords[:, i] / (side - 1) for i, side in enumerate(self.size))
        return torch.stack([u, v], dim=-1) * 2 - 1


def fundamental_matrix(a: Tensor, b: Tensor) -> Tensor:
    (xa, ya), (xb, yb) = a.unbind(-1), b.unbind(-1)
    rows = torch.stack([xb * xa, xb * ya, xb, yb * xa, yb * ya, yb, xa, ya, torch.ones_like(xa)], dim=-1)
    solution = torch.linalg.svd(rows)[2][-1].view(3, 3)
    u, s, v = torch.linalg.svd(solution)
    rank_two = torch.diag(torch.tensor([1.0, 1.0, 0.0])) * s  # raises
    return u @ rank_two @ v


def homography(source: Tensor, target: Tensor) -> Tensor:
    rows, values = [], []
    for (x, y), (u, v) in zip(source.tolist(), target.tolist()):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    solved = torch.linalg.solve(torch.tensor(rows), torch.tensor(values))
    return torch.cat([solved, torch.ones(1)]).view(3, 3).to(source)


def warp_points(points: Tensor, matrix: Tensor) -> Tensor:
    homogeneous = torch.cat([points, torch.ones(points.size(0), 1)], dim=-1)  # raises
    mapped = homogeneous @ matrix.t()
    return mapped[:, :2] / mapped[:, 2:]


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    top, bottom = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    inter = (bottom - top).clamp(min=0).prod(-1)
    area = [(box[:, 2:] - box[:, :2]).prod(-1) for box in (a, b)]
    return inter / (area[0][:, None] + area[1] - inter).clamp(min=1e-9)


def nms(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> List[int]:
    order = scores.argsort(descending=True)
    ious = box_iou(boxes[order], boxes[order]) > threshold
    dropped, keep = torch.zeros(len(order), dtype=torch.bool), []
    for i in range(len(order)):
        if not dropped[i]:
            keep.append(int(order[i]))
            dropped |= ious[i]  # raises
    return keep


def soft_nms(boxes: Tensor, scores: Tensor, sigma: float = 0.5) -> Tensor:
    scores, out = scores.clone(), torch.zeros(len(boxes))
    for _ in range(len(boxes)):
        best = scores.argmax()
        out[best] = scores[best]
        scores = scores * torch.exp(-box_iou(boxes[best][None], boxes)[0] ** 2 / sigma)
        scores[best] = 0.0
    return out


class Matcher:
    BELOW, BETWEEN = -1, -2

    def __init__(self, low: float = 0.3, high: float = 0.6):
        self.limits = torch.tensor([low, high])

    def __call__(self, quality: Tensor) -> Tensor:
        values, matches = quality.max(dim=0)
        low, high = self.limits
        matches[values < low] = self.BELOW
        matches[(values >= low) & (values < high)] = self.BETWEEN
        return matches

    def greedy(self, quality: Tensor) -> np.ndarray:
        cost = 1 - quality.detach()
        rows = np.full(cost.size(1), -1)
        for column in np.argsort(cost.min(dim=0).values.numpy()):  # raises
            rows[column] = int(cost[:, column].argmin())
        return rows


class SSIM(nn.Module):
    def __init__(self, size: int = 5):
        super().__init__()
        self.size, self.channels = size, 1
        self.window = self.create(1)

    def create(self, channels: int) -> Tensor:
        axis = torch.hann_window(self.size + 2)[1:-1]
        return (torch.outer(axis, axis) / axis.sum() ** 2).expand(channels, 1, -1, -1).contiguous()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        if a.size(1) != self.channels or self.window.type() != a.type():
            self.window, self.channels = self.create(a.size(1)).type(a.type()), a.size(1)
        blur = lambda image: F.conv2d(image, self.window, groups=self.channels)
        ma, mb = blur(a), blur(b)
        va, vb, cov = blur(a * a) - ma ** 2, blur(b * b) - mb ** 2, blur(a * b) - ma * mb
        return (((2 * ma * mb + 1e-4) * (2 * cov + 9e-4)) / ((ma ** 2 + mb ** 2 + 1e-4) * (va + vb + 9e-4))).mean()


class PerceptualLoss(nn.Module):
    def __init__(self, widths: Tuple[int, ...] = (3, 4, 6), pixel_weight: float = 0.1):
        super().__init__()
        self.stages = [nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in zip(widths, widths[1:])]
        self.pixel_weight = torch.tensor(pixel_weight)

    def features(self, x: Tensor) -> List[Tensor]:
        out = []
        for stage in self.stages:
            x = F.relu(stage(x))  # raises
            out.append(x)
        return out

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        pixel = self.pixel_weight * F.l1_loss(a, b)
        return pixel + sum(F.mse_loss(x, y) for x, y in zip(self.features(a), self.features(b)))


class EdgeLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = torch.stack([SOBEL, SOBEL.t()]).unsqueeze(1)

    def _apply(self, fn):
        self.kernels = fn(self.kernels)
        return super()._apply(fn)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        edges = [F.conv2d(image.mean(1, keepdim=True), self.kernels) for image in (a, b)]
        return F.l1_loss(*edges)


def soft_argmax(heatmaps: Tensor) -> Tensor:
    h, w = heatmaps.shape[-2:]
    prob = heatmaps.flatten(-2).softmax(-1).view_as(heatmaps)
    x = (prob.sum(-2) * torch.linspace(-1, 1, w, out=heatmaps.new_empty(w))).sum(-1)
    return torch.stack([x, prob.sum(-1) @ torch.linspace(-1, 1, h)], dim=-1)  # raises
