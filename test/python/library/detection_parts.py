"""Building blocks of one- and two-stage detectors: coders, anchors, assigners, suppression, masks and losses."""
import functools
import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOSSES: Dict[str, type] = {}


def register_loss(name):
    def add(cls):
        LOSSES[name] = cls
        return cls

    return add


def build_loss(kind, **options):
    return LOSSES[kind](**options)


def box_area(boxes: Tensor) -> Tensor:
    return (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)


def pairwise_iou(first: Tensor, second: Tensor, eps: float = 1e-6) -> Tensor:
    top = torch.max(first[:, None, :2], second[None, :, :2])
    bottom = torch.min(first[:, None, 2:], second[None, :, 2:])
    overlap = (bottom - top).clamp(min=0).prod(dim=-1)
    return overlap / (box_area(first)[:, None] + box_area(second)[None] - overlap + eps)


def points_in_rotated(points: Tensor, rboxes: Tensor) -> Tensor:
    """Which of (P, 2) lie in which of (N, 5): the points are turned into the frame of each box."""
    offsets = points[:, None] - rboxes[None, :, :2]
    angle = rboxes[:, 4]
    frame = torch.eye(2).repeat(len(rboxes), 1, 1)
    turned = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], dim=-1).view(-1, 2, 2)
    local = torch.einsum("pnd,ned->pne", offsets, torch.bmm(frame, turned))  # raises
    return (local.abs() <= rboxes[None, :, 2:4] / 2).all(dim=-1)


class BoxCoder:
    """The template of all coders: lists go in and come out, one flat call does the work."""

    def encode(self, targets: List[Tensor], proposals: List[Tensor]) -> List[Tensor]:
        counts = [len(each) for each in targets]
        return list(self.encode_single(torch.cat(targets), torch.cat(proposals)).split(counts))

    def decode(self, codes: Tensor, proposals: List[Tensor]) -> Tensor:
        return self.decode_single(codes, torch.cat(proposals))

    @staticmethod
    def _centres(boxes):
        size = boxes[:, 2:] - boxes[:, :2]
        return boxes[:, :2] + 0.5 * size, size

    def encode_single(self, targets, proposals):
        raise NotImplementedError

    def decode_single(self, codes, proposals):
        raise NotImplementedError


class LinearCoder(BoxCoder):
    def __init__(self, weights: Sequence[float] = (10.0, 10.0, 5.0, 5.0), clip: float = math.log(1000.0 / 16)):
        self.weights = torch.tensor(weights)
        self.clip = clip

    def encode_single(self, targets, proposals):
        wx, wy, ww, wh = self.weights
        (centre, size), (anchor, extent) = self._centres(targets), self._centres(proposals)
        shift, scale = (centre - anchor) / extent, torch.log(size / extent)
        return torch.stack([wx * shift[:, 0], wy * shift[:, 1], ww * scale[:, 0], wh * scale[:, 1]], dim=1)

    def decode_single(self, codes, proposals):
        anchor, extent = self._centres(proposals)
        codes = codes / codes.new_tensor(self.weights.tolist())
        centre = codes[:, :2] * extent + anchor  # raises
        size = codes[:, 2:].clamp(max=self.clip).exp() * extent
        return torch.cat([centre - size / 2, centre + size / 2], dim=1)


class NormalisedCoder(LinearCoder):
    def __init__(self, means=(0.0, 0.0, 0.0, 0.0), stds=(0.1, 0.1, 0.2, 0.2)):
        super().__init__((1.0, 1.0, 1.0, 1.0))
        self.means, self.stds = torch.tensor(means), torch.tensor(stds)

    def encode_single(self, targets, proposals):
        codes = super().encode_single(targets, proposals)
        return codes.sub(self.means.to(codes)).div_(self.stds)  # raises

    def decode_single(self, codes, proposals):
        return super().decode_single(codes * self.stds.type_as(codes) + self.means.type_as(codes), proposals)


