import copy
import logging
from typing import Any, Dict, Iterator, List, Tuple, Union

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

logger = logging.getLogger(__name__)


class Boxes:
    """XYXY boxes. `.to` returns a new object."""

    def __init__(self, tensor: torch.Tensor):
        device = tensor.device if isinstance(tensor, torch.Tensor) else torch.device("cpu")
        tensor = torch.as_tensor(tensor, dtype=torch.float32, device=device)
        self.tensor = tensor.reshape((-1, 4))

    def to(self, device: torch.device):
        return Boxes(self.tensor.to(device=device))

    def area(self) -> torch.Tensor:
        b = self.tensor
        return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])

    def __getitem__(self, item) -> "Boxes":
        if isinstance(item, int):
            return Boxes(self.tensor[item].view(1, -1))
        return Boxes(self.tensor[item])

    def __len__(self) -> int:
        return self.tensor.shape[0]

    @classmethod
    def cat(cls, lst: List["Boxes"]) -> "Boxes":
        return cls(torch.cat([b.tensor for b in lst]))

    @property
    def device(self):
        return self.tensor.device


class Instances:
    def __init__(self, image_size: Tuple[int, int], **kwargs: Any):
        self._image_size = image_size
        self._fields: Dict[str, Any] = {}
        for k, v in kwargs.items():
            self.set(k, v)

    def __setattr__(self, name, val):
        if name.startswith("_"):
            super().__setattr__(name, val)
        else:
            self.set(name, val)

    def __getattr__(self, name):
        if name == "_fields" or name not in self._fields:
            raise AttributeError(name)
        return self._fields[name]

    def set(self, name, value):
        self._fields[name] = value

    def to(self, *args, **kwargs) -> "Instances":
        ret = Instances(self._image_size)
        for k, v in self._fields.items():
            if hasattr(v, "to"):
                v = v.to(*args, **kwargs)
            ret.set(k, v)
        return ret

    def __getitem__(self, item):
        ret = Instances(self._image_size)
        for k, v in self._fields.items():
            ret.set(k, v[item])
        return ret


