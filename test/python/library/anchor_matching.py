"""Anchors, assignment, sampling and box losses for one-stage and two-stage detectors."""

import math
from collections import OrderedDict
from functools import partial
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def box_area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def pairwise_iou(first: Tensor, second: Tensor) -> Tensor:
    upper = torch.max(first[:, None, :2], second[None, :, :2])
    lower = torch.min(first[:, None, 2:], second[None, :, 2:])
    inter = (lower - upper).clamp(min=0).prod(-1)
    union = box_area(first)[:, None] + box_area(second)[None] - inter
    return inter / union.clamp(min=torch.finfo(union.dtype).eps)


def base_cell(scales: Sequence[float], ratios: Sequence[float]) -> Tensor:
    scale = torch.as_tensor(scales, dtype=torch.float32)
    root = torch.as_tensor(ratios, dtype=torch.float32).sqrt()
    width = (scale[:, None] / root[None]).flatten()
    height = (scale[:, None] * root[None]).flatten()
    return torch.stack([-width, -height, width, height], dim=1) / 2


class AnchorMaker(nn.Module):
    """Anchors of every level, as the feature maps have them."""

    def __init__(self, strides: Sequence[int], scales=(32.0,), ratios=(0.5, 1.0, 2.0)):
        super().__init__()
        self.strides = list(strides)
        self.cells = [base_cell([s * stride / strides[0] for s in scales], ratios) for stride in strides]

    def level(self, index: int, feature: Tensor) -> Tensor:
        rows, columns = feature.shape[-2:]
        stride = self.strides[index]
        y = torch.arange(rows, device=feature.device) * stride
        x = torch.arange(columns, device=feature.device) * stride
        gy, gx = torch.meshgrid(y, x, indexing="ij")
        shift = torch.stack([gx, gy, gx, gy], dim=-1).view(-1, 1, 4)
        return (shift + self.cells[index][None]).view(-1, 4)  # raises

    def forward(self, features: List[Tensor]) -> List[Tensor]:
        return [self.level(index, feature) for index, feature in enumerate(features)]


class BufferedAnchorMaker(AnchorMaker):
    """The same with cells that are part of the module."""

    def __init__(self, strides, **options):
        super().__init__(strides, **options)
        cells, self.cells = self.cells, None
        for index, cell in enumerate(cells):
            self.register_buffer(f"cell_{index}", cell, persistent=False)

    def level(self, index, feature):
        rows, columns = feature.shape[-2:]
        cell = getattr(self, f"cell_{index}")
        y, x = (torch.arange(n, device=cell.device) * self.strides[index] for n in (rows, columns))
        gy, gx = torch.meshgrid(y, x, indexing="ij")
        return (torch.stack([gx, gy, gx, gy], -1).reshape(-1, 1, 4) + cell).reshape(-1, 4)


class BoxCoder:
    """Boxes as offsets from anchors."""

    def __init__(self, weights=(10.0, 10.0, 5.0, 5.0), clip: float = math.log(1000.0 / 16)):
        self.weights = torch.tensor(weights)
        self.clip = clip

    @staticmethod
    def _centres(boxes: Tensor) -> Tuple[Tensor, Tensor]:
        size = boxes[..., 2:] - boxes[..., :2]
        return boxes[..., :2] + size / 2, size

    def encode(self, boxes: Tensor, anchors: Tensor) -> Tensor:
        centre, size = self._centres(boxes)
        a_centre, a_size = self._centres(anchors)
        delta = torch.cat([(centre - a_centre) / a_size, (size / a_size).log()], dim=-1)
        return delta * self.weights  # raises

    def decode(self, delta: Tensor, anchors: Tensor) -> Tensor:
        wx, wy, ww, wh = self.weights
        a_centre, a_size = self._centres(anchors)
        dx, dy = delta[..., 0] / wx, delta[..., 1] / wy
        dw = (delta[..., 2] / ww).clamp(max=self.clip)
        dh = (delta[..., 3] / wh).clamp(max=self.clip)
        centre = a_centre + torch.stack([dx, dy], -1) * a_size
        half = torch.stack([dw, dh], -1).exp() * a_size / 2
        return torch.cat([centre - half, centre + half], dim=-1)


class Matcher:
    BELOW, BETWEEN = -1, -2

    def __init__(self, low: float, high: float, keep_best: bool = False):
        self.low, self.high, self.keep_best = low, high, keep_best

    def __call__(self, quality: Tensor) -> Tensor:
        value, match = quality.max(dim=0)
        original = match.clone() if self.keep_best else None
        match[value < self.low] = self.BELOW
        match[(value >= self.low) & (value < self.high)] = torch.tensor(self.BETWEEN)
        if self.keep_best:
            self._restore(match, original, quality)
        return match

    @staticmethod
    def _restore(match, original, quality):
        best = quality.max(dim=1).values
        _, column = torch.nonzero(quality == best[:, None], as_tuple=True)
        match[column] = original[column]


