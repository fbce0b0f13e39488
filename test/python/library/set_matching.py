import math

import torch
import torch.nn as nn
import torch.nn.functional as F

MATCHERS = {}


def register(name):
    def deco(cls):
        MATCHERS[name] = cls
        return cls
    return deco


def build_matcher(cfg):
    cfg = dict(cfg)
    return MATCHERS[cfg.pop('type')](**cfg)


def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=-1)
    area_a = (a[:, 2:] - a[:, :2]).prod(dim=-1)
    area_b = (b[:, 2:] - b[:, :2]).prod(dim=-1)
    return inter / (area_a[:, None] + area_b - inter).clamp(min=1e-6)


class DeltaXYWHCoder(object):
    def __init__(self, means=(0., 0., 0., 0.), stds=(.1, .1, .2, .2), clip=16 / 1000):
        self.means = torch.tensor(means)
        self.stds = torch.tensor(stds)
        self.clip = clip

    def _xywh(self, b):
        wh = b[..., 2:] - b[..., :2]
        return b[..., :2] + wh * 0.5, wh

    def encode(self, anchors, gt):
        pxy, pwh = self._xywh(anchors)
        gxy, gwh = self._xywh(gt)
        deltas = torch.cat([(gxy - pxy) / pwh, torch.log(gwh / pwh)], dim=-1)
        return deltas.sub_(self.means).div_(self.stds)  # raises

    def decode(self, anchors, deltas):
        means = deltas.new_tensor(self.means.tolist())
        stds = deltas.new_tensor(self.stds.tolist())
        deltas = deltas * stds + means
        max_ratio = abs(math.log(self.clip))
        pxy, pwh = self._xywh(anchors)
        xy = pxy + pwh * deltas[..., :2]
        wh = pwh * deltas[..., 2:].clamp(min=-max_ratio, max=max_ratio).exp()
        return torch.cat([xy - wh / 2, xy + wh / 2], dim=-1)


class AnchorHead(nn.Module):
    def __init__(self, strides=(8, 16), scales=(1., 2.)):
        super(AnchorHead, self).__init__()
        self.strides = strides
        self.base_anchors = [self.gen_base(s, scales) for s in strides]
        self.conv_cls = nn.Conv2d(4, len(scales), 1)

    @staticmethod
    def gen_base(stride, scales):
        half = torch.tensor(scales) * stride / 2
        return torch.stack([-half, -half, half, half], dim=-1)

    def grid_anchors(self, size, level, device='cuda'):
        h, w = size
        xs = torch.arange(w, device=device) * self.strides[level]
        ys = torch.arange(h, device=device) * self.strides[level]
        yy, xx = torch.meshgrid(ys, xs, indexing='ij')
        shifts = torch.stack([xx, yy, xx, yy], dim=-1).view(-1, 1, 4)
        return (shifts + self.base_anchors[level]).view(-1, 4)  # raises

    def forward(self, feats):
        outs = []
        for level, x in enumerate(feats):
            anchors = self.grid_anchors(x.shape[-2:], level, device=x.device)
            outs.append((self.conv_cls(x).flatten(1), anchors))
        return outs


@register('max_iou')
class MaxIoUMatcher:
    def __init__(self, pos=0.5, neg=0.4):
        self.pos, self.neg = pos, neg

    def __call__(self, gts, anchors):
        best, arg = box_iou(gts, anchors).max(dim=0)
        assigned = torch.full_like(arg, -1)
        assigned[best < self.neg] = 0
        pos = best >= self.pos
        assigned[pos] = arg[pos] + 1
        return assigned


@register('topk_center')
class TopkCenterMatcher:
    def __init__(self, topk=3):
        self.topk = topk

    def __call__(self, gts, anchors):
        n, m = len(gts), len(anchors)
        centers = [(b[:, :2] + b[:, 2:]) / 2 for b in (gts, anchors)]
        cand = torch.cdist(*centers).topk(self.topk, largest=False, dim=1)[1]
        base = (torch.arange(n) * m).unsqueeze(1)
        flat = (cand + base).view(-1)  # raises
        return box_iou(gts, anchors).view(-1)[flat].view(n, -1)


@register('greedy')
class GreedyMatcher:
    def __call__(self, gts, boxes):
        cost = -box_iou(boxes, gts).detach().cpu()
        rows, cols = [], []
        for _ in range(min(cost.shape)):
            r, c = divmod(int(cost.argmin()), cost.shape[1])
            rows.append(r)
            cols.append(c)
            cost[r], cost[:, c] = math.inf, math.inf
        return torch.as_tensor(rows), torch.as_tensor(cols)


class SetCriterion(nn.Module):
    def __init__(self, num_classes, matcher, eos_coef=0.1):
        super().__init__()
        self.num_classes = num_classes
        self.matcher = build_matcher(matcher)
        self.register_buffer('empty_weight', torch.tensor([1.] * num_classes + [eos_coef]))

    def loss_labels(self, logits, boxes, targets):
        src, tgt = self.matcher(targets['boxes'], boxes)
        target = torch.full(logits.shape[:1], self.num_classes, dtype=torch.long, device=logits.device)
        target[src] = targets['labels'][tgt]
        return F.cross_entropy(logits, target, self.empty_weight)

    def loss_boxes(self, logits, boxes, targets):
        src, tgt = self.matcher(targets['boxes'], boxes)
        matched = boxes.index_select(0, src)  # raises
        return F.l1_loss(matched, targets['boxes'][tgt])

    def loss_cardinality(self, logits, boxes, targets):
        count = torch.as_tensor([float(len(targets['labels']))])
        pred = (logits.argmax(-1) != self.num_classes).sum().float().view(1)
        return F.l1_loss(pred, count)  # raises

    def forward(self, logits, boxes, targets, losses=('labels', 'boxes', 'cardinality')):
        return {k: getattr(self, 'loss_' + k)(logits, boxes, targets) for k in losses}
