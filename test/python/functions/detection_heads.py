# Single stage detector, written the way our team writes its training repo.
import itertools
import logging
from abc import ABC, abstractmethod
from collections import OrderedDict

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

log = logging.getLogger(__name__)

ASSIGNERS = {}


def register(name):
    def wrap(cls):
        ASSIGNERS[name] = cls
        return cls
    return wrap


def box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def pairwise_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])  # raises
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    return inter / (box_area(a)[:, None] + box_area(b)[None] - inter + 1e-6)


def random_boxes(n, size=16.0, **kw):
    xy = torch.rand(n, 2, **kw) * size
    wh = torch.rand(n, 2, **kw) * size / 2 + 1
    return torch.cat([xy, xy + wh], dim=1)


class AnchorGenerator(nn.Module):
    """Anchors per feature level; grids are cached per shape."""

    def __init__(self, strides=(4, 8), scales=(1.0, 2.0)):
        super().__init__()
        self.strides = strides
        self.cell_anchors = [self._base(s, scales) for s in strides]
        self._cache = {}

    @staticmethod
    def _base(stride, scales):
        half = torch.tensor(scales) * stride / 2
        return torch.stack([-half, -half, half, half], dim=1)

    def set_cell_anchors(self, device):
        if self.cell_anchors[0].device == device:
            return
        self.cell_anchors = [c.to(device) for c in self.cell_anchors]

    def grid(self, shape, stride, device):
        h, w = shape
        ys = torch.arange(h, device=device) * stride
        xs = torch.arange(w, device=device) * stride
        gy, gx = torch.meshgrid(ys, xs, indexing="ij")
        gx, gy = gx.reshape(-1), gy.reshape(-1)
        return torch.stack([gx, gy, gx, gy], dim=1)

    def forward(self, features):
        device = features[0].device
        self.set_cell_anchors(device)
        out = []
        for f, stride, base in zip(features, self.strides, self.cell_anchors):
            shifts = self.grid(f.shape[-2:], stride, device)
            out.append((shifts[:, None] + base[None]).reshape(-1, 4))
        return torch.cat(out)


class StaleAnchorGenerator(AnchorGenerator):
    def forward(self, features):
        device = features[0].device
        out = []
        for i, (f, stride) in enumerate(zip(features, self.strides)):
            shifts = self.grid(f.shape[-2:], stride, device)
            anchors = shifts[:, None] + self.cell_anchors[i][None]  # raises
            out.append(anchors.reshape(-1, 4))
        return torch.cat(out)


class Backbone(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=4, padding=1)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, x):
        p2 = F.relu(self.stem(x))
        return OrderedDict(p2=p2, p3=F.relu(self.down(p2)))


class Neck(nn.Module):
    """Lateral convs. `as_list` keeps the old checkpoint layout."""

    def __init__(self, names, width=4, as_list=False):
        super().__init__()
        convs = {n: nn.Conv2d(width, width, 1) for n in names}
        self.names = list(names)
        self.laterals = list(convs.values()) if as_list else nn.ModuleList(convs.values())

    def forward(self, feats):
        outs = []
        for name, conv in zip(self.names, self.laterals):
            outs.append(conv(feats[name]))  # raises
        return outs


class Head(nn.Module):
    def __init__(self, width=4, anchors=2, classes=3):
        super().__init__()
        self.classes = classes
        self.cls = nn.Conv2d(width, anchors * classes, 1)
        self.reg = nn.Conv2d(width, anchors * 4, 1)

    def forward(self, feats):
        n = feats[0].size(0)
        logits = torch.cat([self.cls(f).permute(0, 2, 3, 1).reshape(n, -1, self.classes) for f in feats], 1)
        deltas = torch.cat([self.reg(f).permute(0, 2, 3, 1).reshape(n, -1, 4) for f in feats], 1)
        return logits, deltas


class Assigner(ABC):
    @abstractmethod
    def __call__(self, anchors, gt, labels):
        ...


