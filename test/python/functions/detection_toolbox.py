"""Parts of an object detection toolbox."""
from collections import defaultdict, namedtuple
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS, Assigned = {}, namedtuple("Assigned", "labels index overlaps")

def register(cls):
    MODELS[cls.__name__] = cls
    return cls

def multi_apply(func, *args, **kwargs):
    return tuple(map(list, zip(*map(partial(func, **kwargs) if kwargs else func, *args))))

@dataclass
class Instances:
    size: tuple
    fields: dict = field(default_factory=dict)
    def __getattr__(self, name):
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(name)
    def to(self, device):
        moved = {k: v.to(device) if hasattr(v, "to") else v for k, v in self.fields.items()}
        return Instances(self.size, moved)
    def __getitem__(self, item):
        return Instances(self.size, {k: v[item] for k, v in self.fields.items()})  # raises
    def __len__(self):
        return len(next(iter(self.fields.values())))

def box_area(boxes):
    return (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(dim=1)

def box_iou(a, b):
    lt, rb = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    return inter / (box_area(a)[:, None] + box_area(b) - inter).clamp(min=1e-6)

def nms(boxes, scores, threshold=0.5):
    order, keep = scores.argsort(descending=True), []
    while order.numel():
        keep.append(order[0])
        rest = order[1:]
        if not rest.numel():
            break
        order = rest[box_iou(boxes[order[:1]], boxes[rest])[0] <= threshold]
    return torch.stack(keep) if keep else torch.zeros(0, dtype=torch.long)

def soft_nms(boxes, scores, sigma=0.5, min_score=0.01):
    scores, keep = scores.clone(), []
    alive = torch.ones(len(scores), dtype=torch.bool)
    while alive.any():
        best = int(scores.masked_fill(~alive.to(scores.device), -1).argmax())
        keep.append(best)
        alive[best] = False
        scores = scores * torch.exp(-box_iou(boxes[best:best + 1], boxes)[0] ** 2 / sigma)
        alive = alive & (scores > min_score)  # raises
    return torch.tensor(keep, dtype=torch.long)

def batched_nms(boxes, scores, labels, threshold=0.5):
    if not boxes.numel():
        return labels
    offset = labels.to(boxes) * (boxes.max() + 1)
    return nms(boxes + offset[:, None], scores, threshold)

class AnchorGenerator:
    def __init__(self, strides=(4, 8), ratios=(0.5, 1.0, 2.0), scale=2.0, centre=0.5):
        self.strides, self.centre = strides, centre
        self.ratios = torch.tensor(ratios)
        self.base = [self.single(s * scale) for s in strides]
    def single(self, size):
        h, w = size * self.ratios.sqrt(), size / self.ratios.sqrt()
        return torch.stack([-w, -h, w, h], dim=1) / 2
    def level(self, index, shape, device="cuda"):
        stride = self.strides[index]
        ys, xs = [(torch.arange(n, device=device) + self.centre) * stride for n in shape]
        grid = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), dim=-1).view(-1, 2).repeat(1, 2)
        return (grid[:, None] + self.base[index].to(device)).view(-1, 4)
    def valid(self, index, shape, padded, device="cuda"):
        flags = []
        for size, limit in zip(shape, padded):
            line = torch.zeros(size, dtype=torch.bool, device=device)
            line[:max(1, limit // self.strides[index])] = True
            flags.append(line)
        return (flags[0][:, None] & flags[1]).flatten().repeat_interleave(len(self.ratios))
    def __call__(self, feats):
        return [self.level(i, f.shape[-2:], f.device) for i, f in enumerate(feats)]

class PointGenerator(AnchorGenerator):
    ranges = torch.tensor([[-1.0, 16.0], [16.0, 1e8]])
    def level(self, index, shape, device="cuda"):
        ys, xs = torch.meshgrid(*[torch.arange(n, device=device) for n in shape], indexing="ij")
        return torch.stack([xs, ys], -1).view(-1, 2) * self.strides[index] + self.strides[index] // 2
    def regress_ranges(self, points):
        return torch.cat([self.ranges[i].expand(len(p), 2) for i, p in enumerate(points)])

class DeltaCoder:
    def __init__(self, means=(0.0,) * 4, stds=(0.1, 0.1, 0.2, 0.2), clip=4.0):
        self.means, self.stds, self.clip = means, stds, torch.tensor(clip)
    @staticmethod
    def to_centre(boxes):
        return (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]).clamp(min=1e-3)
    def encode(self, anchors, boxes):
        (ac, asz), (bc, bsz) = self.to_centre(anchors), self.to_centre(boxes)
        deltas = torch.cat([(bc - ac) / asz, (bsz / asz).log()], dim=1)
        return (deltas - deltas.new_tensor(self.means)) / deltas.new_tensor(self.stds)
    def decode(self, anchors, deltas, size=None):
        deltas = deltas * deltas.new_tensor(self.stds) + deltas.new_tensor(self.means)
        centre, extent = self.to_centre(anchors)
        centre = centre + deltas[:, :2] * extent
        extent = extent * torch.minimum(deltas[:, 2:], self.clip).exp()
        boxes = torch.cat([centre - extent / 2, centre + extent / 2], dim=1)
        if size is not None:
            limit = torch.as_tensor(size, dtype=boxes.dtype).flip(0).repeat(2)
            boxes = torch.min(boxes, limit).clamp(min=0)  # raises
        return boxes

class MaxIoUAssigner:
    def __init__(self, pos=0.5, neg=0.4, heavy=10000):
        self.pos, self.neg, self.heavy = pos, neg, heavy
    def overlaps(self, gt, anchors):
        if len(gt) * len(anchors) > self.heavy:
            return box_iou(gt.cpu(), anchors.cpu())
        return box_iou(gt, anchors)
    def assign(self, anchors, gt, labels):
        overlaps = self.overlaps(gt, anchors)
        best, index = overlaps.max(dim=0)
        result = torch.full_like(index, -1)
        result[best < self.neg] = 0
        positive = best >= self.pos
        result[positive] = labels[index[positive]] + 1  # raises
        return Assigned(result, index, best)

class ATSSAssigner(MaxIoUAssigner):
    def assign(self, anchors, gt, labels, k=5):
        overlaps = box_iou(anchors, gt)
        dist = torch.cdist(DeltaCoder.to_centre(anchors)[0], DeltaCoder.to_centre(gt)[0])
        near = dist.topk(k, dim=0, largest=False).indices
        chosen = overlaps.gather(0, near)
        keep = chosen >= chosen.mean(0)
        best = torch.full((len(anchors), len(gt)), -1.0)
        for j in range(len(gt)):
            rows = near[keep[:, j], j]
            best[rows, j] = overlaps[rows, j]  # raises
        value, index = best.max(dim=1)
        return Assigned(torch.where(value > 0, labels[index] + 1, 0 * index), index, value)

class HungarianMatcher(nn.Module):
    def __init__(self, weights=(1.0, 5.0)):
        super().__init__()
        self.class_weight, self.box_weight = weights
    @torch.no_grad()
    def forward(self, logits, boxes, targets):
        prob = logits.softmax(-1)
        result = []
        for p, b, t in zip(prob, boxes, targets):
            cost = self.box_weight * torch.cdist(b, t["boxes"], p=1) - self.class_weight * p[:, t["labels"]]
            table, rows = cost.cpu().numpy().copy(), []
            for j in range(table.shape[1]):
                rows.append(int(table[:, j].argmin()))
                table[rows[-1]] = np.inf
            result.append((torch.as_tensor(rows), torch.arange(len(rows))))
        return result

class SetCriterion(nn.Module):
    def __init__(self, classes, empty=0.1, names=("class", "box")):
        super().__init__()
        self.matcher, self.classes, self.names = HungarianMatcher(), classes, names
        weight = torch.ones(classes + 1)
        weight[-1] = empty
        self.register_buffer("weight", weight)
    @staticmethod
    def permutation(indices):
        batch = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
        return batch, torch.cat([src for src, _ in indices])
    def loss_class(self, out, targets, indices):
        where = self.permutation(indices)
        goal = torch.full(out["logits"].shape[:2], self.classes, device=out["logits"].device)
        goal[where] = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])
        return F.cross_entropy(out["logits"].transpose(1, 2), goal, self.weight)  # raises
    def loss_box(self, out, targets, indices):
        source = out["boxes"][self.permutation(indices)]
        goal = torch.cat([t["boxes"][j] for t, (_, j) in zip(targets, indices)])
        count = torch.as_tensor([len(goal)], dtype=torch.float)
        return F.l1_loss(source, goal, reduction="sum") / count.clamp(min=1).item()
    def loss_cardinality(self, out, targets, indices):
        lengths = torch.as_tensor([len(t["labels"]) for t in targets])
        found = (out["logits"].argmax(-1) != self.classes).sum(1)
        return F.l1_loss(found.float(), lengths.float())  # raises
    def forward(self, out, targets):
        indices = self.matcher(out["logits"], out["boxes"], targets)
        return {name: getattr(self, "loss_" + name)(out, targets, indices) for name in self.names}

