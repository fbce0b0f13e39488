"""Boxes, anchors, assigners, coders, losses, heads and the metrics of a detection toolkit."""
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


# ---------------------------------------------------------------------------------------------------------------- boxes
def box_area(boxes: Tensor) -> Tensor:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    lt = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    rb = torch.min(boxes1[:, None, 2:], boxes2[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    return inter / (box_area(boxes1)[:, None] + box_area(boxes2) - inter).clamp(min=1e-7)


def clip_boxes_to_image(boxes: Tensor, size: Tuple[int, int]) -> Tensor:
    h, w = size
    limit = torch.tensor([w, h, w, h], dtype=boxes.dtype)
    return torch.minimum(boxes.clamp(min=0), limit)  # raises


def scale_boxes(boxes: Tensor, factors: Union[float, Sequence[float]]) -> Tensor:
    if isinstance(factors, float):
        factors = (factors, factors)
    return boxes * boxes.new_tensor(factors).repeat(2)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(descending=True)
    iou = box_iou(boxes[order], boxes[order])
    keep = torch.ones(len(order), dtype=torch.bool, device=boxes.device)
    for i in range(len(order)):
        if keep[i]:
            keep[i + 1:] &= iou[i, i + 1:] <= threshold
    return order[keep]


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, threshold: float, class_agnostic: bool = False) -> Tensor:
    if not class_agnostic:
        offsets = idxs.to(boxes) * (boxes.max() + torch.tensor(1).to(boxes))
        boxes = boxes + offsets[:, None]
    return nms(boxes, scores, threshold)


def matrix_nms(masks: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
    n = len(labels)
    flat = masks.reshape(n, -1).float()
    inter = flat @ flat.t()
    areas = flat.sum(1).expand(n, n)
    iou = (inter / (areas + areas.t() - inter)).triu(diagonal=1)
    same = (labels.expand(n, n) == labels.expand(n, n).t()).triu(diagonal=1)
    decay = iou * same
    compensate = decay.max(0)[0].expand(n, n).t()
    eye = torch.eye(n, dtype=torch.bool)
    coeff = ((1 - decay) / (1 - compensate).clamp(min=1e-6)).masked_fill(eye, 1.0)  # raises
    return scores * coeff.min(0)[0]


def multiclass_nms(multi_bboxes: Tensor, multi_scores: Tensor, score_thr: float, iou_thr: float = 0.5, max_num: int = -1):
    num_classes = multi_scores.size(1) - 1
    bboxes = multi_bboxes[:, None].expand(multi_scores.size(0), num_classes, 4).reshape(-1, 4)
    scores = multi_scores[:, :-1].reshape(-1)
    labels = torch.arange(num_classes, dtype=torch.long)
    labels = labels.view(1, -1).expand(multi_scores.size(0), num_classes).reshape(-1)
    inds = (scores > score_thr).nonzero(as_tuple=False).squeeze(1)
    bboxes, scores, labels = bboxes[inds], scores[inds], labels[inds]  # raises
    keep = batched_nms(bboxes, scores, labels, iou_thr)
    keep = keep[:max_num] if max_num > 0 else keep
    return torch.cat([bboxes[keep], scores[keep, None]], -1), labels[keep]


def bbox2result(bboxes: Tensor, labels: Tensor, num_classes: int) -> List[np.ndarray]:
    if bboxes.shape[0] == 0:
        return [np.zeros((0, 5), dtype=np.float32) for _ in range(num_classes)]
    if isinstance(bboxes, torch.Tensor):
        bboxes = bboxes.detach().cpu().numpy()
        labels = labels.detach().cpu().numpy()
    return [bboxes[labels == i, :] for i in range(num_classes)]


# ---------------------------------------------------------------------------------------------------------------- priors
class AnchorGenerator:
    def __init__(self, strides: Sequence[int], scales: Sequence[float] = (1.0,), ratios: Sequence[float] = (0.5, 1.0)):
        self.strides, self.scales, self.ratios = strides, torch.Tensor(scales), torch.Tensor(ratios)
        self.base_anchors = [self.gen_single_level_base_anchors(s) for s in strides]

    def gen_single_level_base_anchors(self, base_size: int) -> Tensor:
        h_ratios = torch.sqrt(self.ratios)
        ws = (base_size * (1 / h_ratios)[:, None] * self.scales[None, :]).view(-1)
        hs = (base_size * h_ratios[:, None] * self.scales[None, :]).view(-1)
        return torch.stack([-0.5 * ws, -0.5 * hs, 0.5 * ws, 0.5 * hs], dim=-1)

    def _shifts(self, featmap_size: Tuple[int, int], stride: int, device) -> Tensor:
        h, w = featmap_size
        y, x = torch.meshgrid(torch.arange(h, device=device) * stride, torch.arange(w, device=device) * stride, indexing="ij")
        return torch.stack([x, y, x, y], dim=-1).view(-1, 4)

    def grid_priors(self, featmap_sizes: List[Tuple[int, int]], device="cuda") -> List[Tensor]:
        out = []
        for i, size in enumerate(featmap_sizes):
            base = self.base_anchors[i].to(device)
            out.append((base[None] + self._shifts(size, self.strides[i], device)[:, None]).view(-1, 4))
        return out

    def sparse_priors(self, prior_idxs: Tensor, featmap_size: Tuple[int, int], level: int = 0) -> Tensor:
        _, w = featmap_size
        num_base = len(self.base_anchors[level])
        base_id = prior_idxs % num_base
        cell = torch.div(prior_idxs, num_base, rounding_mode="floor")
        x, y = cell % w * self.strides[level], torch.div(cell, w, rounding_mode="floor") * self.strides[level]
        return torch.stack([x, y, x, y], 1) + self.base_anchors[level][base_id]  # raises

    def valid_flags(self, featmap_size: Tuple[int, int], valid_size: Tuple[int, int], device="cuda") -> Tensor:
        valid_x = torch.zeros(featmap_size[1], dtype=torch.bool, device=device)
        valid_y = torch.zeros(featmap_size[0], dtype=torch.bool, device=device)
        valid_x[:valid_size[1]], valid_y[:valid_size[0]] = 1, 1
        return (valid_y[:, None] & valid_x[None, :]).flatten()


class MlvlPointGenerator:
    """Points of each level, remembered for the sizes met."""

    def __init__(self, strides: Sequence[int], offset: float = 0.5):
        self.strides, self.offset = strides, offset
        self._cache: Dict[tuple, Tensor] = {}

    def single_level(self, size: Tuple[int, int], level: int) -> Tensor:
        key = (size, level)
        if key not in self._cache:
            ys, xs = np.mgrid[:size[0], :size[1]]
            points = np.stack([xs.ravel(), ys.ravel()], -1).astype(np.float32)
            self._cache[key] = torch.from_numpy((points + self.offset) * self.strides[level])
        return self._cache[key]

    def points_of(self, feats: List[Tensor]) -> List[Tensor]:
        return [self.single_level(tuple(f.shape[-2:]), i).to(f.device) for i, f in enumerate(feats)]

    def distances(self, feats: List[Tensor], centers: Tensor) -> Tensor:
        points = torch.cat([self.single_level(tuple(f.shape[-2:]), i) for i, f in enumerate(feats)])
        return torch.cdist(points, centers)  # raises


# ------------------------------------------------------------------------------------------------- coders and assigners
class DeltaXYWHBBoxCoder:
    def __init__(self, means=(0.0, 0.0, 0.0, 0.0), stds=(0.1, 0.1, 0.2, 0.2)):
        self.means, self.stds = means, stds

    def encode(self, bboxes: Tensor, gt: Tensor) -> Tensor:
        pxy, pwh = (bboxes[:, :2] + bboxes[:, 2:]) / 2, (bboxes[:, 2:] - bboxes[:, :2]).clamp(min=1e-3)
        gxy, gwh = (gt[:, :2] + gt[:, 2:]) / 2, (gt[:, 2:] - gt[:, :2]).clamp(min=1e-3)
        deltas = torch.cat([(gxy - pxy) / pwh, torch.log(gwh / pwh)], dim=-1)
        return deltas.sub_(deltas.new_tensor(self.means)).div_(deltas.new_tensor(self.stds))

    def decode(self, bboxes: Tensor, deltas: Tensor, max_shape: Optional[Tuple[int, int]] = None) -> Tensor:
        means, stds = torch.tensor(self.means).to(deltas), torch.tensor(self.stds)
        deltas = deltas * stds.type_as(means) + means
        pxy, pwh = (bboxes[:, :2] + bboxes[:, 2:]) / 2, bboxes[:, 2:] - bboxes[:, :2]
        xy, wh = pxy + pwh * deltas[:, :2], pwh * deltas[:, 2:].clamp(max=4.0).exp()
        out = torch.cat([xy - wh / 2, xy + wh / 2], dim=-1)
        if max_shape is not None:
            out[:, 0::2].clamp_(min=0, max=max_shape[1])
            out[:, 1::2].clamp_(min=0, max=max_shape[0])
        return out


class MaxIoUAssigner:
    def __init__(self, pos_iou_thr: float = 0.5, neg_iou_thr: float = 0.4, gpu_assign_thr: int = -1):
        self.pos_iou_thr, self.neg_iou_thr, self.gpu_assign_thr = pos_iou_thr, neg_iou_thr, gpu_assign_thr

    def assign(self, bboxes: Tensor, gt_bboxes: Tensor, gt_labels: Optional[Tensor] = None):
        assign_on_cpu = 0 < self.gpu_assign_thr < gt_bboxes.shape[0]
        if assign_on_cpu:
            device = bboxes.device
            bboxes, gt_bboxes = bboxes.cpu(), gt_bboxes.cpu()
            gt_labels = gt_labels.cpu() if gt_labels is not None else None
        gt_inds, labels = self.assign_wrt_overlaps(box_iou(gt_bboxes, bboxes), gt_labels)
        if assign_on_cpu:
            gt_inds = gt_inds.to(device)
            labels = labels.to(device) if labels is not None else None
        return gt_inds, labels

    def assign_wrt_overlaps(self, overlaps: Tensor, gt_labels: Optional[Tensor] = None):
        assigned = overlaps.new_full((overlaps.size(1),), -1, dtype=torch.long)
        max_overlaps, argmax = overlaps.max(dim=0)
        assigned[max_overlaps < self.neg_iou_thr] = 0
        pos = max_overlaps >= self.pos_iou_thr
        assigned[pos] = argmax[pos] + 1
        if gt_labels is None:
            return assigned, None
        labels = assigned.new_full((overlaps.size(1),), -1)
        labels[pos] = gt_labels[argmax[pos]]
        return assigned, labels


class ATSSAssigner:
    def __init__(self, topk: int = 2):
        self.topk = topk

    def assign(self, bboxes: Tensor, num_level_bboxes: List[int], gt_bboxes: Tensor) -> Tensor:
        overlaps = box_iou(bboxes, gt_bboxes)
        centers = (bboxes[:, :2] + bboxes[:, 2:]) / 2
        distances = torch.cdist(centers, (gt_bboxes[:, :2] + gt_bboxes[:, 2:]) / 2)
        candidates, start = [], 0
        for n in num_level_bboxes:
            k = min(self.topk, n)
            candidates.append(distances[start:start + n].topk(k, dim=0, largest=False)[1] + start)
            start += n
        candidate_idxs = torch.cat(candidates)
        columns = torch.arange(gt_bboxes.size(0))
        candidate_overlaps = overlaps[candidate_idxs, columns]
        thr = candidate_overlaps.mean(0) + candidate_overlaps.std(0)
        is_pos = candidate_overlaps >= thr[None, :]
        assigned = torch.zeros(len(bboxes), dtype=torch.long, device=bboxes.device)
        pos_rows, pos_cols = is_pos.nonzero(as_tuple=True)
        assigned[candidate_idxs[pos_rows, pos_cols]] = columns[pos_cols] + 1  # raises
        return assigned


class RandomSampler:
    def __init__(self, num: int, pos_fraction: float = 0.5):
        self.num, self.pos_fraction = num, pos_fraction

    def random_choice(self, gallery: Union[Tensor, list, np.ndarray], num: int):
        is_tensor = isinstance(gallery, torch.Tensor)
        if not is_tensor:
            device = torch.cuda.current_device() if torch.cuda.is_available() else "cpu"
            gallery = torch.tensor(gallery, dtype=torch.long, device=device)
        perm = torch.randperm(gallery.numel())[:num].to(device=gallery.device)
        rand_inds = gallery[perm]
        return rand_inds if is_tensor else rand_inds.cpu().numpy()

    def sample(self, gt_inds: Tensor) -> Tuple[Tensor, Tensor]:
        pos, neg = (gt_inds > 0).nonzero().squeeze(1), (gt_inds == 0).nonzero().squeeze(1)
        n = int(self.num * self.pos_fraction)
        pos = self.random_choice(pos, n) if len(pos) > n else pos
        return pos, self.random_choice(neg, self.num - len(pos)) if len(neg) > self.num - len(pos) else neg


class HungarianMatcher(nn.Module):
    def __init__(self, cost_class: float = 1.0, cost_bbox: float = 1.0):
        super().__init__()
        self.cost_class, self.cost_bbox = cost_class, cost_bbox

    @torch.no_grad()
    def forward(self, outputs: Dict[str, Tensor], targets: List[Dict[str, Tensor]]) -> List[Tuple[Tensor, Tensor]]:
        bs, n = outputs["pred_logits"].shape[:2]
        prob = outputs["pred_logits"].flatten(0, 1).softmax(-1)
        ids, boxes = torch.cat([v["labels"] for v in targets]), torch.cat([v["boxes"] for v in targets])
        C = self.cost_bbox * torch.cdist(outputs["pred_boxes"].flatten(0, 1), boxes, p=1) - self.cost_class * prob[:, ids]
        C = C.view(bs, n, -1).cpu()
        indices = []
        for i, c in enumerate(C.split([len(v["boxes"]) for v in targets], -1)):
            cols = torch.arange(c[i].size(1))
            indices.append((c[i].argmin(0), cols))
        return indices


class SetCriterion(nn.Module):
    def __init__(self, num_classes: int, matcher: nn.Module, eos_coef: float = 0.1):
        super().__init__()
        self.num_classes, self.matcher = num_classes, matcher
        empty_weight = torch.ones(num_classes + 1)
        empty_weight[-1] = eos_coef
        self.empty_weight = empty_weight

    @staticmethod
    def _permutation(indices):
        batch_idx = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
        return batch_idx, torch.cat([src for src, _ in indices])

    def loss_labels(self, outputs, targets, indices):
        logits = outputs["pred_logits"]
        idx = self._permutation(indices)
        classes = torch.full(logits.shape[:2], self.num_classes, dtype=torch.int64, device=logits.device)
        classes[idx] = torch.cat([t["labels"][J] for t, (_, J) in zip(targets, indices)])
        return F.cross_entropy(logits.transpose(1, 2), classes, self.empty_weight)  # raises

    def loss_boxes(self, outputs, targets, indices):
        src = outputs["pred_boxes"][self._permutation(indices)]
        target = torch.cat([t["boxes"][i] for t, (_, i) in zip(targets, indices)], dim=0)
        num_boxes = torch.as_tensor([len(target)], dtype=torch.float, device=src.device)
        return F.l1_loss(src, target, reduction="none").sum() / num_boxes.clamp(min=1)

    def forward(self, outputs, targets, losses=("labels", "boxes")):
        indices = self.matcher(outputs, targets)
        return {name: getattr(self, f"loss_{name}")(outputs, targets, indices) for name in losses}


def gen_gaussian_target(heatmap: Tensor, center: Tuple[int, int], radius: int) -> Tensor:
    """Draw a gaussian of ``radius`` around ``center`` into the heatmap, where it is larger."""
    span = torch.arange(-radius, radius + 1, dtype=heatmap.dtype, device="cuda")
    gaussian = torch.exp(-(span[None, :] ** 2 + span[:, None] ** 2) / (2 * (radius / 3 + 0.5) ** 2))
    x, y = center
    region = heatmap[y - radius:y + radius + 1, x - radius:x + radius + 1]
    torch.max(region, gaussian[:region.size(0), :region.size(1)], out=region)  # raises
    return heatmap


# ---------------------------------------------------------------------------------------------------------------- losses
class GHMC(nn.Module):
    """Gradient harmonizing: bins of the gradient's length, with an average of their counts."""

    def __init__(self, bins: int = 4, momentum: float = 0.5):
        super().__init__()
        self.bins, self.momentum = bins, momentum
        self.register_buffer("edges", torch.arange(bins + 1).float() / bins)
        self.edges[-1] += 1e-6
        self.acc_sum = torch.zeros(bins)

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        g = (pred.sigmoid().detach() - target).abs()
        counts = torch.stack([((g >= lo) & (g < hi)).sum() for lo, hi in zip(self.edges[:-1], self.edges[1:])]).float()
        self.acc_sum = self.momentum * self.acc_sum + (1 - self.momentum) * counts  # raises
        weights = target.numel() / self.acc_sum.clamp(min=1)[torch.bucketize(g, self.edges[1:-1])]
        return F.binary_cross_entropy_with_logits(pred, target, weights)


class SeesawLoss(nn.Module):
    def __init__(self, num_classes: int, p: float = 0.8):
        super().__init__()
        self.num_classes, self.p = num_classes, p
        self.register_buffer("cum_samples", torch.zeros(num_classes))

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        for u in labels.unique():
            self.cum_samples[u] += (labels == u).sum()
        ratio = self.cum_samples[None, :].clamp(min=1) / self.cum_samples[:, None].clamp(min=1)
        seesaw = torch.where(ratio < 1, ratio.pow(self.p), torch.ones(self.num_classes, self.num_classes))  # raises
        return F.cross_entropy(scores + seesaw[labels].log(), labels)


# --------------------------------------------------------------------------------------------------------------- metrics
class MeanAveragePrecision:
    """Accumulates on the host; takes predictions from anywhere."""

    def __init__(self, iou: float = 0.5):
        self.iou = iou
        self.reset()

    def reset(self) -> None:
        self.scores: List[Tensor] = []
        self.matches: List[Tensor] = []
        self.num_gt = torch.zeros(1)

    def update(self, preds: List[Dict[str, Tensor]], targets: List[Dict[str, Tensor]]) -> None:
        for p, t in zip(preds, targets):
            p, t = {k: v.cpu() for k, v in p.items()}, {k: v.cpu() for k, v in t.items()}
            iou = box_iou(p["boxes"], t["boxes"])
            self.scores.append(p["scores"])
            self.matches.append((iou.max(1)[0] >= self.iou).float())
            self.num_gt += len(t["boxes"])

    def compute(self) -> Tensor:
        order = torch.cat(self.scores).argsort(descending=True)
        tp = torch.cat(self.matches)[order].cumsum(0)
        precision = tp / torch.arange(1, len(tp) + 1)
        return torch.trapz(precision, tp / self.num_gt)


class PanopticQuality:
    def __init__(self, categories: Sequence[int]):
        self.categories = {c: i for i, c in enumerate(categories)}
        self.stats = {name: torch.zeros(len(categories)) for name in ("iou", "tp", "fp", "fn")}

    def update(self, pred: Tensor, target: Tensor) -> None:
        for c, i in self.categories.items():
            p, t = pred == c, target == c
            inter, union = (p & t).sum(), (p | t).sum()
            self.stats["iou"][i] += inter / union.clamp(min=1)  # raises
            self.stats["tp"][i] += inter > 0
            self.stats["fp"][i] += (p & ~t).any()
            self.stats["fn"][i] += (t & ~p).any()

    def compute(self) -> Tensor:
        s = self.stats
        return (s["iou"] / (s["tp"] + 0.5 * s["fp"] + 0.5 * s["fn"]).clamp(min=1)).mean()


def segmentation_hist(pred: Tensor, label: Tensor, n: int) -> np.ndarray:
    keep = (label >= 0) & (label < n)
    flat = n * label[keep] + pred[keep]
    return np.bincount(np.asarray(flat), minlength=n ** 2).reshape(n, n)  # raises