@register("max_iou")
class MaxIoU(Assigner):
    def __init__(self, thr=0.3):
        self.thr = thr

    def __call__(self, anchors, gt, labels):
        iou = pairwise_iou(anchors, gt)
        best, which = iou.max(1)
        target = labels[which]
        target[best < self.thr] = -1
        return target, gt[which]


@register("cpu_max_iou")
class MaxIoUOnCpu(MaxIoU):
    """IoU matrices of crowded images do not fit; assign on the host."""

    def __call__(self, anchors, gt, labels):
        dev = anchors.device
        target, boxes = super().__call__(anchors.cpu(), gt.cpu(), labels.cpu())
        return target.to(dev), boxes.to(dev)


@register("lazy_cpu")
class LazyCpu(MaxIoU):
    def __call__(self, anchors, gt, labels):
        if len(gt) > 2:
            anchors, gt, labels = (t.cpu() for t in (anchors, gt, labels))
        return super().__call__(anchors, gt, labels)


class Detector(nn.Module):
    def __init__(self, assigner="max_iou", generator=AnchorGenerator, as_list=False):
        super().__init__()
        self.backbone = Backbone()
        self.neck = Neck(("p2", "p3"), as_list=as_list)
        self.head = Head()
        self.anchors = generator()
        self.assign = ASSIGNERS[assigner]()

    @property
    def device(self):
        return next(self.parameters()).device

    def extract(self, images):
        return self.neck(self.backbone(images))

    def loss(self, images, targets):
        feats = self.extract(images)
        logits, deltas = self.head(feats)
        anchors = self.anchors(feats)
        losses = []
        for i, t in enumerate(targets):
            target, boxes = self.assign(anchors, t["boxes"], t["labels"])
            fg = target >= 0
            cls = F.cross_entropy(logits[i], target.clamp(min=0), reduction="none")
            reg = F.l1_loss(deltas[i][fg] + anchors[fg], boxes[fg], reduction="sum")
            losses.append(cls.mean() + reg / max(int(fg.sum()), 1))
        return torch.stack(losses).mean()


def make_targets(n, per=2, device=None):
    return [{"boxes": random_boxes(per, device=device), "labels": torch.randint(0, 3, (per,), device=device), "id": i} for i in range(n)]


def targets_to(targets, device):
    return [{k: v.to(device) if torch.is_tensor(v) else v for k, v in t.items()} for t in targets]