class Scale(nn.Module):
    def __init__(self, value=1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(value))
    def forward(self, x):
        return x * self.scale  # raises

@register
class AnchorHead(nn.Module):
    def __init__(self, channels=8, classes=3, levels=2, assigner=MaxIoUAssigner, scale_free=False):
        super().__init__()
        self.classes, self.generator, self.coder, self.assigner = classes, AnchorGenerator(), DeltaCoder(), assigner()
        self.cls = nn.Conv2d(channels, 3 * classes, 1)
        self.reg = nn.Conv2d(channels, 3 * 4, 1)
        scales = [Scale(1.0 + i) for i in range(levels)]
        self.scales = nn.ModuleList(scales) if not scale_free else scales
        self.normalizer = torch.tensor(0.0)
    def single(self, feat, scale):
        flat = lambda x, n: x.permute(0, 2, 3, 1).reshape(len(x), -1, n)  # noqa: E731
        return flat(self.cls(feat), self.classes), flat(scale(self.reg(feat)), 4)
    def forward(self, feats):
        scores, deltas = multi_apply(self.single, feats, self.scales)
        return torch.cat(scores, 1), torch.cat(deltas, 1), torch.cat(self.generator(feats))
    def loss(self, feats, targets):
        scores, deltas, anchors = self(feats)
        total = scores.sum() * 0
        for s, d, t in zip(scores, deltas, targets):
            found = self.assigner.assign(anchors, t.boxes, t.labels)
            hit = found.labels > 0
            goal = F.one_hot(found.labels.clamp(min=0), self.classes + 1)[:, 1:].float()
            self.normalizer = 0.9 * self.normalizer + 0.1 * hit.sum()
            total = total + F.binary_cross_entropy_with_logits(s, goal, reduction="sum") / self.normalizer.clamp(min=1)
            total = total + F.l1_loss(d[hit], self.coder.encode(anchors[hit], t.boxes[found.index[hit]]))
        return total
    def predict(self, feats, size, clip=False, top=20, rescale=None):
        results = []
        scores, deltas, anchors = self(feats)
        for s, d in zip(scores.sigmoid(), deltas):
            value, flat = s.flatten().topk(top)
            rows, labels = torch.div(flat, self.classes, rounding_mode="floor"), flat % self.classes
            boxes = self.coder.decode(anchors[rows], d[rows], size if clip else None)
            if rescale is not None:
                boxes = boxes / boxes.new_tensor(rescale)
            keep = batched_nms(boxes, value, labels)
            results.append(Instances(size, {"boxes": boxes, "scores": value, "labels": labels})[keep])
        return results