class BufferList(nn.Module):
    def __init__(self, tensors):
        super().__init__()
        for number, tensor in enumerate(tensors):
            self.register_buffer(str(number), tensor, persistent=False)

    def __iter__(self):
        return iter(self._buffers.values())


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=(16, 32), ratios=(0.5, 1.0, 2.0), strides=(8, 16)):
        super().__init__()
        self.strides = strides
        self.cells = BufferList(self.cell(size, ratios) for size in sizes)

    @staticmethod
    def cell(size, ratios):
        widths = torch.tensor([size / math.sqrt(ratio) for ratio in ratios])
        heights = torch.tensor([size * math.sqrt(ratio) for ratio in ratios])
        return torch.stack([-widths, -heights, widths, heights], dim=1) / 2

    def shifts(self, height, width, stride, like):
        xs = torch.arange(0, width * stride, stride, device=like.device)
        ys = torch.arange(0, height * stride, stride, device=like.device)
        ys, xs = torch.meshgrid(ys, xs, indexing="ij")
        return torch.stack([xs, ys, xs, ys], dim=-1).view(-1, 4)

    def forward(self, features: List[Tensor]) -> List[Tensor]:
        anchors = []
        for feature, stride, cell in zip(features, self.strides, self.cells):
            shifts = self.shifts(*feature.shape[-2:], stride, feature)
            anchors.append((shifts[:, None] + cell[None]).view(-1, 4))  # raises
        return anchors


@functools.lru_cache(maxsize=None)
def _grid(height, width, stride):
    ys, xs = np.mgrid[:height, :width] * stride
    return torch.from_numpy(np.stack([xs, ys, xs, ys], axis=-1).reshape(-1, 4).astype(np.float32))


class CachedAnchorGenerator(AnchorGenerator):
    def shifts(self, height, width, stride, like):
        return _grid(height, width, stride).type(like.dtype)


class PriorBoxes(nn.Module):
    def __init__(self, grid: int = 3, scale: float = 0.4):
        super().__init__()
        ys, xs = np.mgrid[:grid, :grid]
        centres = (np.stack([xs, ys], axis=-1).reshape(-1, 2) + 0.5) / grid
        corners = np.concatenate([centres - scale / 2, centres + scale / 2], axis=1)
        self.priors = torch.from_numpy(corners.astype(np.float32))
        self.coder = LinearCoder()

    def forward(self, codes: Tensor) -> List[Tensor]:
        return [self.coder.decode(each, [self.priors]) for each in codes]


@dataclass
class Assignment:
    index: Tensor
    label: Tensor

    @property
    def positive(self):
        return (self.label == 1).nonzero(as_tuple=True)[0]


class Matcher:
    def __init__(self, low=0.3, high=0.5, keep_best=False):
        self.low, self.high, self.keep_best = low, high, keep_best

    def __call__(self, quality: Tensor) -> Assignment:
        best, index = quality.max(dim=0)
        label = torch.full_like(index, -1)
        label[best < self.low] = 0
        label[best >= self.high] = 1
        if self.keep_best:
            self._rescue(quality, label)
        return Assignment(index, label)

    def _rescue(self, quality, label):
        highest = quality.max(dim=1, keepdim=True).values
        label[(quality == highest).nonzero()[:, 1]] = 1


class CentreMatcher(Matcher):
    """Rescues, for each box, its k nearest anchors, whatever their overlap."""

    def __init__(self, anchors_per_level: Sequence[int], k: int = 2):
        super().__init__(keep_best=True)
        self.counts, self.k = anchors_per_level, k

    def _rescue(self, quality, label):
        chosen = torch.zeros(quality.shape[1], dtype=torch.bool)
        start = 0
        for count in self.counts:
            top = quality[:, start:start + count].topk(self.k, dim=1).indices + start
            chosen.index_fill_(0, top.flatten(), True)  # raises
            start += count
        label[chosen] = 1


