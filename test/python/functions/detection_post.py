"""Dense detector: anchors, matching, losses, set criterion and post-processing with plain PyTorch NMS."""
import math
from collections import defaultdict
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def _box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)


def _box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    return inter / (_box_area(a)[:, None] + _box_area(b)[None] - inter + 1e-6)


def _nms(boxes, scores, threshold):
    order = scores.argsort(descending=True).cpu()
    overlaps = (_box_iou(boxes, boxes) > threshold).cpu()
    keep, dropped = [], torch.zeros(len(boxes), dtype=torch.bool)
    for index in order.tolist():
        if not dropped[index]:
            keep.append(index)
            dropped |= overlaps[index]
    return torch.tensor(keep, dtype=torch.long)


def _batched_nms(boxes, scores, classes, threshold):
    offsets = classes.to(boxes) * (boxes.max() + 1)
    return _nms(boxes + offsets[:, None], scores, threshold)


class Instances:
    """Fields of equal length that belong to one image."""

    def __init__(self, image_size: Tuple[int, int], **fields: Any):
        self.image_size = image_size
        self._fields: Dict[str, Any] = dict(fields)

    def __getattr__(self, name):
        if name == "_fields" or name not in self._fields:
            raise AttributeError(name)
        return self._fields[name]

    def __getitem__(self, item):
        return Instances(self.image_size, **{k: v[item] for k, v in self._fields.items()})

    def __len__(self):
        return len(next(iter(self._fields.values())))

    def to(self, *args, **kwargs):
        return Instances(self.image_size, **{k: v.to(*args, **kwargs) if hasattr(v, "to") else v
                                             for k, v in self._fields.items()})


class BufferList(nn.Module):
    def __init__(self, buffers):
        super().__init__()
        for i, buffer in enumerate(buffers):
            self.register_buffer(str(i), buffer, persistent=False)

    def __iter__(self):
        return iter(self._buffers.values())


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=(8.0, 16.0), ratios=(0.5, 1.0), strides=(8, 16), buffered=True):
        super().__init__()
        self.strides = strides
        cells = [self._cell(size, ratios) for size in sizes]
        self.cell_anchors = BufferList(cells) if buffered else cells

    @staticmethod
    def _cell(size, ratios):
        rows = []
        for ratio in ratios:
            w = math.sqrt(size ** 2 / ratio)
            rows.append([-w / 2, -ratio * w / 2, w / 2, ratio * w / 2])
        return torch.tensor(rows)

    def forward(self, features):
        anchors = []
        for feature, stride, cell in zip(features, self.strides, self.cell_anchors):
            h, w = feature.shape[-2:]
            ys = torch.arange(h, device=feature.device) * stride
            xs = torch.arange(w, device=feature.device) * stride
            y, x = (g.reshape(-1).float() for g in torch.meshgrid(ys, xs, indexing="ij"))
            shifts = torch.stack((x, y, x, y), dim=1)
            anchors.append((shifts[:, None] + cell[None]).reshape(-1, 4))  # raises
        return torch.cat(anchors)


class Matcher:
    def __init__(self, low=0.2, high=0.4):
        self.low, self.high = low, high

    def __call__(self, iou):
        values, matches = iou.max(dim=0)
        labels = torch.full_like(matches, -1)
        labels[values < self.low] = 0
        labels[values >= self.high] = 1
        labels[iou.argmax(dim=1).cpu()] = 1
        return matches, labels


class GreedyMatcher:
    """One prediction per target, cheapest pairs first."""

    @torch.no_grad()
    def __call__(self, logits, boxes, targets):
        cost = torch.cdist(boxes, targets["boxes"], p=1) - logits.softmax(-1)[:, targets["labels"]]
        table = cost.cpu().numpy()
        rows, columns = [], []
        for flat in np.argsort(table, axis=None):
            i, j = np.unravel_index(flat, table.shape)
            if i not in rows and j not in columns:
                rows.append(int(i))
                columns.append(int(j))
        return torch.as_tensor(rows, dtype=torch.int64), torch.as_tensor(columns, dtype=torch.int64)


