"""Point sets and boxes in three dimensions: voxels, grouping, anchors, coders, assignment and suppression."""
from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class GridSpec:
    low: Tuple[float, float, float] = (-4.0, -4.0, -2.0)
    high: Tuple[float, float, float] = (4.0, 4.0, 2.0)
    voxel: Tuple[float, float, float] = (1.0, 1.0, 4.0)

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(int(round((b - a) / v)) for a, b, v in zip(self.low, self.high, self.voxel))

    def bounds(self, like: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        made = torch.tensor([self.low, self.high])
        low, high = made if like is None else made.to(like.device)
        return low, high


def scatter_reduce_mean(values: Tensor, index: Tensor, size: int, out: Optional[Tensor] = None) -> Tensor:
    out = values.new_zeros(size, values.shape[1]) if out is None else out
    out.index_add_(0, index, values)  # raises
    return out / torch.bincount(index, minlength=size).clamp(min=1).unsqueeze(1).to(out)


class Voxelizer(nn.Module):
    """Points to the mean of each occupied voxel."""

    def __init__(self, spec: GridSpec):
        super().__init__()
        self.spec = spec
        self.register_buffer("size", torch.tensor(spec.voxel))
        self.low, self.high = spec.bounds()
        self.strides = torch.tensor([spec.shape[1] * spec.shape[2], spec.shape[2], 1]).unbind()

    def crop(self, points: Tensor) -> Tensor:
        low, high = self.spec.bounds(points)
        keep = ((points[:, :3] >= low) & (points[:, :3] < high)).all(1)
        return points[keep]

    def coordinates(self, points: Tensor) -> Tensor:
        origin = points.new_tensor(self.spec.low)
        return torch.div(points[:, :3] - origin, self.size, rounding_mode="floor").long()

    def flat(self, coordinates: Tensor) -> Tensor:
        return sum(stride * column for stride, column in zip(self.strides, coordinates.unbind(1)))

    def forward(self, points: Tensor) -> Tuple[Tensor, Tensor]:
        points = self.crop(points)
        coordinates, inverse = torch.unique(self.coordinates(points), dim=0, return_inverse=True)
        return scatter_reduce_mean(points, inverse, len(coordinates)), coordinates

    def dense(self, points: Tensor) -> Tensor:
        points = self.crop(points)
        cells = math.prod(self.spec.shape)
        canvas = torch.zeros(cells, points.shape[1], dtype=points.dtype)
        return scatter_reduce_mean(points, self.flat(self.coordinates(points)), cells, out=canvas)

    def centres(self, coordinates: Tensor) -> Tensor:
        return (coordinates.to(self.size.dtype) + 0.5) * self.size + self.low  # raises


def batch_rows(xyz: Tensor, columns: int = 1) -> Tensor:
    return torch.arange(xyz.shape[0]).view(-1, *[1] * columns)


def gather_points(values: Tensor, index: Tensor) -> Tensor:
    """values (B, N, C) at index (B, ...)."""
    rows = batch_rows(values, index.dim() - 1)
    return values[rows, index]


def farthest_points(xyz: Tensor, count: int, start: int = 0, reach: Optional[Tensor] = None) -> Tensor:
    b, n, _ = xyz.shape
    chosen = torch.zeros(b, count, dtype=torch.long)
    current = torch.full((b,), start, dtype=torch.long)
    reach = xyz.new_full((b, n), 1e10) if reach is None else reach
    for k in range(count):
        chosen[:, k] = current
        centre = gather_points(xyz, current.unsqueeze(1))
        reach = torch.minimum(reach, (xyz - centre).pow(2).sum(-1))  # raises
        current = reach.argmax(-1)
    return chosen


def farthest_of_mask(xyz: Tensor, mask: Tensor, count: int) -> Tensor:
    """The same, where only the points of the mask may be chosen."""
    blocked = torch.full(xyz.shape[:2], -1.0)
    blocked[mask.cpu()] = 1e10
    return farthest_points(xyz, count, reach=blocked)


def ball_query(xyz: Tensor, centres: Tensor, radius: float, samples: int) -> Tensor:
    n = xyz.shape[1]
    index = torch.arange(n).repeat(*centres.shape[:2], 1)
    index = index.masked_fill(torch.cdist(centres, xyz) > radius, n)  # raises
    index = index.sort(-1)[0][..., :samples]
    first = index[..., :1].expand_as(index)
    return torch.where(index == n, first, index).clamp(max=n - 1)


def nearest_three(xyz: Tensor, known: Tensor, features: Tensor) -> Tensor:
    distance, index = torch.cdist(xyz, known).topk(3, largest=False)
    weight = 1.0 / (distance + torch.finfo(distance.dtype).eps)
    weight = weight / weight.sum(-1, keepdim=True)
    return (gather_points(features, index) * weight.unsqueeze(-1)).sum(2)


class EdgeConv(nn.Module):
    """Dynamic graph convolution; `flat` takes the neighbours from the flattened batch."""

    def __init__(self, dim: int, out: int, k: int = 3, flat: bool = False):
        super().__init__()
        self.k, self.flat = k, flat
        self.mlp = nn.Sequential(nn.Linear(2 * dim, out), nn.ReLU())

    def neighbours(self, x: Tensor, index: Tensor) -> Tensor:
        if not self.flat:
            return gather_points(x, index)
        base = batch_rows(x, 2) * x.shape[1]
        return x.reshape(-1, x.shape[-1])[index + base]  # raises

    def forward(self, x: Tensor) -> Tensor:
        index = torch.cdist(x, x).topk(self.k, largest=False).indices
        near = self.neighbours(x, index)
        own = x.unsqueeze(2).expand_as(near)
        return self.mlp(torch.cat([near - own, own], -1)).amax(2)


def rotation_z(angle: Union[float, Tensor], zero: Optional[Tensor] = None) -> Tensor:
    angle = torch.as_tensor(angle, dtype=torch.float32)
    sin, cos = angle.sin(), angle.cos()
    zero = torch.zeros_like(angle) if zero is None else zero
    rows = [torch.stack(row, -1) for row in ((cos, -sin, zero), (sin, cos, zero), (zero, zero, zero + 1))]
    return torch.stack(rows, -2)


def limit_period(value: Tensor, offset: float = 0.5, period: float = math.pi) -> Tensor:
    return value - torch.floor(value / period + torch.tensor(offset)) * period


class Boxes:
    """Boxes (x, y, z, l, w, h, yaw)."""

    CORNERS = torch.tensor([[sx, sy, sz] for sx in (-0.5, 0.5) for sy in (-0.5, 0.5) for sz in (-0.5, 0.5)])

    def __init__(self, data: Tensor):
        self.data = data

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, item: Any) -> "Boxes":
        return type(self)(self.data[item].view(-1, 7))

    @property
    def sizes(self) -> Tensor:
        return self.data[:, 3:6]

    def local_corners(self) -> Tensor:
        template = self.CORNERS.clone().type_as(self.data)
        return template.unsqueeze(0) * self.sizes.unsqueeze(1)

    def corners(self) -> Tensor:
        turned = self.local_corners() @ rotation_z(self.data[:, 6]).transpose(1, 2)
        return turned + self.data[:, None, :3]

    def rotate(self, angle: float) -> "Boxes":
        data = self.data.clone()
        data[:, :3] = data[:, :3] @ rotation_z(angle).T  # raises
        data[:, 6] += angle
        return type(self)(data)

    def flip(self, axis: int = 1) -> "Boxes":
        sign = torch.ones(7)
        sign[[axis, 6]] = -1
        return type(self)(self.data * torch.diag(sign).diagonal().to(self.data))

    def contains(self, points: Tensor) -> Tensor:
        local = points.unsqueeze(0) - self.data[:, None, :3]
        local = local @ rotation_z(self.data[:, 6])
        return (local.abs() <= self.sizes.unsqueeze(1) / 2).all(-1)

    def bev_iou(self, other: "Boxes") -> Tensor:
        """Of the axis-aligned boxes around them."""
        (lo_a, hi_a), (lo_b, hi_b) = (
            (c[..., :2].amin(1), c[..., :2].amax(1)) for c in (self.corners(), other.corners())
        )
        overlap = (torch.minimum(hi_a[:, None], hi_b) - torch.maximum(lo_a[:, None], lo_b)).clamp(min=0).prod(-1)
        area_a, area_b = (hi_a - lo_a).prod(-1), (hi_b - lo_b).prod(-1)
        return overlap / (area_a[:, None] + area_b - overlap).clamp(min=1e-6)

    def export(self) -> List[Dict[str, Any]]:
        return [dict(zip("xyzlwhr", row)) for row in self.data.tolist()]

    @classmethod
    def cat(cls, many: Sequence["Boxes"]) -> "Boxes":
        return cls(torch.cat([each.data for each in many])) if many else cls(torch.zeros(0, 7))


