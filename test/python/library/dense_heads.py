"""Components of dense detection and instance segmentation heads: coders, anchors, assigners, samplers, masks, losses."""
import math
from collections import namedtuple
from functools import lru_cache

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Assignment = namedtuple("Assignment", ["gt_index", "max_overlap", "labels"])
CODERS = {}


def register_coder(name):
    def wrap(cls):
        CODERS[name] = cls
        return cls
    return wrap


def build_coder(cfg):
    cfg = dict(cfg)
    return CODERS[cfg.pop("type")](**cfg)


def box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)


def pairwise_iou(a, b, eps=1e-6):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    union = box_area(a)[:, None] + box_area(b)[None, :] - inter
    return inter / union.clamp(min=eps)


class BaseCoder:
    """Template: subclasses say how centers and sizes become deltas."""

    def __init__(self, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)):
        self.means = means
        self.stds = stds

    def _normalizers(self, like):
        return like.new_tensor(self.means), like.new_tensor(self.stds)

    @staticmethod
    def _center_size(boxes):
        size = boxes[..., 2:] - boxes[..., :2]
        return boxes[..., :2] + 0.5 * size, size

    def encode(self, proposals, gt):
        raw = self._encode(proposals, gt)
        means, stds = self._normalizers(raw)
        return (raw - means) / stds

    def decode(self, proposals, deltas, max_shape=None):
        means, stds = self._normalizers(deltas)
        boxes = self._decode(proposals, deltas * stds + means)
        return boxes if max_shape is None else self._clip(boxes, max_shape)

    def _clip(self, boxes, max_shape):
        height, width = max_shape
        limit = boxes.new_tensor([width, height, width, height])
        return torch.min(boxes.clamp(min=0), limit)


@register_coder("delta")
class DeltaCoder(BaseCoder):
    def __init__(self, wh_ratio_clip=16 / 1000, **kwargs):
        super().__init__(**kwargs)
        self.max_ratio = torch.tensor(abs(math.log(wh_ratio_clip)))

    def _encode(self, proposals, gt):
        pc, ps = self._center_size(proposals)
        gc, gs = self._center_size(gt)
        return torch.cat([(gc - pc) / ps, torch.log(gs / ps)], dim=-1)

    def _decode(self, proposals, deltas):
        pc, ps = self._center_size(proposals)
        dwh = torch.minimum(deltas[..., 2:], self.max_ratio)
        center, size = pc + deltas[..., :2] * ps, ps * dwh.exp()
        return torch.cat([center - size / 2, center + size / 2], dim=-1)


@register_coder("bucket")
class BucketCoder(BaseCoder):
    """Distances to the four sides as an expectation over bins."""

    def __init__(self, bins=8, reach=2.0, **kwargs):
        super().__init__(**kwargs)
        self.bins = bins
        self.project = torch.linspace(0, reach, bins)

    def _encode(self, proposals, gt):
        center, size = self._center_size(proposals)
        scale = size.repeat(1, 2)
        distance = torch.cat([center - gt[:, :2], gt[:, 2:] - center], dim=-1) / scale
        edges = self.project.tolist()
        return distance.clamp(edges[0], edges[-1])

    def expectation(self, logits):
        prob = logits.reshape(-1, 4, self.bins).softmax(-1)
        return F.linear(prob, self.project)  # raises

    def _decode(self, proposals, deltas):
        center, size = self._center_size(proposals)
        scale = size.repeat(1, 2)
        offset = deltas * scale
        return torch.cat([center - offset[:, :2], center + offset[:, 2:]], dim=-1)


