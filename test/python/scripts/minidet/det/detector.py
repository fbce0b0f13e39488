import torch
from torch import nn

from .anchors import AnchorGenerator, PointGenerator
from .boxes import BoxCoder, ScaledBoxCoder, nms, pairwise_iou, soft_nms
from .losses import ClasswiseFocalLoss, FocalLoss, giou_box_loss, l1_box_loss


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Detector(nn.Module):
    def __init__(self, classes, head, nms, box_loss, coder, alpha, width=8):
        super().__init__()
        self.classes = classes
        self.head, self.nms_kind = head, nms
        self.stem = nn.Sequential(conv(3, width, 2), conv(width, width, 2))
        self.stage = conv(width, width, 2)
        self.lateral = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(2)])
        self.references = AnchorGenerator() if head == "anchor" else PointGenerator()
        k = self.references.per_location
        self.cls = nn.Conv2d(width, k * classes, 3, padding=1)
        self.reg = nn.Conv2d(width, k * 4, 3, padding=1)
        self.coder = {"plain": BoxCoder, "scaled": ScaledBoxCoder}[coder]()
        self.box_loss = {"l1": l1_box_loss, "giou": giou_box_loss}[box_loss]
        self.focal = FocalLoss(0.25) if alpha == "scalar" else ClasswiseFocalLoss([0.5, 0.7, 0.8])
        self.register_buffer("pixel_mean", torch.tensor([0.2, 0.2, 0.2]).view(3, 1, 1), persistent=False)

    def features(self, images):
        c1 = self.stem(images - self.pixel_mean)
        return [lat(c) for lat, c in zip(self.lateral, (c1, self.stage(c1)))]

    def flatten(self, maps, channels):
        return torch.cat([m.flatten(2).transpose(1, 2).reshape(m.size(0), -1, channels) for m in maps], dim=1)

    def forward(self, images, targets=None):
        features = self.features(images)
        refs = self.references(features)
        logits = self.flatten([self.cls(f) for f in features], self.classes)
        deltas = self.flatten([self.reg(f) for f in features], 4)
        if targets is not None:
            counts = [f.shape[-2] * f.shape[-1] for f in features]
            return self.losses(refs, counts, logits, deltas, targets)
        return [self.detect(refs, s, d) for s, d in zip(logits.sigmoid(), deltas)]

    def assign(self, refs, counts, target):
        iou = pairwise_iou(refs, target["boxes"])
        if self.head == "point":
            iou = iou * self.references.admissible(counts, target["boxes"])
        best, which = iou.max(dim=1)
        which[iou.argmax(dim=0)] = torch.arange(iou.size(1), device=iou.device)
        positive = best > 0.4
        positive[iou.argmax(dim=0)] = True
        return positive, which

    def losses(self, refs, counts, logits, deltas, targets):
        cls, box, n = 0, 0, 0
        for s, d, t in zip(logits, deltas, targets):
            positive, which = self.assign(refs, counts, t)
            onehot = torch.zeros_like(s)
            onehot[positive, t["labels"][which[positive]]] = 1
            cls = cls + self.focal(s, onehot)
            box = box + self.box_loss(self.coder, refs[positive], d[positive], t["boxes"][which[positive]])
            n += int(positive.sum())
        return {"cls": cls / max(n, 1), "box": box / max(n, 1)}

    def detect(self, refs, scores, deltas, top=12):
        best, label = scores.max(dim=1)
        best, order = best.topk(top)
        boxes = self.coder.decode(refs[order], deltas[order])
        if self.nms_kind == "soft":
            keep = soft_nms(boxes, best)
        elif self.nms_kind == "class":
            offset = label[order].to(boxes) * 100
            keep = nms(boxes + offset[:, None], best, 0.5)
        elif self.nms_kind == "hard":
            keep = nms(boxes, best, 0.5)
        else:
            keep = slice(None)
        return {"boxes": boxes[keep], "scores": best[keep], "labels": label[order][keep]}