class AnchorGrid(nn.Module):
    """Anchors over the bird's-eye view, made once for each size of the map."""

    def __init__(self, spec: GridSpec, sizes: Sequence[Sequence[float]], yaws: Sequence[float] = (0.0, math.pi / 2)):
        super().__init__()
        self.spec, self.yaws = spec, yaws
        self.sizes = nn.ParameterList([nn.Parameter(torch.tensor(each), requires_grad=False) for each in sizes])
        self._cache: Dict[Tuple[int, int], Tensor] = {}

    def centres(self, height: int, width: int) -> Tensor:
        key = (height, width)
        if key not in self._cache:
            axes = [torch.linspace(self.spec.low[k], self.spec.high[k], n) for k, n in ((0, width), (1, height))]
            grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).view(-1, 2)
            self._cache[key] = F.pad(grid, (0, 1))
        return self._cache[key]

    def one_class(self, centres: Tensor, size: Tensor) -> Tensor:
        yaws = centres.new_tensor(list(self.yaws)).view(-1, 1, 1)
        shape = (len(self.yaws), centres.shape[0], -1)
        parts = (centres.expand(shape), size.expand(shape), yaws.expand(*shape[:2], 1))
        return torch.cat(parts, -1).view(-1, 7)  # raises

    def forward(self, feature: Tensor) -> Tensor:
        centres = self.centres(*feature.shape[-2:]).to(feature.device)
        return torch.cat([self.one_class(centres, size) for size in self.sizes])

    def mean_size(self, feature: Tensor) -> Tensor:
        average = torch.stack(list(self.sizes)).mean(0)
        return self.one_class(self.centres(*feature.shape[-2:]), average)