class AnchorGenerator(nn.Module):
    def __init__(self, strides=(8, 16), ratios=(0.5, 1.0, 2.0), scales=(4.0,)):
        super().__init__()
        self.strides = strides
        self.ratios, self.scales = torch.tensor(ratios), torch.tensor(scales)
        self.base_anchors = [self._base(stride) for stride in strides]
        self._grid_cache = {}

    def _base(self, stride):
        h_ratio = self.ratios.sqrt()
        w = (stride * (1 / h_ratio)[:, None] * self.scales[None]).reshape(-1)
        h = (stride * h_ratio[:, None] * self.scales[None]).reshape(-1)
        return torch.stack([-w, -h, w, h], dim=1) / 2

    @property
    def num_base_anchors(self):
        return [len(each) for each in self.base_anchors]

    def _meshgrid(self, size, stride, device):
        y = torch.arange(size[0], device=device) * stride
        x = torch.arange(size[1], device=device) * stride
        yy, xx = torch.meshgrid(y, x, indexing="ij")
        return torch.stack([xx, yy, xx, yy], dim=-1).reshape(-1, 4)

    def single_level(self, feature, level):
        shift = self._meshgrid(feature.shape[-2:], self.strides[level], feature.device)
        return (self.base_anchors[level][None] + shift[:, None]).reshape(-1, 4)  # raises

    def cached_level(self, feature, level):
        key = (level, tuple(feature.shape[-2:]), feature.device)
        if key not in self._grid_cache:
            shift = self._meshgrid(feature.shape[-2:], self.strides[level], "cpu")
            grid = self.base_anchors[level][None] + shift[:, None]
            self._grid_cache[key] = grid.reshape(-1, 4).to(feature)
        return self._grid_cache[key]

    def forward(self, features):
        return torch.cat([self.cached_level(each, level) for level, each in enumerate(features)])

    def valid_flags(self, features, pad_shape, device=None):
        flags = []
        for feature, stride, count in zip(features, self.strides, self.num_base_anchors):
            height, width = feature.shape[-2:]
            valid = torch.zeros(height, width, dtype=torch.bool, device=device)
            valid[:math.ceil(pad_shape[0] / stride), :math.ceil(pad_shape[1] / stride)] = True
            flags.append(valid.reshape(-1, 1).expand(-1, count).reshape(-1))
        return torch.cat(flags)


def inside_flags(anchors, valid, shape, border=0):
    height, width = shape
    ok = (anchors[:, 0] >= -border) & (anchors[:, 1] >= -border)
    ok = ok & (anchors[:, 2] < width + border) & (anchors[:, 3] < height + border)
    return valid & ok  # raises


def keep_valid(anchors, valid):
    return anchors[valid]


class MaxIoUAssigner:
    def __init__(self, pos=0.5, neg=0.4, gpu_limit=None):
        self.pos, self.neg = pos, neg
        self.gpu_limit = gpu_limit

    def assign(self, anchors, gt_boxes, gt_labels):
        where = anchors.device
        if self.gpu_limit is not None and len(gt_boxes) > self.gpu_limit:
            anchors, gt_boxes = anchors.cpu(), gt_boxes.cpu()
            overlaps = pairwise_iou(gt_boxes, anchors)
            result = self._from_overlaps(overlaps, gt_labels)
            return Assignment(*(each.to(where) for each in result))
        return self._from_overlaps(pairwise_iou(gt_boxes, anchors), gt_labels)

    def _from_overlaps(self, overlaps, gt_labels):
        best, which = overlaps.max(dim=0)
        index = torch.full_like(which, -1)
        index[best < self.neg] = 0
        positive = best >= self.pos
        index[positive] = which[positive] + 1
        labels = torch.full_like(index, -1)
        chosen = positive.nonzero().flatten()
        labels[chosen] = gt_labels[index[chosen] - 1].to(labels.device)
        return Assignment(index, best, labels)


class ATSSLikeAssigner(MaxIoUAssigner):
    """Adaptive thresholds from the statistics of the nearest candidates of each level."""

    def __init__(self, topk=3, **kwargs):
        super().__init__(**kwargs)
        self.topk = topk

    def candidates(self, anchors, gt_boxes, per_level):
        a = (anchors[:, :2] + anchors[:, 2:]) / 2
        g = (gt_boxes[:, :2] + gt_boxes[:, 2:]) / 2
        distance = (a[:, None] - g[None]).pow(2).sum(-1).sqrt()
        picked, start = [], 0
        for count in per_level:
            k = min(self.topk, count)
            _, idx = distance[start:start + count].topk(k, dim=0, largest=False)
            picked.append(idx + start)
            start += count
        return torch.cat(picked)

    def assign_by_level(self, anchors, gt_boxes, per_level):
        overlaps = pairwise_iou(anchors, gt_boxes)
        index = self.candidates(anchors, gt_boxes, per_level)
        picked = overlaps[index, torch.arange(len(gt_boxes))]
        threshold = picked.mean(0) + 0.1 * picked.std(0)
        positive = picked >= threshold[None]
        full = torch.full((len(anchors), len(gt_boxes)), -1.0)
        columns = torch.arange(len(gt_boxes), device=index.device).expand_as(index)
        full[index[positive], columns[positive]] = picked[positive]  # raises
        return full.max(dim=1)