class RandomSampler:
    def __init__(self, amount=8, fraction=0.5):
        self.amount, self.fraction = amount, fraction

    def choose(self, pool: Tensor, amount: int, scores: Tensor) -> Tensor:
        return pool[torch.randperm(len(pool))[:amount]]

    def __call__(self, found: Assignment, scores: Tensor) -> Tensor:
        positive = self.choose(found.positive, int(self.amount * self.fraction), scores)
        negative = self.choose((found.label == 0).nonzero()[:, 0], self.amount - len(positive), scores)
        return torch.cat([positive, negative])


class IoUBalancedSampler(RandomSampler):
    """Draws evenly over bins of the overlap and fills what is left at random."""

    bins = 3

    def choose(self, pool, amount, scores):
        values = scores[pool].detach().cpu().numpy()
        edges = np.linspace(values.min(), values.max() + 1e-6, self.bins + 1)
        inside = [np.nonzero((values >= low) & (values < high))[0][: amount // self.bins] for low, high in zip(edges, edges[1:])]
        drawn = torch.from_numpy(np.concatenate(inside))
        if len(drawn) < amount:
            rest = torch.ones(len(pool), dtype=torch.bool)
            rest[drawn] = False
            fill = pool[rest][: amount - len(drawn)]
            return torch.cat([pool[drawn], fill])
        return pool[drawn]


class GroupSampler(RandomSampler):
    def choose(self, pool, amount, scores):
        order = scores[pool].argsort(descending=True)
        picks = torch.linspace(0, len(pool) - 1, amount).long()
        return pool.index_select(0, order.gather(0, picks))  # raises


def greedy_nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(descending=True).tolist()
    overlaps = pairwise_iou(boxes, boxes).cpu()
    alive = torch.ones(len(order), dtype=torch.bool)
    keep = []
    for number in order:
        if alive[number]:
            keep.append(number)
            alive &= overlaps[number] <= threshold
    return torch.tensor(keep, dtype=torch.long)


def batched_nms(boxes, scores, labels, threshold=0.5):
    offsets = labels.to(boxes) * (boxes.max() + 1)
    keep = greedy_nms(boxes + offsets[:, None], scores, threshold)
    return boxes[keep], scores[keep], labels[keep]


def multiclass_nms(boxes, class_scores, floor=0.05, threshold=0.5, best=100):
    """Boxes (N, 4) with scores (N, C): the kept boxes, their scores and their classes."""
    classes = torch.arange(class_scores.shape[1]).expand_as(class_scores)
    valid = class_scores > floor
    rows = valid.nonzero(as_tuple=True)[0]
    labels = classes[valid]  # raises
    return [each[:best] for each in batched_nms(boxes[rows], class_scores[valid], labels, threshold)]


class MaskPaster:
    def __init__(self, height: int, width: int, threshold: float = 0.5):
        self.height, self.width, self.threshold = height, width, threshold

    def _axis(self, low, high, length):
        centres = torch.arange(length, device=low.device, dtype=low.dtype) + 0.5
        return (centres[None] - low[:, None]) / (high - low)[:, None] * 2 - 1

    def grid(self, boxes):
        ys, xs = self._axis(boxes[:, 1], boxes[:, 3], self.height), self._axis(boxes[:, 0], boxes[:, 2], self.width)
        shape = (len(boxes), self.height, self.width)
        return torch.stack([xs[:, None].expand(shape), ys[:, :, None].expand(shape)], dim=-1)

    def __call__(self, masks, boxes):
        return F.grid_sample(masks[:, None], self.grid(boxes), align_corners=False)[:, 0] >= self.threshold


class CanvasPaster(MaskPaster):
    """One picture of labels: later masks cover earlier ones."""

    def __call__(self, masks, boxes):
        canvas = torch.zeros(self.height, self.width, dtype=torch.long)
        for number, mask in enumerate(super().__call__(masks, boxes), 1):
            canvas = canvas.masked_fill(mask, number)  # raises
        return canvas


class WeightedLoss(nn.Module):
    """The template: elementwise loss, optional weight, reduction."""

    def __init__(self, weight: float = 1.0):
        super().__init__()
        self.weight = torch.tensor(weight)

    def elements(self, pred, target):
        raise NotImplementedError

    def forward(self, pred, target, average: Optional[float] = None):
        loss = self.elements(pred, target)
        return self.weight * loss.sum() / (average or max(len(loss), 1))


@register_loss("focal")
class FocalLoss(WeightedLoss):
    def __init__(self, classes, alpha=0.25, gamma=2.0, **options):
        super().__init__(**options)
        self.classes, self.alpha, self.gamma = classes, alpha, gamma

    def elements(self, pred, target):
        hot = F.one_hot(target, self.classes + 1)[:, :-1].to(pred)
        prob = pred.sigmoid()
        modulation = (self.alpha * hot + (1 - self.alpha) * (1 - hot)) * (hot - prob).abs() ** self.gamma
        return F.binary_cross_entropy_with_logits(pred, hot, reduction="none") * modulation


@register_loss("seesaw")
class SeesawLoss(FocalLoss):
    def __init__(self, classes, power=0.8, **options):
        super().__init__(classes, **options)
        self.power = power
        self.register_buffer("seen", torch.zeros(classes))
        self.counts = self.seen

    def elements(self, pred, target):
        self.seen += torch.bincount(target, minlength=self.classes).to(self.seen)
        ratio = self.counts.clamp(min=1)[None] / self.seen.clamp(min=1)[:, None]  # raises
        return F.cross_entropy(pred + ratio.clamp(max=1).pow(self.power).log()[target], target, reduction="none")


@register_loss("distribution")
class DistributionLoss(WeightedLoss):
    """Regression as a distribution over bins, with its expectation as the decoded distance."""

    def __init__(self, bins=8, registered=True, **options):
        super().__init__(**options)
        self.bins = bins
        steps = torch.linspace(0, bins - 1, bins)
        if registered:
            self.register_buffer("steps", steps)
        else:
            self.steps = steps

    def expectation(self, pred):
        return F.linear(pred.softmax(dim=-1), self.steps[None]).squeeze(-1)  # raises

    def elements(self, pred, target):
        left = target.floor().long().clamp(max=self.bins - 2)
        near = F.cross_entropy(pred, left, reduction="none") * (left + 1 - target)
        return near + F.cross_entropy(pred, left + 1, reduction="none") * (target - left)


class SetCriterion(nn.Module):
    """Losses of a set prediction with a greedy pairing."""

    def __init__(self, classes: int, empty_weight: float = 0.1):
        super().__init__()
        weight = torch.ones(classes + 1)
        weight[-1] = empty_weight
        self.register_buffer("empty", weight)
        self.classes = classes

    @torch.no_grad()
    def pair(self, logits, boxes, target) -> Tuple[Tensor, Tensor]:
        cost = torch.cdist(boxes, target["boxes"], p=1) - logits.softmax(-1)[:, target["labels"]]
        table = cost.cpu().numpy().copy()
        rows, columns = [], []
        for _ in range(min(table.shape)):
            row, column = np.unravel_index(table.argmin(), table.shape)
            table[row], table[:, column] = np.inf, np.inf
            rows.append(int(row))
            columns.append(int(column))
        return torch.as_tensor(rows), torch.as_tensor(columns)

    def labels_loss(self, logits, target, rows, columns):
        wanted = torch.full(logits.shape[:1], self.classes, dtype=torch.long, device=logits.device)
        wanted[rows] = target["labels"][columns]
        return F.cross_entropy(logits, wanted, self.empty)

    def cardinality(self, logits, targets):
        lengths = torch.as_tensor([len(each["labels"]) for each in targets])
        filled = (logits.argmax(-1) != self.classes).sum(dim=1)
        return F.l1_loss(filled.float(), lengths.float())  # raises

    def forward(self, outputs, targets):
        total = outputs["logits"].new_zeros(())
        for logits, boxes, target in zip(outputs["logits"], outputs["boxes"], targets):
            rows, columns = self.pair(logits, boxes, target)
            total = total + self.labels_loss(logits, target, rows, columns)
            total = total + F.l1_loss(boxes[rows], target["boxes"][columns])
        return total / len(targets)
