"""Detection, segmentation, flow and augmentation code."""
from __future__ import annotations

import itertools
import math
import random
from typing import Dict, List, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _gpu(*shape, seed=3):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=g).cuda()


def _boxes(n=6):
    corner = _gpu(n, 2) * 20
    return torch.cat([corner, corner + _gpu(n, 2, seed=4) * 10 + 1], 1)


# -- anchors --


class Anchors(nn.Module):
    def __init__(self, sizes=(4, 8), ratios=(0.5, 1.0, 2.0)):
        super().__init__()
        self.sizes, self.ratios = sizes, ratios
        self.base = self.make_base()
        self.cells: Dict[str, torch.Tensor] = {}

    def make_base(self, dtype=torch.float32, device="cpu"):
        ratios = torch.as_tensor(self.ratios, dtype=dtype, device=device)
        sizes = torch.as_tensor(self.sizes, dtype=dtype, device=device)
        h = ratios.sqrt()
        ws = (1 / h[:, None] * sizes[None]).reshape(-1)
        hs = (h[:, None] * sizes[None]).reshape(-1)
        return torch.stack([-ws, -hs, ws, hs], 1) / 2

    def set_cells(self, dtype, device):
        key = str(device)
        if key not in self.cells:
            self.cells[key] = self.make_base(dtype, device)
        return self.cells[key]

    def grid(self, height, width, stride, device):
        ys, xs = torch.meshgrid(torch.arange(height, device=device), torch.arange(width, device=device), indexing="ij")
        x, y = xs.reshape(-1) * stride, ys.reshape(-1) * stride
        return torch.stack([x, y, x, y], 1)

    def by_cells(self, feature, stride=4):
        cells = self.set_cells(feature.dtype, feature.device)
        shifts = self.grid(*feature.shape[-2:], stride, feature.device)
        return (shifts[:, None] + cells[None]).reshape(-1, 4)

    def by_base(self, feature, stride=4):
        shifts = self.grid(*feature.shape[-2:], stride, feature.device)
        return (shifts.view(-1, 1, 4) + self.base.view(1, -1, 4)).reshape(-1, 4)  # raises


def anchors_from_cells():
    gen = Anchors().cuda()
    return gen.by_cells(_gpu(1, 3, 4, 4)).shape, gen.by_cells(_gpu(1, 3, 2, 2).to("cuda:1")).device


def anchors_from_base():
    gen = Anchors().cuda()
    return gen.by_base(_gpu(1, 3, 4, 4)).shape


def anchors_decoded():
    gen = Anchors()
    feature = _gpu(1, 3, 2, 2)
    anchors = gen.by_cells(feature)
    deltas = torch.zeros(len(anchors), 4, device=feature.device)
    weights = torch.tensor([10.0, 10.0, 5.0, 5.0])
    d = deltas / weights  # raises
    centre = (anchors[:, :2] + anchors[:, 2:]) / 2
    return centre + d[:, :2]


def anchors_decoded_by_scalars():
    gen = Anchors()
    feature = _gpu(1, 3, 2, 2)
    anchors = gen.by_cells(feature)
    deltas = torch.zeros(len(anchors), 4, device=feature.device)
    wx, wy, ww, wh = torch.tensor([10.0, 10.0, 5.0, 5.0])
    dx, dy, dw, dh = (deltas[:, i] / w for i, w in enumerate((wx, wy, ww, wh)))
    limit = torch.tensor(math.log(1000 / 16))
    size = anchors[:, 2:] - anchors[:, :2]
    return torch.stack([dx, dy, dw.clamp(max=limit.item()).exp() * size[:, 0], dh.exp() * size[:, 1]], 1).shape


# -- overlap and suppression --


def _area(b):
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


def _iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])  # raises
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    return inter / (_area(a)[:, None] + _area(b)[None] - inter)


