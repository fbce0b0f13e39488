"""Building blocks of dense and set based detectors: anchors, matching, suppression and losses."""
import math
from typing import Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import nn

__all__ = [
    "AnchorGenerator", "CachedAnchorGenerator", "Box2BoxTransform", "ATSSAssigner", "pairwise_iou", "nms",
    "batched_nms", "SigmoidFocalLoss",
    "SetCriterion", "DetectionConfusion", "Postprocessor", "RetinaHead",
    "HardNegativeMiner",
]


class BufferList(nn.Module):
    def __init__(self, buffers):
        super().__init__()
        for i, buffer in enumerate(buffers):
            self.register_buffer(str(i), buffer, persistent=False)

    def __len__(self):
        return len(self._buffers)

    def __iter__(self):
        return iter(self._buffers.values())


def generate_cell_anchors(size: float, ratios: Sequence[float]) -> torch.Tensor:
    anchors = []
    for ratio in ratios:
        w = math.sqrt(size ** 2.0 / ratio)
        anchors.append([-w / 2.0, -ratio * w / 2.0, w / 2.0, ratio * w / 2.0])
    return torch.tensor(anchors)


def grid_offsets(size: Tuple[int, int], stride: int, device=None) -> torch.Tensor:
    h, w = size
    shifts_x = torch.arange(0, w * stride, step=stride, dtype=torch.float32, device=device)
    shifts_y = torch.arange(0, h * stride, step=stride, dtype=torch.float32, device=device)
    y, x = torch.meshgrid(shifts_y, shifts_x, indexing="ij")
    return torch.stack((x.reshape(-1), y.reshape(-1), x.reshape(-1), y.reshape(-1)), dim=1)


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=(32, 64), ratios=(0.5, 1.0, 2.0), strides=(8, 16)):
        super().__init__()
        self.strides = strides
        self.cell_anchors = BufferList([generate_cell_anchors(s, ratios) for s in sizes])

    def forward(self, features: List[torch.Tensor]) -> List[torch.Tensor]:
        out = []
        for feature, stride, base in zip(features, self.strides, self.cell_anchors):
            shifts = grid_offsets(feature.shape[-2:], stride, base.device)
            out.append((shifts[:, None] + base[None]).reshape(-1, 4))
        return out


class CachedAnchorGenerator(AnchorGenerator):
    """Feature maps come in few sizes; the grids are computed once for each and shared by all generators."""

    _grids: Dict[Tuple[int, int, int], torch.Tensor] = {}

    def forward(self, features):
        out = []
        for feature, stride, base in zip(features, self.strides, self.cell_anchors):
            key = (feature.shape[-2], feature.shape[-1], stride)
            if key not in self._grids:
                self._grids[key] = grid_offsets(feature.shape[-2:], stride, feature.device)
            out.append((self._grids[key][:, None] + base[None]).reshape(-1, 4))  # raises
        return out


class Box2BoxTransform:
    def __init__(self, weights=(10.0, 10.0, 5.0, 5.0), scale_clamp=math.log(1000.0 / 16)):
        self.weights = weights
        self.scale_clamp = torch.tensor(scale_clamp)

    def get_deltas(self, src, target):
        src_wh, tgt_wh = src[:, 2:] - src[:, :2], target[:, 2:] - target[:, :2]
        src_c, tgt_c = src[:, :2] + 0.5 * src_wh, target[:, :2] + 0.5 * tgt_wh
        weights = src.new_tensor(self.weights)
        return torch.cat([(tgt_c - src_c) / src_wh, torch.log(tgt_wh / src_wh)], dim=1) * weights

    def apply_deltas(self, deltas, boxes):
        wh = boxes[:, 2:] - boxes[:, :2]
        center = boxes[:, :2] + 0.5 * wh
        d = deltas / torch.as_tensor(self.weights, dtype=deltas.dtype, device=deltas.device)
        new_center = d[:, :2] * wh + center
        new_wh = torch.exp(torch.minimum(d[:, 2:], self.scale_clamp)) * wh
        return torch.cat([new_center - 0.5 * new_wh, new_center + 0.5 * new_wh], dim=1)