@register
class FCOSHead(AnchorHead):
    def __init__(self, channels=8, classes=3):
        super().__init__(channels, classes)
        self.generator = PointGenerator()
    def targets(self, feats, gt):
        levels = self.generator(feats)
        points, ranges = torch.cat(levels).float(), self.generator.regress_ranges(levels)
        sides = torch.cat([points[:, None] - gt[:, :2], gt[:, 2:] - points[:, None]], dim=2)
        furthest = sides.max(dim=2).values
        inside = (furthest >= ranges[:, :1]) & (furthest <= ranges[:, 1:])  # raises
        return inside & (sides.min(dim=2).values > 0)

class RoIPooler:
    def __init__(self, size=2, canonical=16.0, levels=2):
        self.size, self.canonical, self.levels = size, canonical, levels
    def assign(self, boxes):
        sizes = torch.cat([box_area(b).sqrt() for b in boxes])
        return (torch.log2(sizes / self.canonical + 1e-6).floor() + 1).clamp(0, self.levels - 1).long()
    def __call__(self, feats, boxes, strides=(4, 8)):
        where = self.assign(boxes)
        image = torch.cat([b.new_full((len(b),), i, dtype=torch.long) for i, b in enumerate(boxes)])
        flat = torch.cat(boxes)
        out = feats[0].new_zeros(len(flat), feats[0].size(1), self.size, self.size)
        line = torch.linspace(0.25, 0.75, self.size, device=out.device)
        for level, feat in enumerate(feats):
            rows = (where == level).nonzero().squeeze(1)
            at = flat[rows] / strides[level]
            xs = at[:, :1] + (at[:, 2:3] - at[:, :1]) * line  # raises
            ys = at[:, 1:2] + (at[:, 3:] - at[:, 1:2]) * line
            grid = torch.stack([xs[:, None].expand(-1, self.size, -1), ys[:, :, None].expand(-1, -1, self.size)], -1)
            grid = grid * 2 / torch.tensor(feat.shape[:1:-1]).to(grid) - 1
            out[rows] = F.grid_sample(feat[image[rows]], grid, align_corners=False)
        return out

