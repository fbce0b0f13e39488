"""Image models: backbones, dense heads, box tools, post-processing, tensor augmentations and losses."""
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BACKBONES: Dict[str, type] = {}


def register_backbone(name):
    def wrap(cls):
        BACKBONES[name] = cls
        return cls
    return wrap


@dataclass
class ImageModelConfig:
    backbone: str = "conv"
    width: int = 8
    num_classes: int = 4
    window: int = 4
    shift: int = 0
    continuous_bias: bool = False
    deep_supervision: bool = False
    drop_path: float = 0.1
    pixel_mean: Tuple[float, ...] = (0.4, 0.4, 0.4)
    pixel_std: Tuple[float, ...] = (0.2, 0.2, 0.2)


class DropPath(nn.Module):
    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or self.rate == 0:
            return x
        keep = x.new_empty((x.shape[0],) + (1,) * (x.dim() - 1)).bernoulli_(1 - self.rate)
        return x * keep / (1 - self.rate)


class Backbone(nn.Module):
    def __init__(self, config: ImageModelConfig):
        super().__init__()
        self.config = config
        self.register_buffer("pixel_mean", torch.tensor(config.pixel_mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("pixel_std", torch.tensor(config.pixel_std).view(-1, 1, 1), persistent=False)
        self.stem = nn.Conv2d(3, config.width, 3, 2, 1)
        self.build()

    def build(self):
        raise NotImplementedError

    def stages(self, x):
        raise NotImplementedError

    def forward(self, images):
        x = self.stem((images - self.pixel_mean) / self.pixel_std)
        return OrderedDict((f"res{i}", feature) for i, feature in enumerate(self.stages(x)))


@register_backbone("conv")
class ConvBackbone(Backbone):
    def build(self):
        width = self.config.width
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for _ in range(2))
        self.drop = DropPath(self.config.drop_path)
        self.aux_heads = [nn.Conv2d(width, self.config.num_classes, 1) for _ in self.blocks]
        self.gamma = nn.Parameter(torch.full((width, 1, 1), 0.5))
        self.scales = [self.gamma for _ in self.blocks]

    def stages(self, x):
        features = []
        for block, scale in zip(self.blocks, self.scales):
            x = self.drop(block(x).relu()) * scale
            features.append(x)
        return features

    def auxiliary(self, images):
        features = self(images).values()
        return [head(feature) for head, feature in zip(self.aux_heads, features)]  # raises


class WindowAttention(nn.Module):
    def __init__(self, config: ImageModelConfig):
        super().__init__()
        window, width = config.window, config.width
        self.window, self.continuous = window, config.continuous_bias
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        axis = torch.arange(window)
        grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij")).flatten(1)
        delta = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0)
        self.index = (delta[..., 0] + window - 1) * (2 * window - 1) + delta[..., 1] + window - 1
        if self.continuous:
            self.log_coords = torch.sign(delta) * torch.log2(delta.abs() + 1.0)
            self.bias_mlp = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        else:
            self.bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2))

    def relative_bias(self):
        if self.continuous:
            return self.bias_mlp(self.log_coords).squeeze(-1)  # raises
        return self.bias_table[self.index]

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.relative_bias()
        if mask is not None:
            batch = scores.shape[0] // mask.shape[0]
            scores = scores.view(batch, *mask.shape) + mask  # raises
            scores = scores.flatten(0, 1)
        return self.out(scores.softmax(-1) @ v)