def _suppress(boxes, scores, thr=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel():
        i = order[0]
        keep.append(i)
        if order.numel() == 1:
            break
        overlap = _iou(boxes[i][None], boxes[order[1:]])[0]
        order = order[1:][overlap <= thr]  # raises
    return torch.stack(keep)


def suppression_on_one_device():
    boxes = _boxes()
    keep = _suppress(boxes, _gpu(6))
    return boxes[keep].shape


def suppression_by_new_scores():
    boxes = _boxes()
    keep = _suppress(boxes, torch.rand(6))
    return boxes[keep].mean()


def suppression_ranked():
    boxes = _boxes().cpu()
    scores = _gpu(6)
    ranked = boxes[scores.argsort(descending=True)]  # raises
    return ranked[:3]


def matching_targets():
    predicted = _boxes()
    targets = [{"boxes": torch.tensor([[0.0, 0.0, 10.0, 10.0]]), "labels": torch.tensor([1])}]
    return _iou(predicted, targets[0]["boxes"]).amax(1)


def matching_targets_moved():
    predicted = _boxes()
    targets = [{"boxes": torch.tensor([[0.0, 0.0, 10.0, 10.0]]), "labels": torch.tensor([1]), "id": 7}]
    targets = [{k: v.to(predicted.device) if torch.is_tensor(v) else v for k, v in t.items()} for t in targets]
    ious = _iou(predicted, targets[0]["boxes"])
    best, which = ious.max(1)
    labels = targets[0]["labels"][which]
    labels[best < 0.5] = 0
    return labels.tolist()


def batched_suppression_offsets():
    boxes, scores = _boxes(), _gpu(6)
    classes = torch.tensor([0, 0, 1, 1, 2, 2])
    offsets = classes * (boxes.max() + 1)  # raises
    return _suppress(boxes + offsets[:, None], scores)


def batched_suppression_class_by_class():
    boxes, scores = _boxes(), _gpu(6)
    classes = torch.tensor([0, 0, 1, 1, 2, 2])
    kept = []
    for c in classes.unique():
        at = (classes == c).nonzero().squeeze(1)
        kept.append(at[_suppress(boxes[at], scores[at]).cpu()])
    return torch.cat(kept).tolist()


# -- regions --


def _roi_grid(box, out=3):
    x1, y1, x2, y2 = box.unbind()
    steps = torch.linspace(0, 1, out, device=box.device)
    gy, gx = torch.meshgrid(y1 + steps * (y2 - y1), x1 + steps * (x2 - x1), indexing="ij")
    return torch.stack([gx, gy], -1)[None]


def regions_sampled():
    feature = _gpu(1, 4, 8, 8)
    box = torch.tensor([-0.5, -0.5, 0.5, 0.5])
    return F.grid_sample(feature, _roi_grid(box), align_corners=False).shape  # raises


def regions_sampled_where_feature_is():
    feature = _gpu(1, 4, 8, 8)
    box = feature.new_tensor([-0.5, -0.5, 0.5, 0.5])
    return F.grid_sample(feature, _roi_grid(box), align_corners=False).shape


def regions_assigned_to_levels():
    boxes = _boxes()
    pyramid = [_gpu(1, 4, 8 // 2 ** i, 8 // 2 ** i) for i in range(3)]
    level = torch.floor(torch.log2(_area(boxes).sqrt() / 8 + 1e-6)).clamp(0, 2).long()
    out = torch.zeros(len(boxes), 4)
    for i, feature in enumerate(pyramid):
        rows = (level == i).nonzero(as_tuple=True)[0].cpu()
        out[rows] = feature.mean((0, 2, 3)).expand(len(rows), -1).cpu()
    return out.sum().item()


def regions_pooled_into_rows():
    boxes = _boxes()
    feature = _gpu(1, 4, 8, 8)
    out = torch.zeros(len(boxes), 4)
    rows = (_area(boxes) > 10).nonzero(as_tuple=True)[0]
    out[rows] = feature.mean((0, 2, 3)).expand(len(rows), -1)  # raises
    return out


# -- heatmaps --


def _gaussian(height, width, cx, cy, sigma=1.0):
    ys, xs = np.mgrid[:height, :width].astype(np.float32)
    return np.exp(-((xs - cx) ** 2 + (ys - cy) ** 2) / (2 * sigma ** 2))


def heatmap_loss_with_drawn_targets():
    predicted = _gpu(2, 8, 8)
    drawn = torch.from_numpy(np.stack([_gaussian(8, 8, 2, 3), _gaussian(8, 8, 5, 5)]))
    return F.mse_loss(predicted, drawn)  # raises


def heatmap_loss_with_drawn_targets_moved():
    predicted = _gpu(2, 8, 8)
    drawn = torch.from_numpy(np.stack([_gaussian(8, 8, 2, 3), _gaussian(8, 8, 5, 5)]))
    drawn = drawn.to(predicted)
    positive = drawn.eq(drawn.amax((1, 2), keepdim=True)).float()
    return (F.mse_loss(predicted, drawn, reduction="none") * positive).sum().item()


def heatmap_peaks_to_array():
    predicted = _gpu(2, 8, 8)
    flat = predicted.flatten(1).argmax(1)
    return np.unravel_index(flat, (8, 8))  # raises


def heatmap_peaks_counted():
    predicted = _gpu(2, 8, 8)
    flat = predicted.flatten(1).argmax(1)
    canvas = np.zeros((8, 8), dtype=int)
    for i in flat:
        canvas[np.unravel_index(int(i), (8, 8))] += 1
    return canvas.sum()


def heatmap_soft_argmax():
    predicted = _gpu(2, 8, 8)
    weight = predicted.flatten(1).softmax(-1).view_as(predicted)
    axis = torch.arange(8.0)
    x = (weight.sum(1) * axis).sum(-1)  # raises
    y = (weight.sum(2) * axis).sum(-1)
    return torch.stack([x, y], -1)


def heatmap_soft_argmax_by_loop():
    predicted = _gpu(2, 8, 8)
    weight = predicted.flatten(1).softmax(-1).view_as(predicted)
    columns = weight.sum(1).unbind(-1)
    x = sum(c * at for c, at in zip(columns, torch.arange(8.0)))
    return x.tolist()


# -- warping --


class Warp(nn.Module):
    def __init__(self, keep=True):
        super().__init__()
        self.keep = keep
        self.store = {}

    def base(self, like):
        key = tuple(like.shape[-2:]) if self.keep == "shape" else (like.shape[-2:], like.device)
        if key not in self.store:
            h, w = like.shape[-2:]
            y, x = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
            self.store[key] = torch.stack([x, y], -1).to(like.device)
        return self.store[key]

    def forward(self, image, flow):
        grid = self.base(image) + flow.permute(0, 2, 3, 1)  # raises
        return F.grid_sample(image, grid, padding_mode="border", align_corners=True)


def warp_on_several_devices():
    warp = Warp()
    return [warp(_gpu(1, 3, 6, 6).to(f"cuda:{i}"), torch.zeros(1, 2, 6, 6, device=f"cuda:{i}")).mean().item() for i in (0, 1)]


def warp_on_several_devices_by_shape():
    warp = Warp("shape")
    return [warp(_gpu(1, 3, 6, 6).to(f"cuda:{i}"), torch.zeros(1, 2, 6, 6, device=f"cuda:{i}")).mean().item() for i in (0, 1)]


def warp_with_affine_of_host():
    image = _gpu(2, 3, 6, 6)
    theta = torch.eye(2, 3).repeat(2, 1, 1)
    theta[:, 0, 2] = 0.1
    grid = F.affine_grid(theta, image.shape, align_corners=False)
    moved = F.grid_sample(image.cpu(), grid, align_corners=False)
    return (moved.cuda() - image).abs().mean().item()


# -- pyramids and augmentation --


def _binomial(channels):
    k = torch.tensor([1.0, 2.0, 1.0])
    k = torch.outer(k, k)
    return (k / k.sum()).repeat(channels, 1, 1, 1)


def _pyramid(image, levels=3, kernel=None):
    out = [image]
    kernel = _binomial(image.shape[1]) if kernel is None else kernel
    for _ in range(levels - 1):
        blurred = F.conv2d(out[-1], kernel, padding=1, groups=image.shape[1])  # raises
        out.append(F.avg_pool2d(blurred, 2))
    return out


def pyramid_with_default_kernel():
    return [level.shape for level in _pyramid(_gpu(1, 3, 8, 8))]


def pyramid_with_moved_kernel():
    image = _gpu(1, 3, 8, 8)
    return [level.shape for level in _pyramid(image, kernel=_binomial(3).to(image.device))]


def pyramid_of_one_level():
    return [level.shape for level in _pyramid(_gpu(1, 3, 8, 8), levels=1)]


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        self.mean, self.std = mean, std

    def __call__(self, x):
        mean = torch.as_tensor(self.mean, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        std = torch.as_tensor(self.std, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        return (x - mean) / std


class ColorJitter:
    weights = torch.tensor([0.299, 0.587, 0.114])

    def __init__(self, amount=0.2, rng=None):
        self.amount, self.rng = amount, rng or random.Random(0)

    def __call__(self, x):
        factor = torch.tensor(1 + self.rng.uniform(-self.amount, self.amount))
        return x * factor

    def grey(self, x):
        return torch.einsum("c,...chw->...hw", self.weights, x)  # raises


class Compose(List):
    def __call__(self, x):
        for step in self:
            x = step(x)
        return x


def augment_chain():
    chain = Compose([Normalize([0.5] * 3, [0.2] * 3), ColorJitter(), lambda x: x.flip(-1)])
    return chain(_gpu(2, 3, 4, 4)).std().item()


def augment_chain_with_grey():
    jitter = ColorJitter()
    chain = Compose([Normalize([0.5] * 3, [0.2] * 3), jitter, jitter.grey])
    return chain(_gpu(2, 3, 4, 4)).std().item()


def cutmix_by_permutation():
    x, y = _gpu(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
    lam = np.random.beta(1.0, 1.0)
    order = torch.randperm(4)
    x[:, :, 2:5, 2:5] = x[order][:, :, 2:5, 2:5]
    labels = F.one_hot(y, 3) * lam + F.one_hot(y[order], 3) * (1 - lam)
    return x.shape, labels.sum().item()


def cutmix_mask_blended():
    x = _gpu(4, 3, 8, 8)
    mask = torch.ones(8, 8)
    for i, j in itertools.product(range(2, 5), repeat=2):
        mask[i, j] = 0
    return torch.lerp(x.flip(0), x, mask.expand_as(x))  # raises


def mosaic_onto_canvas():
    tiles = _gpu(4, 3, 4, 4).unbind(0)
    canvas = torch.zeros(3, 8, 8)
    for (i, j), tile in zip(itertools.product((0, 4), repeat=2), tiles):
        canvas[:, i:i + 4, j:j + 4] = tile
    return canvas.numpy().mean()