def pairwise_iou(a: Boxes, b: Boxes) -> torch.Tensor:
    lt = torch.max(a.tensor[:, None, :2], b.tensor[:, :2])  # raises
    rb = torch.min(a.tensor[:, None, 2:], b.tensor[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    union = a.area()[:, None] + b.area() - inter
    return torch.where(inter > 0, inter / union, torch.zeros(1, dtype=inter.dtype, device=inter.device))


class Matcher:
    def __init__(self, thresholds=(.3, .5), labels=(0, -1, 1)):
        self.thresholds = [-float("inf"), *thresholds, float("inf")]
        self.labels = labels

    def __call__(self, q):
        vals, matches = q.max(dim=0)
        out = matches.new_full(matches.size(), 1, dtype=torch.int8)
        for l, low, high in zip(self.labels, self.thresholds[:-1], self.thresholds[1:]):
            out[(vals >= low) & (vals < high)] = l
        return matches, out


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=((2, 4), (4, 8)), strides=(2, 4)):
        super().__init__()
        self.strides = strides
        self.cell_anchors = [torch.tensor([[-s / 2, -s / 2, s / 2, s / 2] for s in ss]) for ss in sizes]

    def grid(self, sizes, device) -> Iterator[torch.Tensor]:
        for (h, w), s, base in zip(sizes, self.strides, self.cell_anchors):
            sx = torch.arange(0, w * s, step=s, dtype=torch.float32, device=device)
            sy = torch.arange(0, h * s, step=s, dtype=torch.float32, device=device)
            yy, xx = torch.meshgrid(sy, sx, indexing="ij")
            shifts = torch.stack([xx, yy, xx, yy], -1).reshape(-1, 1, 4)
            yield (shifts + base.view(1, -1, 4)).reshape(-1, 4)  # raises

    def forward(self, feats):
        return [Boxes(g) for g in self.grid([f.shape[-2:] for f in feats], feats[0].device)]


class BufferedAnchors(AnchorGenerator):
    """the same anchors in buffers, behind the attribute's old name"""

    @property
    def cell_anchors(self):
        return [getattr(self, f"cell_{i}") for i in range(self._n)]

    @cell_anchors.setter
    def cell_anchors(self, value):
        self._n = len(value)
        for i, c in enumerate(value):
            self.register_buffer(f"cell_{i}", c, persistent=False)


def nms(boxes: torch.Tensor, scores: torch.Tensor, thr: float) -> torch.Tensor:
    order, keep = scores.argsort(descending=True), []
    iou = pairwise_iou(Boxes(boxes), Boxes(boxes))
    alive = torch.ones_like(scores, dtype=torch.bool)
    for i in order.tolist():
        if alive[i]:
            keep.append(i)
            alive &= iou[i] <= thr
    return torch.tensor(keep, dtype=torch.long, device=boxes.device)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.c2 = nn.Conv2d(4, 4, 3, stride=2, padding=1)

    def forward(self, x) -> Dict[str, torch.Tensor]:
        p1 = self.c1(x)
        return {"p1": p1, "p2": self.c2(p1.relu())}


# clean
def case_rpn_targets():
    device = torch.device("cuda")
    net = Backbone().to(device)
    gen = BufferedAnchors(sizes=[[2, 4], [4, 8]])
    gen.to(device)
    gt = Instances((8, 8), gt_boxes=Boxes([[0, 0, 4, 4], [2, 2, 7, 7]]), gt_classes=torch.tensor([1, 2]), file_name="a.jpg").to(device)
    feats = list(net(torch.rand(1, 3, 8, 8, device=device)).values())
    anchors = Boxes.cat(gen(feats))
    idx, lab = Matcher()(pairwise_iou(gt.gt_boxes, anchors))
    classes = gt.gt_classes[idx]
    classes[lab == 0] = 0
    pos = torch.nonzero(lab == 1).squeeze(1)
    perm = torch.randperm(pos.numel(), device=pos.device)[:2]
    return anchors[pos[perm]].area().sum().item(), classes.bincount().tolist()


# broken
def case_anchor_list_attribute():
    device = torch.device("cuda")
    net, gen = Backbone().to(device), AnchorGenerator().to(device)
    x = torch.rand(1, 3, 8, 8)
    feats = net(x.to(device))
    return [len(b) for b in gen([feats["p1"], feats["p2"]])]


# broken
def case_instances_moved_and_dropped():
    device = torch.device("cuda:0")
    inputs = [{"image": torch.randint(0, 255, (3, 8, 8)), "instances": Instances((8, 8), gt_boxes=Boxes([[1, 1, 5, 5]]))}]
    mean = torch.tensor([103.5, 116.3, 123.7]).view(-1, 1, 1).to(device)
    images = [(d["image"].to(device) - mean) / 58. for d in inputs]
    for d in inputs:
        if "instances" in d:
            d["instances"].to(device)
    feats = Backbone().to(device)(torch.stack(images))
    anchors = BufferedAnchors(((2,), (4,))).to(device)([feats["p1"], feats["p2"]])
    ious = [pairwise_iou(d["instances"].gt_boxes, a) for d in inputs for a in anchors]
    return max(i.max() for i in ious)


# clean
def case_nms_and_cpu_evaluator():
    rng = np.random.default_rng(0)
    xy = torch.as_tensor(rng.uniform(0, 8, (10, 2)), dtype=torch.float32)
    wh = torch.as_tensor(rng.uniform(1, 5, (10, 2)), dtype=torch.float32)
    boxes, scores = torch.cat([xy, xy + wh], 1).cuda(), torch.rand(10).cuda()
    keep = nms(boxes, scores, .4)
    dets = Instances((8, 8), pred_boxes=Boxes(boxes), scores=scores)[keep]
    cpu = dets.to(torch.device("cpu"))
    res = [dict(bbox=b, score=s) for b, s in zip(cpu.pred_boxes.tensor.numpy().tolist(), cpu.scores.tolist())]
    gt = Boxes(torch.tensor([[0., 0, 4, 4]]))
    logger.info("iou %s", pairwise_iou(gt, cpu.pred_boxes).numpy())
    return len(res)


# broken
def case_per_class_offsets():
    boxes = torch.rand(6, 4).cuda() * 4
    boxes[:, 2:] += boxes[:, :2]
    scores = torch.rand(6, device=boxes.device)
    labels = torch.randint(0, 3, (6,))

    def batched_nms(b, s, idxs, thr):
        if b.numel() == 0:
            return torch.empty((0,), dtype=torch.int64, device=b.device)
        offsets = idxs.to(b.dtype) * (b.max() + 1)  # raises
        return nms(b + offsets[:, None], s, thr)

    return batched_nms(boxes, scores, labels, .5)


# clean
def case_box_coder_weights():
    def deltas(src: Boxes, dst: Boxes, weights: Union[Tuple[float, ...], torch.Tensor] = (10., 10., 5., 5.)):
        w = src.tensor.new_tensor(weights) if not torch.is_tensor(weights) else weights.to(src.device)
        s, d = src.tensor, dst.tensor
        c = lambda t: (t[:, :2] + t[:, 2:]) / 2
        sz = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=1e-3)
        return torch.cat([(c(d) - c(s)) / sz(s), (sz(d) / sz(s)).log()], 1) * w

    a = Boxes(torch.tensor([[0., 0, 2, 2], [1, 1, 3, 4]])).to(torch.device("cuda"))
    b = copy.deepcopy(a)
    b.tensor[:, 2:] += torch.tensor(1.)
    b.tensor[0] = torch.tensor([0., 0., 3., 3.])
    out = deltas(a, b)
    out2 = deltas(a, b, torch.tensor([10., 10., 5., 5.]))
    sel = a[torch.tensor([True, False])]
    return F.smooth_l1_loss(out, out2).item(), len(sel)