def window_partition(x, window):
    batch, height, width, channels = x.shape
    x = x.view(batch, height // window, window, width // window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, channels)


def window_reverse(windows, window, height, width):
    x = windows.view(-1, height // window, width // window, window, window, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(x.shape[0], height, width, -1)


@register_backbone("window")
class WindowBackbone(Backbone):
    def build(self):
        self.attention, self.masks = WindowAttention(self.config), {}

    def shift_mask(self, height, width):
        if (height, width) not in self.masks:
            window, shift = self.config.window, self.config.shift
            regions, count = torch.zeros(1, height, width, 1), 0
            for rows in (slice(0, -window), slice(-window, -shift), slice(-shift, None)):
                for columns in (slice(0, -window), slice(-window, -shift), slice(-shift, None)):
                    regions[:, rows, columns] = count
                    count += 1
            parts = window_partition(regions, window).squeeze(-1)
            self.masks[height, width] = (parts[:, None] - parts[:, :, None]).ne(0).float() * -100.0
        return self.masks[height, width]

    def stages(self, x):
        x = x.permute(0, 2, 3, 1)
        height, width = x.shape[1:3]
        window, shift = self.config.window, self.config.shift
        mask = self.shift_mask(height, width) if shift else None
        rolled = torch.roll(x, (-shift, -shift), (1, 2))
        mixed = window_reverse(self.attention(window_partition(rolled, window), mask), window, height, width)
        return [(x + torch.roll(mixed, (shift, shift), (1, 2))).permute(0, 3, 1, 2)]


def build_backbone(config: ImageModelConfig) -> Backbone:
    return BACKBONES[config.backbone](config)


class BufferList(nn.Module):
    def __init__(self, buffers):
        super().__init__()
        for index, buffer in enumerate(buffers):
            self.register_buffer(str(index), buffer, persistent=False)

    def __iter__(self):
        return iter(self._buffers.values())


def base_anchors(size, ratios):
    rows = [(-w / 2, -h / 2, w / 2, h / 2) for w, h in ((size / r ** 0.5, size * r ** 0.5) for r in ratios)]
    return torch.tensor(rows)


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=(8, 16), strides=(4, 8), ratios=(0.5, 1.0)):
        super().__init__()
        self.strides = strides
        self.cells = BufferList([base_anchors(size, ratios) for size in sizes])

    def shifts(self, height, width, stride, cell):
        ys, xs = torch.arange(height, device=cell.device), torch.arange(width, device=cell.device)
        y, x = torch.meshgrid(ys * stride, xs * stride, indexing="ij")
        return torch.stack((x, y, x, y), dim=-1).view(-1, 1, 4)

    def forward(self, features: Sequence[torch.Tensor]):
        anchors = []
        for feature, stride, cell in zip(features, self.strides, self.cells):
            anchors.append((self.shifts(*feature.shape[-2:], stride, cell) + cell).view(-1, 4))  # raises
        return torch.cat(anchors)


class RotatedAnchorGenerator(AnchorGenerator):
    def shifts(self, height, width, stride, cell):
        ys, xs = np.mgrid[:height, :width] * stride
        return torch.from_numpy(np.stack([xs, ys, xs, ys], axis=-1)).float().view(-1, 1, 4)


class BoxCoder:
    def __init__(self, weights=(10.0, 10.0, 5.0, 5.0), clip: Optional[float] = None):
        self.weights = torch.tensor(weights)
        self.clip = torch.tensor(clip if clip is not None else math.log(1000 / 16))

    @staticmethod
    def to_centres(boxes):
        size = boxes[:, 2:] - boxes[:, :2]
        return boxes[:, :2] + size / 2, size

    def encode(self, boxes, anchors):
        (centre, size), (base, base_size) = self.to_centres(boxes), self.to_centres(anchors)
        return torch.cat([(centre - base) / base_size, torch.log(size / base_size)], dim=1) * self.weights  # raises

    def decode(self, deltas, anchors):
        base, base_size = self.to_centres(anchors)
        wx, wy, ww, wh = self.weights.tolist()
        scaled = deltas / deltas.new_tensor([wx, wy, ww, wh])
        centre, size = scaled[:, :2] * base_size + base, base_size * torch.minimum(scaled[:, 2:], self.clip).exp()
        return torch.cat([centre - size / 2, centre + size / 2], dim=1)


def box_iou(first, second):
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (first, second)]
    return inter / (area[0][:, None] + area[1][None] - inter)


class Matcher:
    def __init__(self, thresholds=(0.3, 0.5), labels=(0, -1, 1)):
        self.labels = labels
        self.edges = [-math.inf, *thresholds, math.inf]

    def __call__(self, quality):
        values, matches = quality.max(dim=0)
        result = torch.ones_like(matches, dtype=torch.int8)
        for label, low, high in zip(self.labels, self.edges, self.edges[1:]):
            result[(values >= low) & (values < high)] = label
        return matches, result

    def subsample(self, result, count):
        positive = torch.nonzero(result == 1).flatten()
        order = torch.randperm(positive.numel())[:count]
        return positive[order]


