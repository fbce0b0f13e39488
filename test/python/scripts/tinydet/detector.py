import torch
import torch.nn as nn
import torch.nn.functional as F

from anchors import AnchorMaker
from boxes import BoxCoder, iou, nms, soft_nms


class Detector(nn.Module):
    def __init__(self, classes, cache='size', suppress='hard', width=12):
        super().__init__()
        self.classes = classes
        self.register_buffer('pixel_mean', torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1))
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.anchors = AnchorMaker(4, (6.0, 12.0), per_device=cache == 'device')
        self.cls_head = nn.Conv2d(width, self.anchors.per_cell * classes, 1)
        self.box_head = nn.Conv2d(width, self.anchors.per_cell * 4, 1)
        self.coder = BoxCoder()
        self.suppress = suppress

    def heads(self, images):
        f = self.backbone(images - self.pixel_mean)
        n = len(images)
        cls = self.cls_head(f).permute(0, 2, 3, 1).reshape(n, -1, self.classes)
        box = self.box_head(f).permute(0, 2, 3, 1).reshape(n, -1, 4)
        return cls, box, self.anchors(f)

    def loss(self, images, targets):
        cls, box, anchors = self.heads(images)
        total = images.new_zeros(())
        for c, b, target in zip(cls, box, targets):
            best, which = iou(anchors, target['boxes']).max(1)
            goal = torch.zeros_like(c)
            positive = best > 0.4
            goal[positive, target['labels'][which[positive]]] = 1.0
            total = total + F.binary_cross_entropy_with_logits(c, goal)
            deltas = self.coder.encode(anchors, target['boxes'][which])
            total = total + (F.smooth_l1_loss(b, deltas, reduction='none').sum(1) * positive).mean()
        return total / len(images)

    @torch.no_grad()
    def detect(self, images, limit=10):
        cls, box, anchors = self.heads(images)
        found = []
        for c, b in zip(cls.sigmoid(), box):
            score, label = c.max(1)
            boxes = self.coder.decode(anchors, b)
            score, top = score.topk(limit)
            boxes, label = boxes[top], label[top]
            if self.suppress == 'hard':
                keep = nms(boxes, score, 0.5)
                boxes, label, score = boxes[keep], label[keep], score[keep]
            else:
                score = soft_nms(boxes, score)
            found.append({'boxes': boxes, 'labels': label, 'scores': score})
        return found