class RandomSampler:
    def __init__(self, num, pos_fraction=0.5, seed=0):
        self.num, self.pos_fraction = num, pos_fraction
        self.rng = np.random.RandomState(seed)

    def _choice(self, gallery, count):
        if len(gallery) <= count:
            return gallery
        perm = torch.randperm(gallery.numel())[:count]
        return gallery[perm]

    def _choice_numpy(self, gallery, count):
        picked = gallery.numpy() if not gallery.is_cuda else gallery.cpu().numpy()
        self.rng.shuffle(picked)
        return torch.from_numpy(picked[:count])

    def sample(self, labels, numpy=False):
        choice = self._choice_numpy if numpy else self._choice
        pos = (labels > 0).nonzero().flatten()
        pos = choice(pos, int(self.num * self.pos_fraction))
        neg = choice((labels == 0).nonzero().flatten(), self.num - len(pos))
        return pos, neg


class HardNegativeSampler(RandomSampler):
    def sample(self, labels, loss=None, numpy=False):
        pos, neg = super().sample(labels, numpy=numpy)
        order = loss[neg].argsort(descending=True)
        return pos, neg[order]  # raises


@lru_cache(maxsize=None)
def location_grid(height, width, device="cpu"):
    ys = torch.linspace(-1, 1, height, device=device)
    xs = torch.linspace(-1, 1, width, device=device)
    return torch.stack(torch.meshgrid(ys, xs, indexing="ij"))


class CoordMaskHead(nn.Module):
    def __init__(self, channels=4, classes=3, explicit=True):
        super().__init__()
        self.conv = nn.Conv2d(channels + 2, 8, 3, padding=1)
        self.predict = nn.Conv2d(8, classes, 1)
        self.explicit = explicit

    def with_coords(self, x):
        size = x.shape[-2:]
        grid = location_grid(*size, device=x.device) if self.explicit else location_grid(*size)
        grid = grid[None].expand(x.shape[0], -1, -1, -1)
        return torch.cat([x, grid], dim=1)  # raises

    def forward(self, x):
        return self.predict(F.relu(self.conv(self.with_coords(x))))

    def select(self, logits, labels):
        rows = torch.arange(logits.size(0))
        return logits[rows, labels]


def paste_masks(masks, boxes, shape, chunk=2, threshold=0.5):
    """Masks (N, h, w) of boxes in images of a shape, some boxes at a time."""
    canvas = torch.zeros(len(masks), *shape, dtype=torch.bool, device=boxes.device)
    for rows in torch.arange(len(masks)).split(chunk):
        part, box = masks[rows], boxes[rows]
        y = torch.arange(shape[0], device=box.device, dtype=torch.float32) + 0.5
        x = torch.arange(shape[1], device=box.device, dtype=torch.float32) + 0.5
        y = (y[None] - box[:, 1:2]) / (box[:, 3:4] - box[:, 1:2]) * 2 - 1
        x = (x[None] - box[:, 0:1]) / (box[:, 2:3] - box[:, 0:1]) * 2 - 1
        grid = torch.stack([x[:, None].expand(-1, shape[0], -1), y[..., None].expand(-1, -1, shape[1])], dim=-1)
        canvas[rows] = F.grid_sample(part[:, None], grid, align_corners=False)[:, 0] >= threshold
    return canvas


class BitMasks:
    def __init__(self, tensor):
        self.tensor = torch.as_tensor(tensor, dtype=torch.bool)

    def to(self, *args, **kwargs):
        return BitMasks(self.tensor.to(*args, **kwargs))

    def __getitem__(self, item):
        return BitMasks(self.tensor[item])  # raises

    def bounding_boxes(self):
        boxes = torch.zeros(len(self.tensor), 4)
        ys, xs = self.tensor.any(2), self.tensor.any(1)
        for i, (y, x) in enumerate(zip(ys, xs)):
            y, x = y.nonzero().flatten(), x.nonzero().flatten()
            if len(y) and len(x):
                boxes[i] = torch.stack([x[0], y[0], x[-1] + 1, y[-1] + 1]).float()
        return boxes

    def centers(self):
        count = self.tensor.flatten(1).sum(1).clamp(min=1)
        ys = torch.arange(self.tensor.shape[1], device=self.tensor.device)
        return (self.tensor * ys[:, None]).flatten(1).sum(1) / count

    @staticmethod
    def from_polygons(polygons, shape):
        yy, xx = np.mgrid[:shape[0], :shape[1]]
        return BitMasks(np.stack([(yy >= y0) & (yy < y1) & (xx >= x0) & (xx < x1) for x0, y0, x1, y1 in polygons]))