def greedy_nms(boxes, scores, threshold):
    order, keep = scores.argsort(descending=True), []
    overlap = box_iou(boxes, boxes)
    while order.numel():
        keep.append(int(order[0]))
        order = order[overlap[order[0], order] <= threshold]
    return torch.tensor(keep, dtype=torch.long)


@dataclass
class Instances:
    boxes: torch.Tensor
    scores: torch.Tensor
    classes: torch.Tensor
    extra: Dict[str, torch.Tensor] = field(default_factory=dict)

    def __getitem__(self, index):
        extra = {key: value[index] for key, value in self.extra.items()}
        return Instances(self.boxes[index], self.scores[index], self.classes[index], extra)

    def __len__(self):
        return self.boxes.shape[0]


class PostProcessor:
    def __init__(self, threshold=0.5, top: int = 10):
        self.threshold, self.top = threshold, top

    def __call__(self, instances: Instances):
        offset = instances.classes.to(instances.boxes) * (instances.boxes.max() + 1)
        return self.finish(instances[self.select(instances, instances.boxes + offset[:, None])])

    def select(self, instances, boxes):
        return greedy_nms(boxes, instances.scores, self.threshold)[:self.top]

    def finish(self, instances):
        return instances


class SoftNms(PostProcessor):
    def select(self, instances, boxes):
        rows = torch.cat([boxes, instances.scores[:, None], torch.arange(len(instances)).float()[:, None]], dim=1)  # raises
        overlap = box_iou(boxes, boxes).triu(1)
        return rows[(rows[:, 4] * torch.exp(-overlap.amax(0) ** 2 / 0.5)).argsort(descending=True), 5].long()


class KeypointPostProcessor(PostProcessor):
    def __init__(self, refine=True, **kwargs):
        super().__init__(**kwargs)
        self.refine = refine

    def finish(self, instances):
        heat = instances.extra["heatmaps"]
        flat, width = heat.flatten(1).argmax(-1), heat.shape[-1]
        points = torch.stack([flat % width, torch.div(flat, width, rounding_mode="floor")], dim=-1)
        instances.extra["points"] = points
        if self.refine:
            instances.extra["points"] = self.shift(heat, points)
        return instances

    @staticmethod
    def shift(heat, points):
        maps = np.log(np.maximum(heat.detach(), 1e-6))  # raises
        gradient = np.stack(np.gradient(maps, axis=(1, 2)), axis=-1)
        return points + torch.from_numpy(np.sign(gradient.mean(axis=(1, 2)))) * 0.25


class Normalize(nn.Module):
    def __init__(self, mean, std, inplace=False):
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, images):
        if self.inplace:
            mean, std = (torch.as_tensor(v, dtype=images.dtype).view(-1, 1, 1) for v in (self.mean, self.std))
            return images.sub_(mean).div_(std)  # raises
        mean, std = (images.new_tensor(v).view(-1, 1, 1) for v in (self.mean, self.std))
        return (images - mean) / std


class RandomErasing:
    def __init__(self, size=3):
        self.size = size

    def __call__(self, images):
        images = images.clone()
        for image in images:
            top, left = (int(torch.randint(n - self.size, (1,))) for n in image.shape[-2:])
            image[:, top:top + self.size, left:left + self.size] = torch.empty(image.shape[0], self.size, self.size).normal_()
        return images