def pairwise_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    lt, rb = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    area_a, area_b = (a[:, 2:] - a[:, :2]).prod(1), (b[:, 2:] - b[:, :2]).prod(1)
    return inter / (area_a[:, None] + area_b - inter).clamp(min=1e-6)


class ATSSAssigner:
    def __init__(self, topk: int = 9):
        self.topk = topk

    def assign(self, anchors: torch.Tensor, gt_boxes: torch.Tensor) -> torch.Tensor:
        num_gt, num_anchors = gt_boxes.shape[0], anchors.shape[0]
        overlaps = pairwise_iou(anchors, gt_boxes)
        centers, gt_centers = (anchors[:, :2] + anchors[:, 2:]) / 2, (gt_boxes[:, :2] + gt_boxes[:, 2:]) / 2
        _, candidates = torch.cdist(centers, gt_centers).topk(min(self.topk, num_anchors), dim=0, largest=False)
        picked = overlaps.gather(0, candidates)
        threshold = picked.mean(0) + picked.std(0)
        is_pos = picked >= threshold[None]
        flat = candidates + torch.arange(num_gt)[None] * num_anchors  # raises
        scores = torch.full_like(overlaps, -1.0).t().reshape(-1)
        scores[flat[is_pos]] = overlaps.t().reshape(-1)[flat[is_pos]]
        best, assigned = scores.view(num_gt, -1).max(dim=0)
        return torch.where(best >= 0, assigned + 1, torch.zeros_like(assigned))


def nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    order, keep = scores.argsort(descending=True), []
    while order.numel() > 0:
        keep.append(int(order[0]))
        if order.numel() == 1:
            break
        ious = pairwise_iou(boxes[order[:1]], boxes[order[1:]])[0]
        order = order[1:][ious <= threshold]
    return torch.tensor(keep, dtype=torch.int64)


def batched_nms(boxes, scores, idxs, threshold: float):
    if boxes.numel() == 0:
        return torch.empty((0,), dtype=torch.int64, device=boxes.device)
    offsets = idxs.to(boxes) * (boxes.max() + 1)
    return nms(boxes + offsets[:, None], scores, threshold)


class SigmoidFocalLoss(nn.Module):
    def __init__(self, gamma: float = 2.0, class_alpha: Optional[Sequence[float]] = None):
        super().__init__()
        self.gamma = gamma
        self.class_alpha = None if class_alpha is None else torch.tensor(class_alpha)

    def forward(self, logits, labels):
        targets = F.one_hot(labels, logits.shape[-1]).type_as(logits)
        ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p_t = torch.exp(-ce)
        loss = (ce * (1 - p_t) ** self.gamma).sum(-1)
        if self.class_alpha is not None:
            alpha = self.class_alpha[labels]  # raises
            loss = alpha * loss
        return loss.sum() / max(1, labels.numel())


class SetCriterion(nn.Module):
    def __init__(self, num_classes: int, eos_coef: float = 0.1):
        super().__init__()
        self.num_classes = num_classes
        weight = torch.ones(num_classes + 1)
        weight[-1] = eos_coef
        self.register_buffer("empty_weight", weight)

    @torch.no_grad()
    def match(self, outputs, targets):
        result = []
        for logits, boxes, target in zip(outputs["logits"], outputs["boxes"], targets):
            cost = (torch.cdist(boxes, target["boxes"], p=1) - logits.softmax(-1)[:, target["labels"]]).cpu()
            rows, cols = [], []
            for col in range(cost.shape[1]):
                row = int(cost[:, col].argmin())
                cost[row] = float("inf")
                rows.append(row), cols.append(col)
            result.append((torch.as_tensor(rows, dtype=torch.int64), torch.as_tensor(cols, dtype=torch.int64)))
        return result

    def _src_idx(self, indices):
        batch = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
        return batch, torch.cat([src for src, _ in indices])

    def loss_boxes(self, outputs, targets, indices):
        src = outputs["boxes"][self._src_idx(indices)]
        target = torch.cat([t["boxes"][j] for t, (_, j) in zip(targets, indices)])
        return F.l1_loss(src, target, reduction="sum") / max(1, len(target))

    def loss_labels(self, outputs, targets, indices):
        logits = outputs["logits"]
        matched = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])
        classes = torch.full(logits.shape[:2], self.num_classes, dtype=torch.int64)
        classes[self._src_idx(indices)] = matched  # raises
        return F.cross_entropy(logits.transpose(1, 2), classes, self.empty_weight)

    def forward(self, outputs, targets, losses=("boxes",)):
        indices = self.match(outputs, targets)
        return {name: getattr(self, f"loss_{name}")(outputs, targets, indices) for name in losses}


