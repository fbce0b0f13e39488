"""Batched augmentations of images (B, C, H, W) and of their boxes (B, N, 4), applied after the batch was transferred."""
import math
import random
from functools import lru_cache
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

AUGMENTATIONS: Dict[str, type] = {}
RGB_TO_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])


def register(name):
    def wrap(cls):
        AUGMENTATIONS[name] = cls
        return cls
    return wrap


def build_augmentations(configs: Sequence[dict]) -> "Compose":
    stages = []
    for config in configs:
        stages.append(AUGMENTATIONS[config["type"]](**{key: value for key, value in config.items() if key != "type"}))
    return Compose(stages)


class Compose(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, images, boxes=None):
        for stage in self.stages:
            images, boxes = stage(images, boxes)
        return images, boxes


class Augmentation(nn.Module):
    """Applies itself to a random part of the batch; subclasses say what happens to images and to boxes."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        self.p = p

    def draw(self, batch_size: int) -> Tensor:
        return torch.rand(batch_size) < self.p

    def apply_boxes(self, boxes: Tensor, size: Tuple[int, int]) -> Tensor:
        return boxes

    def forward(self, images, boxes=None):
        chosen = self.draw(len(images))
        images = images.clone()
        images[chosen] = self.apply_images(images[chosen])
        if boxes is not None:
            boxes = boxes.clone()
            boxes[chosen] = self.apply_boxes(boxes[chosen], images.shape[-2:])
        return images, boxes


@register("hflip")
class HorizontalFlip(Augmentation):
    def apply_images(self, images):
        return images.flip(-1)

    def apply_boxes(self, boxes, size):
        return torch.stack([size[1] - boxes[..., 2], boxes[..., 1], size[1] - boxes[..., 0], boxes[..., 3]], dim=-1)


@register("vflip")
class VerticalFlip(Augmentation):
    def forward(self, images, boxes=None):
        chosen = self.draw(len(images))
        images = images.clone()
        images[chosen] = images[chosen].flip(-2)
        if boxes is not None:
            mirrored = boxes.clone()
            mirrored[..., 1] = images.shape[-2] - boxes[..., 3]
            mirrored[..., 3] = images.shape[-2] - boxes[..., 1]
            boxes = torch.where(chosen[:, None, None], mirrored, boxes)  # raises
        return images, boxes


@register("normalize")
class Normalize(nn.Module):
    def __init__(self, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, images, boxes=None):
        return (images - self.mean) / self.std, boxes


class Denormalize:
    """The inverse, for the pictures of the log."""

    def __init__(self, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, images: Tensor) -> Tensor:
        return images.mul(self.std).add_(self.mean).clamp_(0, 1)  # raises

    def to_uint8(self, image: Tensor) -> np.ndarray:
        image = image.detach().cpu() * self.std + self.mean
        return image.clamp(0, 1).mul(255).byte().permute(1, 2, 0).numpy()


@register("color_twist")
class ColorTwist(Augmentation):
    """Rotates the chroma plane in YIQ."""

    def __init__(self, degrees: float = 15.0, p: float = 0.8):
        super().__init__(p)
        self.degrees = degrees

    def apply_images(self, images):
        angle = math.radians(random.uniform(-self.degrees, self.degrees))
        turn = torch.eye(3)
        turn[1:, 1:] = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        matrix = torch.linalg.inv(RGB_TO_YIQ) @ turn @ RGB_TO_YIQ
        return torch.einsum("ij,bjhw->bihw", matrix, images).clamp(0, 1)  # raises


@register("blur")
class GaussianBlur(Augmentation):
    def __init__(self, kernel_size=5, sigma=(0.1, 2.0), p=0.5):
        super().__init__(p)
        self.kernel_size, self.sigma = kernel_size, sigma

    def kernel(self) -> Tensor:
        x = torch.arange(self.kernel_size, dtype=torch.float32) - self.kernel_size // 2
        weight = torch.exp(-0.5 * (x / random.uniform(*self.sigma)) ** 2)
        return weight / weight.sum()

    def apply_images(self, images):
        channels, pad = images.shape[1], self.kernel_size // 2
        line = self.kernel().expand(channels, 1, 1, -1)
        images = F.pad(images, (pad, pad, pad, pad), mode="reflect")
        images = F.conv2d(images, line, groups=channels)  # raises
        return F.conv2d(images, line.transpose(2, 3), groups=channels)


@register("affine")
class RandomAffine(Augmentation):
    def __init__(self, degrees=10.0, translate=0.1, p=0.5):
        super().__init__(p)
        self.degrees, self.translate = degrees, translate

    def thetas(self, count: int) -> Tensor:
        angle = torch.empty(count).uniform_(-self.degrees, self.degrees).mul_(math.pi / 180)
        theta = torch.zeros(count, 2, 3)
        theta[:, 0, 0] = theta[:, 1, 1] = angle.cos()
        theta[:, 0, 1], theta[:, 1, 0] = -angle.sin(), angle.sin()
        theta[:, :, 2].uniform_(-self.translate, self.translate)
        return theta

    def apply_images(self, images):
        grid = F.affine_grid(self.thetas(len(images)), images.shape, align_corners=False)
        return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)  # raises


@lru_cache(maxsize=16)
def radial_grid(height: int, width: int, device: Optional[str] = None) -> Tensor:
    y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    return torch.sqrt(x ** 2 + y ** 2).to(device or "cpu")


class Vignette(nn.Module):
    """Darkens the corners. The falloff is computed once for a size of the images."""

    def __init__(self, strength=0.5):
        super().__init__()
        self.strength = strength
        self._falloff: Dict[Tuple[int, int], Tensor] = {}

    def forward(self, images, boxes=None):
        size = tuple(images.shape[-2:])
        if size not in self._falloff:
            self._falloff[size] = 1 - self.strength * radial_grid(*size).to(images)
        return images * self._falloff[size], boxes  # raises


def spotlight(images: Tensor, radius: float = 0.7) -> Tensor:
    inside = radial_grid(images.shape[-2], images.shape[-1], str(images.device)) < radius
    return images.masked_fill(~inside, 0.0)


class GammaTable:
    def __init__(self, gamma: float):
        self.table = (torch.linspace(0, 1, 256) ** gamma * 255).round().byte()

    def __call__(self, image: Tensor) -> Tensor:
        return self.table[image.long()]  # raises

    def adjust(self, image: Tensor) -> Tensor:
        return self.table.to(image.device)[image.long()]


class Mixup:
    def __init__(self, alpha=0.8, num_classes=10, mode="batch"):
        self.alpha, self.num_classes, self.mode = alpha, num_classes, mode

    def __call__(self, images: Tensor, target: Tensor):
        order = torch.randperm(len(images))
        onehot = F.one_hot(target, self.num_classes).float()
        if self.mode == "elem":
            lam = torch.distributions.Beta(self.alpha, self.alpha).sample((len(images),))
            mixed = torch.lerp(images[order], images, lam.view(-1, 1, 1, 1))  # raises
            return mixed, torch.lerp(onehot[order], onehot, lam.view(-1, 1))
        lam = torch.tensor(np.random.beta(self.alpha, self.alpha), dtype=images.dtype)
        return lam * images + (1 - lam) * images[order], lam * onehot + (1 - lam) * onehot[order]


class RandomErasing:
    def __init__(self, size=8):
        self.size = size

    def __call__(self, images: Tensor) -> Tensor:
        images = images.clone()
        for image in images:
            top = random.randint(0, image.shape[1] - self.size)
            left = random.randint(0, image.shape[2] - self.size)
            image[:, top:top + self.size, left:left + self.size] = torch.randn(image.shape[0], self.size, self.size)
        return images


def clip_boxes(boxes: Tensor, size: Tuple[int, int]) -> Tensor:
    height, width = size
    limit = torch.tensor([width, height, width, height], dtype=boxes.dtype)
    return torch.minimum(boxes.clamp(min=0), limit)  # raises


def keep_largest(boxes: Tensor, labels: Tensor, count: int):
    area = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
    order = np.argsort(-area.numpy())[:count].copy()  # raises
    return boxes[order], labels[order]


def drop_small(boxes: Tensor, labels: Tensor, least: float = 4.0):
    sides = (boxes[:, 2:] - boxes[:, :2]).cpu().numpy()
    keep = torch.from_numpy(sides.min(axis=1) >= least)
    return boxes[keep], labels[keep]


def mosaic(images: Tensor, boxes: List[Tensor], fill: float = 0.5):
    """The first four images on one canvas of double size."""
    _, channels, height, width = images.shape
    canvas, moved = torch.full((channels, 2 * height, 2 * width), fill), []
    for index in range(4):
        top, left = (index // 2) * height, (index % 2) * width
        canvas[:, top:top + height, left:left + width] = images[index]
        moved.append(boxes[index] + boxes[index].new_tensor([left, top, left, top]))
    return canvas.to(images.device), torch.cat(moved)