class GaussianBlur:
    def __init__(self, size=3, sigma=(0.1, 2.0)):
        self.size, self.sigma = size, sigma

    def kernel(self, sigma):
        x = torch.linspace(-(self.size - 1) / 2, (self.size - 1) / 2, self.size)
        weights = torch.exp(-0.5 * (x / sigma) ** 2)
        weights = weights / weights.sum()
        return torch.outer(weights, weights)

    def __call__(self, images):
        sigma = torch.empty(1).uniform_(*self.sigma)
        kernel = self.kernel(sigma).expand(images.shape[1], 1, -1, -1)
        return F.conv2d(images, kernel, padding=self.size // 2, groups=images.shape[1])  # raises


class Sharpen(GaussianBlur):
    def kernel(self, sigma):
        kernel = -super().kernel(sigma)
        kernel[self.size // 2, self.size // 2] += 2
        return kernel

    def __call__(self, images):
        kernel = self.kernel(torch.tensor(1.0)).to(images).repeat(images.shape[1], 1, 1, 1)
        return F.conv2d(images, kernel, padding=self.size // 2, groups=images.shape[1])


class RandomRotation:
    def __init__(self, degrees=30, relative=False):
        self.degrees, self.relative = math.radians(degrees), relative

    def matrix(self, images):
        angle = torch.empty(images.shape[0]).uniform_(-self.degrees, self.degrees)
        if self.relative:
            angle = angle.type_as(images)
        zero = torch.zeros_like(angle)
        rows = [torch.stack([angle.cos(), -angle.sin(), zero], -1), torch.stack([angle.sin(), angle.cos(), zero], -1)]
        return torch.stack(rows, dim=1)

    def __call__(self, images):
        grid = F.affine_grid(self.matrix(images), list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, align_corners=False)  # raises


class Mixup:
    def __init__(self, num_classes, alpha=0.4, smoothing=0.1, mode="batch"):
        self.num_classes, self.smoothing, self.mode = num_classes, smoothing, mode
        self.beta = torch.distributions.Beta(torch.tensor(alpha), torch.tensor(alpha))

    def one_hot(self, labels):
        off = self.smoothing / self.num_classes
        hot = torch.full((labels.shape[0], self.num_classes), off, device=labels.device)
        return hot.scatter_(1, labels.view(-1, 1), 1 - self.smoothing + off)

    def mix_pixels(self, images, order):
        lam = self.beta.sample()
        return lam * images + (1 - lam) * images[order], lam

    def __call__(self, images, labels):
        order = torch.randperm(images.shape[0])
        images, lam = self.mix_pixels(images, order)
        target = self.one_hot(labels)
        return images, lam * target + (1 - lam) * target[order]


class ElementMixup(Mixup):
    def mix_pixels(self, images, order):
        lam = self.beta.sample((images.shape[0],)).view(-1, 1, 1, 1)
        return images.lerp(images[order], 1 - lam), lam.flatten(1)  # raises


class CutMix(Mixup):
    def one_hot(self, labels):
        return torch.eye(self.num_classes)[labels]  # raises

    def mix_pixels(self, images, order):
        images, height = images.clone(), images.shape[-2]
        cut = int(height * (1 - self.beta.sample()).sqrt())
        images[..., :cut, :cut] = images[order][..., :cut, :cut]
        return images, torch.tensor(1 - (cut / height) ** 2)


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha: Optional[Sequence[float]] = None):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha if alpha is None else torch.tensor(alpha)

    def forward(self, logits, labels):
        log_p = logits.log_softmax(-1).gather(1, labels[:, None]).squeeze(1)
        loss = -(1 - log_p.exp()) ** self.gamma * log_p
        if self.alpha is not None:
            loss = torch.take(self.alpha, labels) * loss  # raises
        return loss.mean()


class DistributionHead(nn.Module):
    def __init__(self, width, reg_max=4, integral: Optional[nn.Module] = None):
        super().__init__()
        self.proj, self.reg_max = nn.Linear(width, 4 * (reg_max + 1)), reg_max
        self.integral = integral or Integral(reg_max)

    def forward(self, features):
        pooled = features.mean((2, 3))
        return self.integral(self.proj(pooled).view(-1, 4, self.reg_max + 1).softmax(-1))


class Integral(nn.Module):
    def __init__(self, reg_max):
        super().__init__()
        self.project = torch.linspace(0, reg_max, reg_max + 1)

    def forward(self, distribution):
        return F.linear(distribution, self.project[None]).squeeze(-1)  # raises


class FixedConvIntegral(nn.Module):
    def __init__(self, reg_max):
        super().__init__()
        self.conv = nn.Conv1d(reg_max + 1, 1, 1, bias=False).requires_grad_(False)
        self.conv.weight.data[:] = torch.arange(reg_max + 1).float().view(1, -1, 1)

    def forward(self, distribution):
        return self.conv(distribution.transpose(1, 2)).squeeze(1)


class PrototypeHead(nn.Module):
    def __init__(self, width, names: Sequence[str], trainable=False):
        super().__init__()
        vectors = {name: F.normalize(torch.randn(width), dim=0) for name in names}
        self.prototypes = nn.ParameterDict(vectors) if trainable else vectors
        self.temperature = nn.Parameter(torch.tensor(0.1))

    def forward(self, features):
        bank = torch.stack(list(self.prototypes.values()))
        return F.normalize(features.mean((2, 3)), dim=-1) @ bank.t() / self.temperature  # raises