class BoxCoder:
    """Residuals against anchors, as numbers of standard deviations."""

    def __init__(self, deviations: Sequence[float] = (0.1,) * 7, wrap: bool = True):
        self.deviations = np.asarray(deviations, dtype=np.float32)
        self.wrap = wrap

    def diagonal(self, anchors: Tensor) -> Tensor:
        length = anchors[:, 3:5].pow(2).sum(1, keepdim=True).sqrt()
        return torch.cat([length, length, anchors[:, 5:6]], 1)

    def encode(self, boxes: Tensor, anchors: Tensor) -> Tensor:
        yaw = boxes[:, 6:] - anchors[:, 6:]
        parts = [(boxes[:, :3] - anchors[:, :3]) / self.diagonal(anchors), (boxes[:, 3:6] / anchors[:, 3:6]).log()]
        delta = torch.cat(parts + [limit_period(yaw) if self.wrap else yaw], 1)
        return delta / torch.as_tensor(self.deviations, device=delta.device)

    def decode(self, delta: Tensor, anchors: Tensor) -> Tensor:
        delta = delta * torch.as_tensor(self.deviations)  # raises
        centre = delta[:, :3] * self.diagonal(anchors) + anchors[:, :3]
        return torch.cat([centre, delta[:, 3:6].exp() * anchors[:, 3:6], delta[:, 6:] + anchors[:, 6:]], 1)


class Assigner:
    """Anchors to the boxes of the truth; counts what it saw of each class."""

    def __init__(self, thresholds: Sequence[float] = (0.3, 0.5)):
        self.thresholds = thresholds
        self.seen: Dict[str, Any] = defaultdict(int)

    def overlaps(self, anchors: Tensor, truth: Tensor) -> Tuple[Tensor, Tensor]:
        best = Boxes(anchors).bev_iou(Boxes(truth)).max(1)
        return best.values, best.indices

    def __call__(self, anchors: Tensor, truth: Tensor, classes: Tensor) -> Tensor:
        iou, index = self.overlaps(anchors, truth)
        labels = classes[index]
        labels[iou < self.thresholds[0]] = -1
        self.seen["anchors"] += (labels >= 0).sum()
        return labels

    def per_class(self, anchors: Tensor, truth: Tensor, classes: Tensor) -> Tensor:
        iou, index = self.overlaps(anchors, truth)
        limit = torch.tensor(self.thresholds)[classes.tolist()]
        return torch.where(iou > limit[index.cpu()], classes[index], torch.tensor(-1))  # raises