class SetCriterion(nn.Module):
    def __init__(self, classes, eos=0.1):
        super().__init__()
        self.classes, self.matcher = classes, GreedyMatcher()
        weight = torch.ones(classes + 1)
        weight[-1] = eos
        self.register_buffer("empty_weight", weight)

    def forward(self, outputs, targets):
        losses = defaultdict(float)
        for logits, boxes, target in zip(outputs["logits"], outputs["boxes"], targets):
            src, dst = self.matcher(logits, boxes, target)
            wanted = torch.full((len(logits),), self.classes, dtype=torch.int64, device=logits.device)
            wanted[src] = target["labels"][dst]  # raises
            losses["class"] += F.cross_entropy(logits, wanted, self.empty_weight)
            losses["box"] += F.l1_loss(boxes[src], target["boxes"][dst])
        return dict(losses)


class RetinaHead(nn.Module):
    def __init__(self, channels=8, classes=3, anchors=2, buffered=True):
        super().__init__()
        self.classes = classes
        self.stem = nn.Conv2d(3, channels, 3, stride=8, padding=1)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.cls = nn.Conv2d(channels, anchors * classes, 1)
        self.reg = nn.Conv2d(channels, anchors * 4, 1)
        self.anchors = AnchorGenerator(buffered=buffered)
        self.matcher = Matcher()

    @staticmethod
    def _flat(x, k):
        n, _, h, w = x.shape
        return x.view(n, -1, k, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, k)

    def forward(self, images):
        p3 = self.stem(images).relu()
        features = [p3, self.down(p3)]
        logits = torch.cat([self._flat(self.cls(f), self.classes) for f in features], dim=1)
        deltas = torch.cat([self._flat(self.reg(f), 4) for f in features], dim=1)
        return logits, deltas, self.anchors(features)

    def loss(self, images, instances: List[Instances]):
        logits, deltas, anchors = self(images)
        total = logits.new_zeros(())
        for n, instance in enumerate(instances):
            matches, labels = self.matcher(_box_iou(instance.boxes, anchors))
            positive = labels == 1
            target = torch.zeros_like(logits[n])
            target[positive, instance.classes[matches[positive]]] = 1.0
            valid = labels >= 0
            total = total + F.binary_cross_entropy_with_logits(logits[n][valid], target[valid])
            total = total + deltas[n][positive].abs().mean()
        return total / len(instances)


class PostProcessor:
    def __init__(self, topk=20, score=0.0, nms=0.5, clip="scalar"):
        self.topk, self.score, self.nms, self.clip = topk, score, nms, clip
        self.weights = torch.tensor([0.1, 0.1, 0.2, 0.2])

    def decode(self, deltas, anchors):
        size = (anchors[:, 2:] - anchors[:, :2]).repeat(1, 2)
        return anchors + deltas * size * self.weights.to(deltas.device)

    def clipped(self, boxes, image_size):
        h, w = image_size
        if self.clip == "scalar":
            return torch.stack([boxes[:, 0::2].clamp(0, w), boxes[:, 1::2].clamp(0, h)], dim=-1).flatten(1)
        limit = torch.as_tensor([w, h, w, h], dtype=boxes.dtype)
        return torch.minimum(boxes.clamp(min=0), limit)  # raises

    def __call__(self, logits, deltas, anchors, image_size):
        scores, flat = logits.sigmoid().flatten().topk(min(self.topk, logits.numel()))
        classes, rows = flat % logits.shape[1], torch.div(flat, logits.shape[1], rounding_mode="floor")
        boxes = self.clipped(self.decode(deltas[rows], anchors[rows]), image_size)
        found = Instances(image_size, boxes=boxes, scores=scores, classes=classes)[scores > self.score]
        return found[_batched_nms(found.boxes, found.scores, found.classes, self.nms)]


