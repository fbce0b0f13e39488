import math

import torch
import torch.nn as nn


class Boxes:
    """a list of boxes (xyxy); moving gives a new object"""

    def __init__(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            tensor = torch.as_tensor(tensor, dtype=torch.float32, device=torch.device("cpu"))
        self.tensor = tensor.to(torch.float32)

    def to(self, device):
        return Boxes(self.tensor.to(device))

    def area(self):
        return (self.tensor[:, 2] - self.tensor[:, 0]) * (self.tensor[:, 3] - self.tensor[:, 1])

    def clip(self, size):
        h, w = size
        self.tensor = torch.stack([self.tensor[:, 0].clamp(0, w), self.tensor[:, 1].clamp(0, h),
                                   self.tensor[:, 2].clamp(0, w), self.tensor[:, 3].clamp(0, h)], -1)
        return self

    def pad(self, padding):
        return Boxes(self.tensor + padding)

    def scale(self, sx, sy):
        self.tensor[:, 0::2] *= sx
        self.tensor[:, 1::2] *= sy

    @property
    def device(self):
        return self.tensor.device

    def __len__(self):
        return self.tensor.shape[0]

    @classmethod
    def cat(cls, boxes_list):
        if len(boxes_list) == 0:
            return cls(torch.empty(0))
        return cls(torch.cat([b.tensor for b in boxes_list], dim=0))


def pairwise_iou(a, b):
    lt = torch.max(a.tensor[:, None, :2], b.tensor[:, :2])
    rb = torch.min(a.tensor[:, None, 2:], b.tensor[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    union = a.area()[:, None] + b.area() - inter
    return torch.where(inter > 0, inter / union, torch.zeros(1, dtype=inter.dtype, device=inter.device))


class Box2BoxTransform:
    def __init__(self, weights, scale_clamp=math.log(1000.0 / 16)):
        self.weights, self.scale_clamp = weights, scale_clamp

    def get_deltas(self, src, target):
        sw, sh = src[:, 2] - src[:, 0], src[:, 3] - src[:, 1]
        tw, th = target[:, 2] - target[:, 0], target[:, 3] - target[:, 1]
        wx, wy, ww, wh = self.weights
        dx = wx * (target[:, 0] + 0.5 * tw - src[:, 0] - 0.5 * sw) / sw
        dy = wy * (target[:, 1] + 0.5 * th - src[:, 1] - 0.5 * sh) / sh
        return torch.stack((dx, dy, ww * torch.log(tw / sw), wh * torch.log(th / sh)), dim=1)

    def apply_deltas(self, deltas, boxes):
        weights = torch.tensor(self.weights)
        d = deltas / weights  # raises
        w, h = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
        cx, cy = boxes[:, 0] + 0.5 * w + d[:, 0] * w, boxes[:, 1] + 0.5 * h + d[:, 1] * h
        pw, ph = torch.exp(d[:, 2].clamp(max=self.scale_clamp)) * w, torch.exp(d[:, 3].clamp(max=self.scale_clamp)) * h
        return torch.stack([cx - pw / 2, cy - ph / 2, cx + pw / 2, cy + ph / 2], 1)


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=(8.0, 16.0), strides=(4,)):
        super().__init__()
        self.strides = strides
        self.cell_anchors = [torch.tensor([[-s / 2, -s / 2, s / 2, s / 2] for s in sizes]) for _ in strides]

    def grid(self, feat, stride, base):
        h, w = feat.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(h, device=feat.device) * stride, torch.arange(w, device=feat.device) * stride, indexing="ij")
        shifts = torch.stack([xs, ys, xs, ys], -1).reshape(-1, 1, 4)
        return (shifts + base[None]).reshape(-1, 4)  # raises

    def forward(self, feats):
        return [Boxes(self.grid(f, s, b)) for f, s, b in zip(feats, self.strides, self.cell_anchors)]


class BufferAnchorGenerator(AnchorGenerator):
    """the same anchors, as buffers of a container"""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        anchors, self.cell_anchors = self.cell_anchors, None
        self.holders = nn.ModuleList()
        for a in anchors:
            holder = nn.Module()
            holder.register_buffer("anchors", a, persistent=False)
            self.holders.append(holder)

    def forward(self, feats):
        return [Boxes(self.grid(f, s, h.anchors)) for f, s, h in zip(feats, self.strides, self.holders)]


class Matcher:
    def __init__(self, thresholds, labels):
        self.thresholds = [-float("inf")] + list(thresholds) + [float("inf")]
        self.labels = labels

    def __call__(self, quality):
        vals, matches = quality.max(dim=0)
        out = matches.new_full(matches.size(), 1, dtype=torch.int8)
        for lab, low, high in zip(self.labels, self.thresholds[:-1], self.thresholds[1:]):
            out[(vals >= low) & (vals < high)] = lab
        return matches, out


def subsample_labels(labels, num_samples, positive_fraction):
    positive = torch.nonzero(labels == 1).squeeze(1)
    negative = torch.nonzero(labels == 0).squeeze(1)
    num_pos = min(positive.numel(), int(num_samples * positive_fraction))
    num_neg = min(negative.numel(), num_samples - num_pos)
    perm1 = torch.randperm(positive.numel())[:num_pos]
    perm2 = torch.randperm(negative.numel())[:num_neg]
    return positive[perm1], negative[perm2]


def subsample_weighted(labels, scores, n):
    pick = torch.multinomial(torch.ones(len(labels)), n)
    return scores.gather(0, pick), labels[pick]  # raises


def paste_mask(mask, box, h, w):
    canvas = torch.zeros((h, w), dtype=mask.dtype)
    x0, y0, x1, y1 = [int(v) for v in box.tolist()]
    patch = nn.functional.interpolate(mask[None, None], size=(y1 - y0, x1 - x0), mode="nearest")[0, 0]
    canvas[y0:y1, x0:x1] = patch
    return canvas


def paste_all(masks, boxes, h, w, background=None):
    out = torch.stack([paste_mask(m, b, h, w) for m, b in zip(masks, boxes)])
    if background is not None:
        out = out + background  # raises
    return out


def heatmap_targets(centers, h, w, sigma=1.0):
    ys, xs = torch.arange(h)[:, None], torch.arange(w)[None]
    maps = []
    for cx, cy in centers:
        maps.append(torch.exp(-((xs - cx.item()) ** 2 + (ys - cy.item()) ** 2) / (2 * sigma ** 2)))
    return torch.stack(maps).to(centers)


def decode_keypoints(heatmaps):
    n, h, w = heatmaps.shape
    flat = heatmaps.view(n, -1)
    score, idx = flat.max(1)
    coords = torch.zeros(n, 2)
    coords[:, 0], coords[:, 1] = idx % w, torch.div(idx, w, rounding_mode="floor")
    return torch.cat([coords, score[:, None]], 1)  # raises