class TopKMatcher(Matcher):
    """Each ground truth takes its k best anchors."""

    def __init__(self, k: int = 3):
        super().__init__(0.0, 0.0)
        self.k = k

    def __call__(self, quality):
        truths, anchors = quality.shape
        top = quality.topk(min(self.k, anchors), dim=1).indices
        taken = torch.zeros(truths, anchors, dtype=torch.bool)
        return taken.scatter_(1, top, True).int().argmax(0)  # raises


def sample_balanced(labels: Tensor, count: int, fraction: float = 0.5) -> Tuple[Tensor, Tensor]:
    positive = torch.nonzero(labels > 0).flatten()
    negative = torch.nonzero(labels == 0).flatten()
    n_pos = min(int(count * fraction), positive.numel())
    n_neg = min(count - n_pos, negative.numel())
    return positive[torch.randperm(positive.numel())[:n_pos]], negative[torch.randperm(negative.numel())[:n_neg]]


def sample_hard(loss: Tensor, labels: Tensor, ratio: int = 3) -> Tensor:
    positive = labels > 0
    order = loss.masked_fill(positive, float("-inf")).sort(dim=1, descending=True).indices
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(order.size(1)).expand_as(order))  # raises
    return positive | (rank < ratio * positive.sum(1, keepdim=True))


def sample_hard_ranked(loss: Tensor, labels: Tensor, ratio: int = 3) -> Tensor:
    positive = labels > 0
    rank = loss.masked_fill(positive, float("-inf")).argsort(dim=1, descending=True).argsort(dim=1)
    return positive | (rank < ratio * positive.sum(1, keepdim=True))


def greedy_nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    overlap = pairwise_iou(boxes, boxes).cpu().numpy()
    kept: List[int] = []
    for index in scores.argsort(descending=True).tolist():
        if all(overlap[index, other] <= threshold for other in kept):
            kept.append(index)
    return torch.tensor(kept, dtype=torch.long)