def nms(boxes, scores, thr=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel():
        i = order[0]
        keep.append(int(i))
        if order.numel() == 1:
            break
        iou = pairwise_iou(boxes[i].unsqueeze(0), boxes[order[1:]])[0]
        order = order[1:][iou <= thr]
    return torch.tensor(keep, dtype=torch.long)


class CocoWriter:
    def __init__(self):
        self.rows = []

    def add(self, image_id, boxes, scores):
        for b, s in zip(boxes, scores):
            self.rows.append((image_id, b.tolist(), float(s)))

    def add_dense(self, image_id, boxes):
        arr = boxes.numpy()  # raises
        self.rows.append((image_id, np.round(arr, 2), None))


class RunningAP:
    def __init__(self, n_classes):
        self.hits = torch.zeros(n_classes)
        self.total = torch.zeros(n_classes)

    def update(self, pred, target):
        ok = (pred == target)
        ones = torch.ones_like(target, dtype=torch.float)
        self.total.index_add_(0, target.cpu(), ones.cpu())
        self.hits.index_add_(0, target.cpu(), ok.float())  # raises

    def value(self):
        return (self.hits / self.total.clamp(min=1)).mean().item()


def case_train_step_moves_targets():
    model = Detector().cuda()
    images = torch.rand(2, 3, 16, 16)
    targets = make_targets(2)
    loss = model.loss(images.to(model.device), targets_to(targets, model.device))
    loss.backward()
    return loss.item()


def case_train_step_targets_not_rebound():
    model = Detector().cuda()
    images = torch.rand(2, 3, 16, 16).cuda()
    targets = make_targets(2)
    for t in targets:
        t = {k: v.to(model.device) if torch.is_tensor(v) else v for k, v in t.items()}
    return model.loss(images, targets)


def case_cell_anchors_left_behind():
    model = Detector(generator=StaleAnchorGenerator).to("cuda:0")
    images = torch.rand(1, 3, 16, 16, device="cuda:0")
    return model.loss(images, make_targets(1, device="cuda:0"))


def case_cell_anchors_follow_two_gpus():
    gen = AnchorGenerator()
    model = Backbone()
    sizes = []
    for dev in ("cuda:0", "cuda:1", "cpu"):
        feats = list(model.to(dev)(torch.rand(1, 3, 16, 16, device=dev)).values())
        sizes.append(gen(feats).sum().item())
    return sizes


def case_neck_in_python_list():
    model = Detector(as_list=True)
    images = torch.rand(1, 3, 16, 16)
    model.extract(images)
    model.cuda()
    return model.extract(images.cuda())


def case_crowded_image_assigned_on_host():
    model = Detector(assigner="cpu_max_iou").to("cuda:1")
    images = torch.rand(1, 3, 16, 16, device="cuda:1")
    targets = make_targets(1, per=6, device="cuda:1")
    loss = model.loss(images, targets)
    return loss.item()


def case_lazy_assigner_few_boxes():
    model = Detector(assigner="lazy_cpu").cuda()
    images = torch.rand(1, 3, 16, 16).cuda()
    return model.loss(images, make_targets(1, per=2, device=model.device)).item()


def case_lazy_assigner_result_left_on_host():
    assign = ASSIGNERS["lazy_cpu"](0.1)
    anchors = random_boxes(8, device="cuda")
    logits = torch.randn(8, 3, device="cuda")
    total = []
    for per in (2, 5):
        t = make_targets(1, per=per, device="cuda")[0]
        target, _ = assign(anchors, t["boxes"], t["labels"])
        total.append(F.cross_entropy(logits, target.clamp(min=0)))  # raises
    return total


def case_nms_keep_index_is_host():
    boxes = random_boxes(6).cuda()
    scores = torch.rand(6, device="cuda")
    keep = nms(boxes, scores)
    kept = boxes[keep], scores[keep]
    writer = CocoWriter()
    writer.add(3, *kept)
    return writer.rows


def case_nms_keep_gathered():
    boxes = random_boxes(6).cuda()
    scores = torch.rand(6, device="cuda")
    keep = nms(boxes, scores)
    final = torch.index_select(boxes, 0, keep)  # raises
    return final


def case_writer_dense_half_moved():
    model = Detector().cuda().eval()
    writer = CocoWriter()
    with torch.no_grad():
        feats = model.extract(torch.rand(1, 3, 16, 16).cuda())
        logits, deltas = model.head(feats)
    scores = logits.softmax(-1).max(-1)[0].cpu()
    writer.add(0, deltas[0][:2], scores[0][:2])
    writer.add_dense(0, deltas[0].detach())
    return writer.rows


def case_running_ap_mixed():
    logits = torch.randn(6, 3, device="cuda")
    labels = torch.randint(0, 3, (6,), device="cuda")
    ap = RunningAP(3)
    ap.update(logits.argmax(1).cpu(), labels.cpu())
    ap.update(logits.argmax(1), labels)
    return ap.value()


def case_images_padded_by_template():
    images = [torch.rand(3, h, 16, device="cuda") for h in (12, 16)]
    tall = max(i.shape[1] for i in images)
    canvas = images[0].new_zeros(len(images), 3, tall, 16)
    for dst, src in zip(canvas, images):
        dst[:, :src.shape[1]].copy_(src)
    mean = torch.tensor([0.4, 0.5, 0.6]).view(-1, 1, 1).type_as(canvas)
    return Detector().cuda().extract((canvas - mean))[0].shape
