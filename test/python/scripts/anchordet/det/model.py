"""Single-stage detector with one level."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from .anchors import REGISTRY
from .boxes import BoxCoder, NMS, pairwise_iou


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Detector(nn.Module):
    def __init__(self, num_classes=3, width=8, anchors="ratios", sizes=None, nms="hard", criterion=None):
        super().__init__()
        self.num_classes = num_classes
        self.backbone = nn.Sequential(conv(3, width, 2), conv(width, width, 2), conv(width, width, 2))
        self.anchors = REGISTRY[anchors](8) if sizes is None else REGISTRY[anchors](8, sizes=sizes)
        a = self.anchors.per_cell
        self.cls = nn.Conv2d(width, a * num_classes, 1)
        self.box = nn.Conv2d(width, a * 4, 1)
        self.centre = nn.Conv2d(width, a, 1)
        nn.init.constant_(self.cls.bias, -2.0)
        self.coder = BoxCoder()
        self.nms = NMS[nms]
        self.criterion = criterion

    def heads(self, images):
        feature = self.backbone(images)
        n = images.size(0)
        flat = lambda x, c: x.permute(0, 2, 3, 1).reshape(n, -1, c)
        return feature, flat(self.cls(feature), self.num_classes), flat(self.box(feature), 4), flat(self.centre(feature), 1)[..., 0]

    def assign(self, anchors, target):
        labels = torch.full((len(anchors),), -1, dtype=torch.long, device=anchors.device)
        iou = pairwise_iou(anchors, target["boxes"])
        best, which = iou.max(dim=1)
        positive = best > 0.3
        positive[iou.argmax(dim=0)] = True
        labels[positive] = target["labels"][which[positive]]
        return labels, target["boxes"][which], positive

    def losses(self, images, targets):
        feature, logits, deltas, centre = self.heads(images)
        anchors = self.anchors(feature)
        total_cls = total_box = total_centre = 0.0
        for i, target in enumerate(targets):
            labels, matched, positive = self.assign(anchors, target)
            onehot = F.one_hot(labels.clamp(min=0), self.num_classes) * positive[:, None]
            total_cls = total_cls + self.criterion(logits[i], onehot.float()) / positive.sum()
            goal = self.coder.encode(matched[positive], anchors[positive])
            total_box = total_box + F.smooth_l1_loss(deltas[i][positive], goal)
            quality = pairwise_iou(self.coder.decode(deltas[i].detach(), anchors), target["boxes"]).amax(1)
            total_centre = total_centre + F.binary_cross_entropy_with_logits(centre[i], quality.clamp(0, 1))
        return {"cls": total_cls, "box": total_box, "centre": total_centre}

    @torch.no_grad()
    def predict(self, images, floor=0.05, limit=20):
        feature, logits, deltas, centre = self.heads(images)
        anchors = self.anchors(feature)
        results = []
        for i in range(images.size(0)):
            scores, labels = logits[i].sigmoid().max(dim=1)
            top = scores.topk(min(limit, len(scores))).indices
            top = top[scores[top] > floor] if (scores[top] > floor).any() else top[:5]
            boxes = self.coder.decode(deltas[i][top], anchors[top])
            kept, values = self.nms(boxes, scores[top])
            quality = centre[i][top].sigmoid()[kept]
            ranked = (values * quality).sqrt()  # raises
            results.append({"boxes": boxes[kept], "labels": labels[top][kept], "scores": ranked})
        return results