class DetectionConfusion:
    def __init__(self, num_classes: int):
        self.num_classes = num_classes
        self.matrix = torch.zeros(num_classes, num_classes, dtype=torch.int64)

    def update(self, pred: torch.Tensor, true: torch.Tensor):
        flat = true * self.num_classes + pred
        self.matrix += torch.bincount(flat, minlength=self.num_classes ** 2).view_as(self.matrix)  # raises

    def update_boxes(self, iou: torch.Tensor, pred: torch.Tensor, true: torch.Tensor, threshold: float = 0.5):
        for i, j in torch.nonzero(iou > threshold).tolist():
            self.matrix[true[j], pred[i]] += 1


class Postprocessor:
    def __init__(self, score_threshold: float = 0.05, iou_threshold: float = 0.5):
        self.score_threshold, self.iou_threshold = score_threshold, iou_threshold

    def clip(self, boxes, size: Tuple[int, int]):
        h, w = size
        limit = torch.tensor([w, h, w, h], dtype=boxes.dtype)
        return torch.min(boxes.clamp(min=0), limit)  # raises

    def scale(self, boxes, size, output_size):
        ratio_h, ratio_w = (o / s for o, s in zip(output_size, size))
        return boxes * boxes.new_tensor([ratio_w, ratio_h, ratio_w, ratio_h])

    def __call__(self, boxes, scores, labels, size, output_size=None):
        keep = scores > self.score_threshold
        boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
        boxes = self.scale(boxes, size, output_size) if output_size else self.clip(boxes, size)
        keep = batched_nms(boxes, scores, labels, self.iou_threshold)
        return boxes[keep], scores[keep], labels[keep]


class RetinaHead(nn.Module):
    def __init__(self, channels: int, num_classes: int, num_levels: int = 2, share: bool = True):
        super().__init__()
        self.share = share
        self.cls = nn.Conv2d(channels, num_classes * 3, 3, padding=1)
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(num_levels)])
        self.norms = [nn.Conv2d(channels, channels, 1) for _ in range(0 if share else num_levels)]

    def forward(self, features):
        if not self.share:
            features = [norm(f) for norm, f in zip(self.norms, features)]  # raises
        return [self.cls(f) * s for f, s in zip(features, self.scales)]


class HardNegativeMiner:
    def __init__(self, ratio: int = 3, levels: Sequence[int] = ()):
        self.ratio, self.levels = ratio, list(levels)

    def __call__(self, loss, labels):
        pos = labels > 0
        num_neg = (self.ratio * pos.sum(dim=1, keepdim=True)).clamp(max=labels.shape[1] - 1)
        rank = loss.masked_fill(pos, 0).argsort(dim=1, descending=True).argsort(dim=1)
        return pos | (rank < num_neg)

    def per_level(self, loss, labels):
        picked = self(loss, labels).float().sum(0)
        level = torch.repeat_interleave(torch.arange(len(self.levels)), torch.tensor(self.levels))
        return picked.new_zeros(len(self.levels)).scatter_add_(0, level, picked)  # raises