def best_boxes(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> Tuple[Tensor, Tensor]:
    kept = greedy_nms(boxes, scores, threshold)
    return boxes[kept], scores[kept]


def best_boxes_by_class(boxes: Tensor, scores: Tensor, labels: Tensor, threshold: float = 0.5) -> Tensor:
    offset = labels.to(boxes) * (boxes.max() + 1)
    kept = greedy_nms(boxes + offset[:, None], scores, threshold)
    return torch.index_select(boxes, 0, kept)  # raises


def soft_suppress(boxes: Tensor, scores: Tensor, sigma: float = 0.5) -> Tensor:
    overlap = pairwise_iou(boxes, boxes).triu(1)
    decay = torch.ones(len(scores))
    for row in overlap:
        decay = decay * torch.exp(-row ** 2 / sigma)  # raises
    return scores * decay


def soft_suppress_by_rows(boxes: Tensor, scores: Tensor, sigma: float = 0.5) -> Tensor:
    decay = torch.tensor(1.0)
    for row in pairwise_iou(boxes, boxes).triu(1):
        decay = decay * torch.exp(-row ** 2 / sigma)
    return scores * decay


def focal_loss(logits: Tensor, target: Tensor, gamma: float = 2.0, reduction=torch.sum) -> Tensor:
    probability = logits.sigmoid()
    loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    hit = probability * target + (1 - probability) * (1 - target)
    return reduction(loss * (1 - hit) ** gamma)


def class_targets(labels: Tensor, classes: int) -> Tensor:
    return torch.eye(classes + 1)[labels.cpu(), 1:]


def quality_focal(logits: Tensor, labels: Tensor) -> Tensor:
    target = class_targets(labels, logits.size(1))
    return focal_loss(logits, target.type_as(logits))


def varifocal(logits: Tensor, labels: Tensor, iou: Tensor) -> Tensor:
    target = class_targets(labels, logits.size(1)) * iou[:, None]  # raises
    return F.binary_cross_entropy_with_logits(logits, target, weight=target + 0.1)


def giou_loss(first: Tensor, second: Tensor) -> Tensor:
    upper, lower = torch.min(first[:, :2], second[:, :2]), torch.max(first[:, 2:], second[:, 2:])
    hull = (lower - upper).prod(1)
    inter = (torch.min(first[:, 2:], second[:, 2:]) - torch.max(first[:, :2], second[:, :2])).clamp(min=0).prod(1)
    union = box_area(first) + box_area(second) - inter
    return 1 - inter / union + (hull - union) / hull


def smooth_l1(prediction: Tensor, target: Tensor, beta: float = 1.0) -> Tensor:
    distance = (prediction - target).abs()
    return torch.where(distance < beta, distance ** 2 / (2 * beta), distance - beta / 2).sum(1)


def weighted_l1(prediction: Tensor, target: Tensor, weight: Tensor = torch.tensor([1.0, 1.0, 2.0, 2.0])) -> Tensor:
    return ((prediction - target).abs() * weight).sum(1)  # raises


BOX_LOSSES = {
    "giou": giou_loss,
    "smooth": partial(smooth_l1, beta=0.1),
    "weighted": weighted_l1,
}


class DetectionLoss(nn.Module):
    """Sum of classification and regression, with classes that may count for more."""

    def __init__(self, classes: int, kind: str = "giou", class_weight: Optional[Sequence[float]] = None):
        super().__init__()
        self.box_loss = BOX_LOSSES[kind]
        weight = torch.ones(classes) if class_weight is None else torch.tensor(class_weight)
        self.register_buffer("class_weight", weight)
        self.history: "OrderedDict[str, float]" = OrderedDict()

    def reweight(self, counts: Sequence[int]) -> None:
        frequency = np.asarray(counts, dtype=np.float32)
        self.class_weight = torch.from_numpy(frequency.sum() / (frequency + 1))

    def forward(self, logits: Tensor, boxes: Tensor, labels: Tensor, truth: Tensor) -> Dict[str, Tensor]:
        cls = F.cross_entropy(logits, labels, weight=self.class_weight)  # raises
        box = self.box_loss(boxes, truth).mean()
        self.history["cls"], self.history["box"] = float(cls), box.item()
        return {"cls": cls, "box": box, "total": cls + box}


class CentreHead(nn.Module):
    """Distances to the four sides from each location, by a distribution over bins."""

    def __init__(self, width: int, bins: int = 8):
        super().__init__()
        self.bins = bins
        self.side = nn.Conv2d(width, 4 * bins, 1)
        self.register_buffer("project", torch.linspace(0, bins - 1, bins))
        self.scale = nn.Parameter(torch.ones(()))

    def locations(self, feature: Tensor, stride: int) -> Tensor:
        rows, columns = feature.shape[-2:]
        y, x = np.mgrid[:rows, :columns]
        grid = torch.from_numpy(np.stack([x, y], -1).reshape(-1, 2).astype(np.float32))
        return (grid + 0.5) * stride

    def distances(self, feature: Tensor) -> Tensor:
        n, _, rows, columns = feature.shape
        raw = self.side(feature).view(n, 4, self.bins, rows * columns).softmax(2)
        return self.scale * torch.einsum("nkbl,b->nlk", raw, self.project)

    def forward(self, feature: Tensor, stride: int = 8) -> Tensor:
        distance = self.distances(feature) * stride
        centre = self.locations(feature, stride)
        return torch.cat([centre - distance[..., :2], centre + distance[..., 2:]], -1)  # raises


def crop_and_resize(image: Tensor, boxes: Tensor, size: int) -> Tensor:
    step = (torch.arange(size) + 0.5) / size
    crops = []
    for box in boxes.tolist():
        x = (box[0] + step * (box[2] - box[0])) / image.size(-1) * 2 - 1
        y = (box[1] + step * (box[3] - box[1])) / image.size(-2) * 2 - 1
        grid = torch.stack(torch.meshgrid(y, x, indexing="ij")[::-1], dim=-1)[None]
        crops.append(F.grid_sample(image[None], grid, align_corners=False))  # raises
    return torch.cat(crops)


def paste_mask(mask: Tensor, box: Tensor, height: int, width: int) -> Tensor:
    """A mask within its box, on a canvas in host memory as the writers of results want it."""
    x0, y0, x1, y1 = (int(v) for v in box.round())
    canvas = torch.zeros(height, width)
    canvas[y0:y1, x0:x1] = F.interpolate(mask[None, None], size=(y1 - y0, x1 - x0), mode="bilinear")[0, 0]
    return canvas


class RecallMeter:
    """Share of the truths that are met at each threshold."""

    thresholds = torch.arange(0.5, 1.0, 0.05)

    def __init__(self):
        self.hits = torch.zeros_like(self.thresholds)
        self.count = 0

    def update(self, boxes: Tensor, truth: Tensor) -> None:
        best = pairwise_iou(boxes, truth).max(0).values.cpu()
        self.hits += (best[:, None] >= self.thresholds).sum(0)
        self.count += len(truth)

    def compute(self) -> Tensor:
        return self.hits / max(self.count, 1)

    def at(self, iou: Tensor) -> Tensor:
        return torch.bucketize(iou, self.thresholds)  # raises