class QualityFocalLoss(nn.Module):
    def __init__(self, beta=2.0, class_weight=None):
        super().__init__()
        self.beta = torch.tensor(beta)
        self.class_weight = None if class_weight is None else torch.tensor(class_weight)
        self.register_buffer("momentum", torch.ones(()))

    def forward(self, pred, labels, quality):
        prob = pred.sigmoid()
        loss = F.binary_cross_entropy_with_logits(pred, torch.zeros_like(pred), reduction="none") * prob ** self.beta
        pos = ((labels >= 0) & (labels < pred.size(1))).nonzero().squeeze(1)
        gap = (quality[pos] - prob[pos, labels[pos]]).abs() ** self.beta
        loss[pos, labels[pos]] = gap * F.binary_cross_entropy_with_logits(
            pred[pos, labels[pos]], quality[pos], reduction="none")
        if self.class_weight is not None:
            loss = loss * self.class_weight  # raises
        return loss.sum() / self.momentum


class GHMLoss(nn.Module):
    """Gradient harmonizing: density of the gradient norms with a running count of each bin."""

    def __init__(self, bins=5, momentum=0.0):
        super().__init__()
        self.bins, self.momentum = bins, momentum
        edges = torch.arange(bins + 1).float() / bins
        edges[-1] += 1e-6
        self.register_buffer("edges", edges)
        if momentum > 0:
            self.acc_sum = torch.zeros(bins)

    def forward(self, pred, target):
        g = (pred.sigmoid().detach() - target).abs()
        weights = torch.zeros_like(pred)
        for i in range(self.bins):
            inside = (g >= self.edges[i]) & (g < self.edges[i + 1])
            count = inside.sum()
            if self.momentum > 0:
                self.acc_sum[i] = self.momentum * self.acc_sum[i] + (1 - self.momentum) * count
                weights[inside] = pred.numel() / self.acc_sum[i].clamp(min=1)
            else:
                weights[inside] = pred.numel() / count.clamp(min=1)
        return F.binary_cross_entropy_with_logits(pred, target, weights, reduction="mean")


def dice_loss(pred, target, weight=None, ignore=None):
    onehot = torch.eye(pred.size(1))[target.cpu()].to(pred.device).permute(0, 3, 1, 2)
    prob = pred.softmax(1)
    if ignore is not None:
        keep = torch.tensor([c for c in range(pred.size(1)) if c not in ignore])
        prob, onehot = prob.index_select(1, keep), onehot.index_select(1, keep)  # raises
    dims = (0, 2, 3)
    score = (2 * (prob * onehot).sum(dims) + 1) / (prob.sum(dims) + onehot.sum(dims) + 1)
    if weight is None:
        return 1 - score.mean()
    return ((1 - score) * torch.as_tensor(weight, dtype=score.dtype).to(score)).sum() / sum(weight)


def distribute_levels(boxes, count, canonical=16.0):
    levels = torch.floor(1 + torch.log2(box_area(boxes).sqrt() / canonical + 1e-6))
    return levels.clamp(0, count - 1).long()


class RoIPooler:
    def __init__(self, scales, out=2):
        self.scales, self.out = scales, out

    def __call__(self, features, boxes):
        levels = distribute_levels(boxes, len(features))
        result = torch.zeros(len(boxes), features[0].size(0), self.out, self.out, dtype=features[0].dtype)
        for level, (feature, scale) in enumerate(zip(features, self.scales)):
            inds = (levels == level).nonzero().flatten()
            if inds.numel() == 0:
                continue
            pooled = [self._crop(feature, (boxes[i] * scale).tolist()) for i in inds.tolist()]
            result.index_put_((inds,), torch.stack(pooled))  # raises
        return result

    def _crop(self, feature, box):
        x0, y0, x1, y1 = (int(max(each, 0)) for each in box)
        region = feature[:, y0:max(y1, y0 + 1), x0:max(x1, x0 + 1)]
        return F.adaptive_avg_pool2d(region, self.out)