class SoftVoting(PostProcessor):
    """Averages the boxes of each kept detection's cluster."""

    def __call__(self, logits, deltas, anchors, image_size):
        found = super().__call__(logits, deltas, anchors, image_size)
        keep = _nms(found.boxes, found.scores, 0.9)
        centres = torch.index_select(found.boxes, 0, keep)  # raises
        weights = _box_iou(centres, found.boxes) * found.scores
        return Instances(image_size, boxes=weights @ found.boxes / weights.sum(1, keepdim=True), scores=found.scores[keep])


class Evaluator:
    def __init__(self, thresholds=(0.25, 0.5, 0.75)):
        self.edges = torch.tensor(thresholds)
        self.rows: List[np.ndarray] = []

    def process(self, found: Instances):
        level = torch.bucketize(found.scores.cpu(), self.edges)
        self.rows.append(np.stack([found.scores, level], axis=1))  # raises

    def summarize(self):
        return np.concatenate(self.rows).mean(axis=0)


def _images(device="cuda"):
    return torch.rand(2, 3, 32, 32, device=device)


def _ground_truth():
    boxes = torch.tensor([[2.0, 2.0, 14.0, 14.0], [10.0, 12.0, 28.0, 30.0]])
    return Instances((32, 32), boxes=boxes, classes=torch.tensor([0, 2]))


def _detect(head, post):
    with torch.no_grad():
        logits, deltas, anchors = head(_images(next(head.parameters()).device))
    return [post(l, d, anchors, (32, 32)) for l, d in zip(logits, deltas)]


def case_dense_loss():
    head = RetinaHead().cuda()
    head.loss(_images(), [_ground_truth().to("cuda") for _ in range(2)]).backward()


def case_dense_loss_plain_cells():
    head = RetinaHead(buffered=False).cuda()
    head.loss(_images(), [_ground_truth().to("cuda") for _ in range(2)]).backward()


def case_detect_and_count():
    per_class = torch.zeros(3, dtype=torch.long)
    for found in _detect(RetinaHead().cuda(), PostProcessor()):
        per_class += torch.bincount(found.classes, minlength=3).cpu()


def case_clip_by_tensor():
    _detect(RetinaHead().cuda(), PostProcessor(clip="tensor"))


def case_soft_voting():
    _detect(RetinaHead().cuda(), SoftVoting())


def case_set_criterion():
    outputs = {"logits": torch.randn(2, 6, 4, device="cuda", requires_grad=True), "boxes": torch.rand(2, 6, 4, device="cuda")}
    targets = [{"labels": torch.tensor([0, 2]).cuda(), "boxes": torch.rand(2, 4).cuda()} for _ in range(2)]
    losses = SetCriterion(3).to("cuda")(outputs, targets)
    sum(losses.values()).backward()


def case_set_criterion_collated():
    outputs = {"logits": torch.randn(1, 6, 4).cuda(), "boxes": torch.rand(1, 6, 4).cuda()}
    targets = [{"labels": torch.tensor([0, 2]), "boxes": torch.rand(2, 4).cuda()}]
    SetCriterion(3).to("cuda")(outputs, targets)


def case_evaluate_dataset():
    evaluator = Evaluator()
    for found in _detect(RetinaHead().cuda(), PostProcessor()):
        evaluator.process(found)
    evaluator.summarize()


def case_merge_test_time_augmentation():
    head, post = RetinaHead().cuda(), PostProcessor()
    first, second = _detect(head, post)[0], _detect(head, post)[1].to("cpu")
    boxes, scores = torch.cat([first.boxes.cpu(), second.boxes]), torch.cat([first.scores, second.scores])  # raises
    _nms(boxes, scores, 0.5)


def case_roi_batch_index():
    boxes = [found.boxes for found in _detect(RetinaHead().cuda(), PostProcessor())]
    rois = torch.cat([torch.cat([b.new_full((len(b), 1), i), b], dim=1) for i, b in enumerate(boxes)])
    area = _box_area(rois[:, 1:])
    level = torch.floor(2 + torch.log2(area.sqrt() / torch.tensor(16.0) + 1e-8)).clamp(0, 3).long()
    for value in level.unique().cpu():
        rois[level == value]
