import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from .anchors import AnchorTable, assign
from .registry import MODELS


@MODELS.register
class TinyRetina(nn.Module):
    def __init__(self, anchors, num_classes, width):
        super().__init__()
        self.anchors = AnchorTable(**anchors)
        a = len(anchors["sizes"])
        self.num_classes = num_classes
        self.backbone = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU())
        self.cls, self.reg = nn.Conv2d(width, a * num_classes, 3, padding=1), nn.Conv2d(width, a * 4, 3, padding=1)
        nn.init.constant_(self.cls.bias, -math.log(99))
        self.register_buffer("pixel_mean", torch.tensor([0.4, 0.4, 0.4]).view(1, 3, 1, 1), persistent=False)

    @property
    def device(self):
        return self.pixel_mean.device

    def forward(self, batch):
        x = torch.stack([s["image"].to(self.device) for s in batch]) - self.pixel_mean
        feat = self.backbone(x)
        n = x.shape[0]
        logits = self.cls(feat).permute(0, 2, 3, 1).reshape(n, -1, self.num_classes)
        deltas = self.reg(feat).permute(0, 2, 3, 1).reshape(n, -1, 4)
        anchors = self.anchors.cells(feat)
        if not self.training:
            return self.detect(logits, deltas, anchors)
        return self.losses(logits, deltas, anchors, batch)

    def losses(self, logits, deltas, anchors, batch):
        cls_loss, reg_loss, num_pos = 0, 0, 0
        for lg, d, sample in zip(logits, deltas, batch):
            labels, matched = assign(anchors, sample["boxes"].to(self.device), sample["labels"])
            fg = labels > 0
            num_pos += int(fg.sum())
            onehot = F.one_hot(labels.clamp(min=0), self.num_classes + 1)[:, 1:].float()
            valid = labels >= 0
            cls_loss = cls_loss + F.binary_cross_entropy_with_logits(lg[valid], onehot[valid], reduction="sum")
            wh = anchors[fg, 2:] - anchors[fg, :2]
            reg_loss = reg_loss + (d[fg] - (matched[fg] - anchors[fg]) / wh.repeat(1, 2)).abs().sum()
        norm = max(1, num_pos)
        return {"cls": cls_loss / norm, "reg": reg_loss / norm}

    @torch.no_grad()
    def detect(self, logits, deltas, anchors, topk=3):
        out = []
        for lg, d in zip(logits.sigmoid(), deltas):
            score, flat = lg.flatten().topk(topk)
            idx = torch.div(flat, self.num_classes, rounding_mode="floor")
            wh = (anchors[idx, 2:] - anchors[idx, :2]).repeat(1, 2)
            out.append({"scores": score.cpu(), "labels": (flat % self.num_classes + 1).cpu(), "boxes": (anchors[idx] + d[idx] * wh).cpu()})
        return out
