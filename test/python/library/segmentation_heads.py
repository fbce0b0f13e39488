"""Decode heads, pixel losses and inference helpers for semantic segmentation."""
import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

HEADS: Dict[str, type] = {}
LOSSES: Dict[str, type] = {}

def register(table, name):
    def wrap(cls):
        table[name] = cls
        return cls
    return wrap

@dataclass
class LossConfig:
    kind: str = "ce"
    weight: float = 1.0
    class_weight: Optional[Sequence[float]] = None
    ignore_index: int = 255
    options: dict = field(default_factory=dict)

@dataclass
class HeadConfig:
    kind: str = "fcn"
    in_channels: Tuple[int, ...] = (8, 16)
    in_index: Tuple[int, ...] = (0, 1)
    channels: int = 8
    num_classes: int = 5
    align_corners: bool = False
    losses: Tuple[LossConfig, ...] = (LossConfig(),)
    sampler_thresh: Optional[float] = None
    options: dict = field(default_factory=dict)

def resize(x, size, align_corners=False):
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    return F.interpolate(x, size=tuple(size), mode="bilinear", align_corners=align_corners)

def conv_block(cin, cout, k=3):
    return nn.Sequential(nn.Conv2d(cin, cout, k, padding=k // 2, bias=False), nn.BatchNorm2d(cout), nn.ReLU())

def one_hot_map(target, num_classes, ignore_index):
    valid = target != ignore_index
    clipped = torch.where(valid, target, torch.zeros_like(target))
    hot = F.one_hot(clipped, num_classes).permute(0, 3, 1, 2).float()
    return hot * valid.unsqueeze(1), valid

class PixelLoss(nn.Module):
    """Gives one scalar; subclasses say how a pixel map becomes it."""

    def __init__(self, cfg: LossConfig, num_classes: int):
        super().__init__()
        self.cfg = cfg
        self.num_classes = num_classes
        self.setup(**cfg.options)

    def setup(self, **options):
        pass

    def compute(self, logits, target, seg_weight):
        raise NotImplementedError

    def forward(self, logits, target, seg_weight=None):
        return self.cfg.weight * self.compute(logits, target, seg_weight)

@register(LOSSES, "ce")
class PixelCrossEntropy(PixelLoss):
    def compute(self, logits, target, seg_weight):
        weight = None
        if self.cfg.class_weight is not None:
            weight = logits.new_tensor(self.cfg.class_weight)
        loss = F.cross_entropy(logits, target, weight=weight, ignore_index=self.cfg.ignore_index, reduction="none")
        if seg_weight is not None:
            loss = loss * seg_weight
        return loss.mean()

@register(LOSSES, "dice")
class DiceLoss(PixelLoss):
    def setup(self, smooth=1.0):
        self.smooth = torch.tensor(smooth)
        weights = self.cfg.class_weight or [1.0] * self.num_classes
        self.class_weight = torch.as_tensor(weights, dtype=torch.float32)

    def compute(self, logits, target, seg_weight):
        hot, valid = one_hot_map(target, self.num_classes, self.cfg.ignore_index)
        prob = logits.softmax(1) * valid.unsqueeze(1)
        inter = (prob * hot).sum((2, 3))
        score = (2 * inter + self.smooth) / (prob.sum((2, 3)) + hot.sum((2, 3)) + self.smooth)
        per_class = (1 - score).mean(0)
        return (per_class * self.class_weight).sum() / self.class_weight.sum()  # raises

@register(LOSSES, "edge")
class EdgeLoss(PixelLoss):
    """Binary loss on the outline of the objects, in several widths."""

    def setup(self, widths=(1, 3)):
        self.widths = widths
        laplace = torch.full((1, 1, 3, 3), -1.0)
        laplace[0, 0, 1, 1] = 8.0
        self.register_buffer("laplace", laplace, persistent=False)
        self.fuse = torch.linspace(0.6, 0.4, len(widths)).view(1, -1, 1, 1)

    def outline(self, target):
        plane = target.float().unsqueeze(1)
        return (F.conv2d(plane, self.laplace, padding=1).abs() > 0.1).float()

    def pyramid(self, target):
        thin = self.outline(target)
        return torch.cat([F.max_pool2d(thin, w, 1, w // 2) for w in self.widths], 1)

    def compute(self, logits, target, seg_weight):
        edges = F.conv2d(self.pyramid(target), self.fuse)  # raises
        score = logits.max(1, keepdim=True)[0]
        return F.binary_cross_entropy_with_logits(score, edges)

def build_loss(cfg, num_classes):
    return LOSSES[cfg.kind](cfg, num_classes)

class OHEMPixelSampler:
    def __init__(self, thresh=0.7, min_kept=8, ignore_index=255):
        self.thresh = torch.tensor(thresh)
        self.min_kept = min_kept
        self.ignore_index = ignore_index

    @torch.no_grad()
    def sample(self, logits, target):
        weight = torch.zeros(target.shape, dtype=logits.dtype, device=target.device)
        valid = target != self.ignore_index
        safe = target.clone()
        safe[~valid] = 0
        confidence = logits.softmax(1).gather(1, safe.unsqueeze(1)).squeeze(1)
        ordered = confidence[valid].sort()[0]
        if ordered.numel():
            floor = ordered[min(self.min_kept, ordered.numel() - 1)]
            weight[valid & (confidence < torch.maximum(floor, self.thresh.to(floor)))] = 1.0
        return weight

class CoordGrid:
    """Channels of normalised coordinates, kept for each size of map."""

    def __init__(self):
        self._maps: Dict[Tuple[int, int], torch.Tensor] = {}

    def __call__(self, x):
        size = tuple(x.shape[-2:])
        if size not in self._maps:
            ys, xs = (torch.linspace(-1, 1, n, device=x.device) for n in size)
            self._maps[size] = torch.stack(torch.meshgrid(ys, xs, indexing="ij"))
        return self._maps[size].expand(x.shape[0], -1, -1, -1)

class BaseDecodeHead(nn.Module):
    def __init__(self, cfg: HeadConfig):
        super().__init__()
        self.cfg = cfg
        self.sampler = OHEMPixelSampler(cfg.sampler_thresh) if cfg.sampler_thresh else None
        self.criteria = nn.ModuleList(build_loss(each, cfg.num_classes) for each in cfg.losses)
        self.total_in = sum(cfg.in_channels[i] for i in cfg.in_index)
        self.build(**cfg.options)
        self.classifier = nn.Conv2d(cfg.channels, cfg.num_classes, 1)

    def build(self, **options):
        raise NotImplementedError

    def features(self, x):
        raise NotImplementedError

    def gather_inputs(self, inputs):
        chosen = [inputs[i] for i in self.cfg.in_index]
        size = chosen[0].shape[-2:]
        return torch.cat([resize(x, size, self.cfg.align_corners) for x in chosen], 1)

    def forward(self, inputs):
        return self.classifier(self.features(self.gather_inputs(inputs)))

    def losses(self, inputs, target):
        logits = resize(self(inputs), target.shape[-2:], self.cfg.align_corners)
        seg_weight = self.sampler.sample(logits, target) if self.sampler else None
        report = {f"loss_{c.cfg.kind}": c(logits, target, seg_weight) for c in self.criteria}
        report["acc"] = (logits.argmax(1) == target).float().mean() * torch.tensor(100.0)
        return report

@register(HEADS, "fcn")
class FCNHead(BaseDecodeHead):
    def build(self, depth=2):
        widths = [self.total_in] + [self.cfg.channels] * depth
        self.convs = nn.Sequential(*[conv_block(a, b) for a, b in zip(widths, widths[1:])])

    def features(self, x):
        return self.convs(x)

@register(HEADS, "psp")
class PyramidPoolingHead(BaseDecodeHead):
    def build(self, scales=(1, 2)):
        self.scales = scales
        self.stages = {s: conv_block(self.total_in, self.cfg.channels, 1) for s in scales}
        self.bottleneck = conv_block(self.total_in + len(scales) * self.cfg.channels, self.cfg.channels)

    def features(self, x):
        parts = [x]
        for scale in self.scales:
            pooled = F.adaptive_avg_pool2d(x, scale)
            parts.append(resize(self.stages[scale](pooled), x.shape[-2:]))  # raises
        return self.bottleneck(torch.cat(parts, 1))

@register(HEADS, "coord")
class CoordHead(BaseDecodeHead):
    def build(self, probe_size=None):
        self.grid = CoordGrid()
        self.mix = conv_block(self.total_in + 2, self.cfg.channels)
        self.stride = self._measure_stride(probe_size) if probe_size else 1

    def _measure_stride(self, size):
        with torch.no_grad():
            out = self.features(torch.zeros(1, self.total_in, size, size))
        return size // out.shape[-1]

    def features(self, x):
        return self.mix(torch.cat([x, self.grid(x)], 1))  # raises

@register(HEADS, "prototype")
class PrototypeHead(BaseDecodeHead):
    """Scores pixels against running means of the classes."""

    def build(self, momentum=0.9):
        self.momentum = momentum
        self.embed = conv_block(self.total_in, self.cfg.channels)
        self.register_buffer("means", F.normalize(torch.randn(self.cfg.num_classes, self.cfg.channels), dim=1))
        self.seen = torch.zeros(self.cfg.num_classes, dtype=torch.long)

    def features(self, x):
        return F.normalize(self.embed(x), dim=1)

    def similarity(self, inputs):
        feat = self.features(self.gather_inputs(inputs))
        return torch.einsum("bchw,kc->bkhw", feat, self.means)

    @torch.no_grad()
    def update(self, inputs, target):
        feat = self.features(self.gather_inputs(inputs))
        small = F.interpolate(target[:, None].float(), size=feat.shape[-2:]).long().squeeze(1)
        pixels = feat.permute(0, 2, 3, 1).reshape(-1, feat.shape[1])
        for label in small.unique().tolist():
            if label >= self.cfg.num_classes:
                continue
            mean = pixels[small.reshape(-1) == label].mean(0)
            self.means[label] = self.momentum * self.means[label] + (1 - self.momentum) * mean
            self.seen[label] += (small == label).sum().cpu()

    def balance(self, similarity):
        prior = (self.seen.float() + 1).log()
        return similarity - prior.view(1, -1, 1, 1)  # raises

@register(HEADS, "point")
class PointHead(BaseDecodeHead):
    def build(self, num_points=6, oversample=2):
        self.num_points, self.oversample = num_points, oversample
        self.fine = conv_block(self.total_in, self.cfg.channels)
        self.mlp = nn.Conv1d(self.cfg.channels + self.cfg.num_classes, self.cfg.num_classes, 1)

    def features(self, x):
        return self.fine(x)

    @staticmethod
    def sample(maps, points):
        return F.grid_sample(maps, 2.0 * points.unsqueeze(2) - 1.0, align_corners=False).squeeze(3)

    def uncertain(self, coarse):
        top = coarse.topk(2, dim=1)[0]
        return top[:, 1] - top[:, 0]

    def training_points(self, coarse):
        batch = coarse.shape[0]
        pool = torch.rand(batch, self.num_points * self.oversample, 2, device=coarse.device)
        doubt = self.uncertain(self.sample(coarse, pool))
        index = doubt.topk(self.num_points, dim=1)[1]
        shift = pool.shape[1] * torch.arange(batch)
        index = index + shift.unsqueeze(1)  # raises
        return pool.view(-1, 2)[index.view(-1)].view(batch, -1, 2)

    def testing_points(self, coarse):
        batch, _, h, w = coarse.shape
        index = self.uncertain(coarse).view(batch, -1).topk(min(self.num_points, h * w), dim=1)[1]
        step = torch.tensor([1.0 / w, 1.0 / h])
        cells = torch.stack([index % w, torch.div(index, w, rounding_mode="floor")], -1)
        return index, (cells + 0.5) * step.type_as(coarse)

    def refine(self, inputs):
        feat = self.features(self.gather_inputs(inputs))
        coarse = self.classifier(feat)
        index, points = self.testing_points(coarse)
        logits = self.mlp(torch.cat([self.sample(feat, points), self.sample(coarse, points)], 1))
        flat = coarse.flatten(2).scatter(2, index.unsqueeze(1).expand(-1, coarse.shape[1], -1), logits)
        return flat.view_as(coarse)

    def point_loss(self, inputs, target):
        feat = self.features(self.gather_inputs(inputs))
        coarse = self.classifier(feat)
        points = self.training_points(coarse)
        truth = self.sample(target[:, None].float(), points).squeeze(1).long()
        return F.cross_entropy(self.mlp(torch.cat([self.sample(feat, points), self.sample(coarse, points)], 1)), truth)

def build_head(cfg: HeadConfig) -> BaseDecodeHead:
    return HEADS[cfg.kind](cfg)

class IntersectionMeter:
    def __init__(self, num_classes, ignore_index=255):
        self.num_classes, self.ignore_index = num_classes, ignore_index
        self.reset()

    def reset(self):
        self.matrix = torch.zeros(self.num_classes, self.num_classes, dtype=torch.long)
        self.pixels = torch.tensor(0)

    def update(self, pred, target):
        keep = target != self.ignore_index
        code = target[keep] * self.num_classes + pred[keep]
        counts = torch.bincount(code, minlength=self.num_classes ** 2)
        self.matrix += counts.view_as(self.matrix).cpu()
        self.pixels = self.pixels + keep.sum()

    def iou(self):
        hit = self.matrix.diag().float()
        return hit / (self.matrix.sum(0) + self.matrix.sum(1) - hit).clamp(min=1)

    def weighted_iou(self):
        share = self.matrix.sum(1) / self.pixels  # raises
        return (share * self.iou()).sum()

class SlideInferencer:
    """Overlapping windows, weighted towards the middle of each."""

    def __init__(self, net: Callable, num_classes: int, window=8, stride=4, sigma: Optional[float] = None):
        self.net, self.num_classes = net, num_classes
        self.window, self.stride, self.sigma = window, stride, sigma

    def importance(self, like):
        if self.sigma is None:
            return like.new_ones(self.window, self.window)
        line = torch.arange(self.window).float() - (self.window - 1) / 2
        bell = torch.exp(-0.5 * (line / (self.sigma * self.window)) ** 2)
        return torch.outer(bell, bell)

    def corners(self, size):
        steps = max(math.ceil((size - self.window) / self.stride), 0) + 1
        return [min(i * self.stride, size - self.window) for i in range(steps)]

    @torch.no_grad()
    def __call__(self, image):
        batch, _, height, width = image.shape
        scores = image.new_zeros(batch, self.num_classes, height, width)
        count = torch.zeros_like(scores[:, :1])
        weight = self.importance(image)
        for top in self.corners(height):
            for left in self.corners(width):
                rows, cols = slice(top, top + self.window), slice(left, left + self.window)
                scores[:, :, rows, cols] += self.net(image[:, :, rows, cols]) * weight  # raises
                count[:, :, rows, cols] += weight
        return scores / count

class MaskExporter:
    def __init__(self, num_classes, stuff: Sequence[int] = ()):
        steps = torch.arange(num_classes).unsqueeze(1) * torch.tensor([[37, 91, 151]])
        self.palette = (steps % 256).to(torch.uint8)
        self.stuff = torch.as_tensor(list(stuff), dtype=torch.long)

    def colour(self, pred):
        return self.palette[pred.cpu()].permute(0, 3, 1, 2)

    def overlay(self, image, pred, alpha=0.5):
        return (1 - alpha) * image + alpha * self.colour(pred).to(image) / 255

    def suppress_stuff(self, logits):
        masked = logits.clone()
        masked[:, self.stuff] = float("-inf")
        return masked

    def things(self, pred):
        return ~torch.isin(pred, self.stuff.to(pred.device))

    def areas(self, pred):
        ones = torch.ones_like(pred, dtype=torch.float32).flatten()
        return torch.zeros(len(self.palette)).index_add_(0, pred.flatten(), ones)  # raises

    def run_lengths(self, pred) -> List[np.ndarray]:
        out = []
        for flat in pred.flatten(1):
            change = np.flatnonzero(np.diff(flat.detach().to(torch.uint8).numpy())) + 1  # raises
            out.append(np.diff(np.concatenate([[0], change, [flat.numel()]])))
        return out