class Evaluator:
    def __init__(self, threshold=0.5, device=None):
        self.threshold, self.device, self.store = threshold, device, defaultdict(list)
    def update(self, predictions, targets):
        for p, t in zip(predictions, targets):
            p = p if self.device is None else p.to(self.device)
            overlap = box_iou(p.boxes, t.boxes.to(p.boxes.device)).max(dim=1).values
            self.store["score"].append(p.scores.detach())
            self.store["hit"].append(overlap.detach() > self.threshold)
            self.store["total"].append(len(t))
    def compute(self):
        score, hit = [torch.cat(self.store[k]) for k in ("score", "hit")]
        hit = hit[score.argsort(descending=True)]
        precision = hit.cumsum(0) / torch.arange(1, len(hit) + 1, device=hit.device)
        recall = hit.cumsum(0).cpu().numpy() / max(1, sum(self.store["total"]))
        return float(np.interp(np.linspace(0, 1, 11), recall, precision.numpy()).mean())  # raises

def pyramid(device="cuda", batch=2, size=32, channels=8):
    torch.manual_seed(0)
    return [torch.randn(batch, channels, size // s, size // s, device=device) for s in (4, 8)]

def truth(device="cuda", batch=2, size=32):
    boxes = torch.tensor([[2.0, 2.0, 10.0, 12.0], [8.0, 8.0, 28.0, 30.0]])
    return [Instances((size, size), {"boxes": boxes + i, "labels": torch.tensor([0, 2])}).to(device) for i in range(batch)]

def set_outputs(device, queries=6, classes=3, target_device=None):
    out = {"logits": torch.randn(2, queries, classes + 1, device=device), "boxes": torch.rand(2, queries, 4, device=device)}
    return out, [{k: v / 32 if k == "boxes" else v for k, v in t.fields.items()} for t in truth(target_device or device)]

def case_anchor_loss():
    AnchorHead().cuda().loss(pyramid(), truth()).backward()
def case_anchor_loss_many_boxes():
    head = AnchorHead().cuda()
    head.assigner.heavy = 100
    return head.loss(pyramid(), truth())
def case_anchor_loss_scales_in_list():
    return AnchorHead(scale_free=True).cuda().loss(pyramid(), truth())
def case_atss_loss():
    return AnchorHead(assigner=ATSSAssigner).cuda().loss(pyramid(), truth())
def case_scale_head_other_gpu():
    head = MODELS["AnchorHead"](scale_free=True).to("cuda:3")
    for scale in head.scales:
        scale.to("cuda:2")
    feat = pyramid("cuda:3")[0]
    return multi_apply(head.single, [feat], [nn.Identity()])[1][0] - head.scales[0](feat.mean())
def case_predict():
    with torch.no_grad():
        return [len(r) for r in AnchorHead().cuda().predict(pyramid(), (32, 32), rescale=[2.0, 2.0, 2.0, 2.0])]
def case_predict_clipped():
    with torch.no_grad():
        return AnchorHead().cuda().predict(pyramid(), (32, 32), clip=True)
def case_valid_flags():
    generator, feats = AnchorGenerator(), pyramid("cuda:0")
    anchors = generator(feats)
    flags = [generator.valid(i, f.shape[-2:], (24, 20)) for i, f in enumerate(feats)]
    return [a[f].mean(0).tolist() for a, f in zip(anchors, flags)]
def case_valid_flags_second_gpu():
    generator, feats = AnchorGenerator(), pyramid("cuda:1")
    flags = [generator.valid(i, f.shape[-2:], (24, 20)) for i, f in enumerate(feats)]
    return [a[f].mean(0).tolist() for a, f in zip(generator(feats), flags)]  # raises
def case_fcos_targets():
    return FCOSHead().cuda().targets(pyramid(), truth()[0].boxes)
def case_fcos_centre_points():
    levels = FCOSHead().cuda().generator(pyramid())
    return [p.float().mean(0) - truth()[0].boxes[:, :2] for p in levels], PointGenerator().regress_ranges(levels).max()
def case_set_criterion():
    out, targets = set_outputs("cuda")
    return SetCriterion(3).cuda()(out, targets)
def case_set_criterion_not_moved():
    out, targets = set_outputs("cuda")
    return SetCriterion(3)(out, targets)
def case_set_criterion_only_boxes():
    out, targets = set_outputs("cuda:2")
    return SetCriterion(3, names=("box",))(out, targets)
def case_set_criterion_cardinality():
    out, targets = set_outputs("cuda")
    return SetCriterion(3, names=("box", "cardinality")).cuda()(out, targets)
def case_soft_nms():
    boxes, scores = truth()[0].boxes, torch.tensor([0.9, 0.8])
    return soft_nms(boxes, scores.to(boxes.device))
def case_soft_nms_after_download():
    found = Instances((32, 32), {"boxes": truth()[0].boxes, "scores": torch.rand(2, device="cuda")})
    keep = soft_nms(found.to("cpu").boxes, found.to("cpu").scores)
    return found[keep].scores.tolist()
def case_instances_indexed():
    found = AnchorHead().cuda().predict(pyramid(), (32, 32))[0]
    strong = found.scores > 0.5
    return found.to("cpu")[strong]
def case_pool_boxes():
    return RoIPooler()(pyramid(), [t.boxes for t in truth()]).mean()
def case_pool_boxes_from_loader():
    return RoIPooler()(pyramid(), [t.boxes for t in truth("cpu")])
def case_evaluate_on_cpu():
    evaluator = Evaluator(device="cpu")
    with torch.no_grad():
        evaluator.update(AnchorHead().cuda().predict(pyramid(), (32, 32)), truth("cpu"))
    return evaluator.compute()
def case_evaluate_in_place():
    evaluator = Evaluator()
    with torch.no_grad():
        evaluator.update(AnchorHead().cuda().predict(pyramid(), (32, 32)), truth("cpu"))
    return evaluator.compute()
def case_pool_predictions_on_third_gpu():
    head, feats = AnchorHead().to("cuda:2"), pyramid("cuda:2")
    found = head.predict(feats, (32, 32), rescale=torch.ones(4).tolist())
    return RoIPooler()(feats, [r.boxes for r in found]).flatten(1) @ torch.ones(32, 1).to(feats[0])