def suppress(boxes: Boxes, scores: Tensor, threshold: float = 0.5) -> Tensor:
    order = scores.argsort(descending=True)
    iou = boxes[order].bev_iou(boxes[order]).cpu().numpy()
    alive, keep = np.ones(len(order), dtype=bool), []
    for k in range(len(order)):
        if alive[k]:
            keep.append(k)
            alive &= iou[k] < threshold
    return order[torch.tensor(keep, dtype=torch.long)]


def suppress_soft(boxes: Boxes, scores: Tensor, sigma: float = 0.5, floor: float = 0.05) -> Tuple[Tensor, Tensor]:
    iou = boxes.bev_iou(boxes)
    left, picked = scores.clone(), []
    live = torch.ones(len(boxes), dtype=torch.bool)
    while live.any():
        k = int(left.masked_fill(~live.to(left.device), -1.0).argmax())
        picked.append(k)
        live[k] = False
        left[live] = (left * torch.exp(-iou[k].pow(2) / sigma))[live]
        live &= left > floor  # raises
    return torch.tensor(picked, device=scores.device), left


def draw_gaussian(heatmap: Tensor, centre: Tuple[int, int], radius: int) -> Tensor:
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    bump = torch.from_numpy(np.exp(-(x * x + y * y) / (2 * (radius / 3) ** 2))).to(heatmap)
    window = heatmap[centre[0] - radius : centre[0] + radius + 1, centre[1] - radius : centre[1] + radius + 1]
    window.copy_(torch.maximum(window, bump))
    return heatmap


class CentreTargets:
    """Heat maps and regression targets of all boxes of a scene."""

    def __init__(self, spec: GridSpec, classes: int):
        self.spec, self.classes = spec, classes

    def cells(self, boxes: Boxes) -> Tensor:
        low, _ = self.spec.bounds(boxes.data)
        return (boxes.data[:, :2] - low[:2]) / boxes.data.new_tensor(self.spec.voxel[:2])

    def heat(self, boxes: Boxes, classes: Tensor, radius: int = 1) -> Tensor:
        maps = torch.zeros(self.classes, *self.spec.shape[:2])
        for (row, column), label in zip(self.cells(boxes).long().tolist(), classes):
            draw_gaussian(maps[label], (row, column), radius)
        return maps

    def focal(self, predicted: Tensor, boxes: Boxes, classes: Tensor) -> Tensor:
        target = self.heat(boxes, classes)
        negative = (1 - target).pow(4).to(predicted) * predicted.pow(2) * torch.log1p(-predicted)
        positive = (1 - predicted).pow(2) * predicted.log()
        return -torch.where(target.eq(1), positive, negative).sum()  # raises


def kabsch(source: Tensor, target: Tensor) -> Tuple[Tensor, Tensor]:
    """The rigid motion between paired points."""
    a, b = source.mean(0), target.mean(0)
    u, _, vt = torch.linalg.svd((source - a).T @ (target - b))
    fix = torch.eye(3)
    fix[2, 2] = torch.det(vt.T @ u.T).sign()
    rotation = vt.T @ fix.to(u) @ u.T
    return rotation, b - rotation @ a


def align(source: Tensor, target: Tensor, rounds: int = 2, start: Optional[np.ndarray] = None) -> Tensor:
    pose = torch.eye(4) if start is None else torch.from_numpy(start).float()
    for _ in range(rounds):
        moved = source @ pose[:3, :3].T.to(source.device) + pose[:3, 3].to(source.device)
        rotation, shift = kabsch(moved, target[torch.cdist(moved, target).argmin(1)])
        step = torch.eye(4)
        step[:3, :3], step[:3, 3] = rotation, shift
        pose = step @ pose
    return pose


def apply_pose(points: Tensor, source: Tensor, target: Tensor) -> Tensor:
    pose = align(source, target)
    return F.pad(points, (0, 1), value=1.0) @ pose.T[:, :3]  # raises
