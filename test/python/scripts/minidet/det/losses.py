import torch
import torch.nn.functional as F
from torch import nn

from .boxes import giou


class FocalLoss(nn.Module):
    def __init__(self, alpha, gamma=2.0):
        super().__init__()
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits, target):
        p = logits.sigmoid()
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        pt = p * target + (1 - p) * (1 - target)
        at = self.alpha * target + (1 - self.alpha) * (1 - target)
        return (at * (1 - pt) ** self.gamma * ce).sum()


class ClasswiseFocalLoss(FocalLoss):
    def __init__(self, frequencies):
        alpha = 1 - torch.tensor(frequencies)
        super().__init__(None)
        del self.alpha
        self.register_buffer("alpha", alpha)


def l1_box_loss(coder, refs, deltas, boxes):
    return F.smooth_l1_loss(deltas, coder.encode(refs, boxes), reduction="sum")


def giou_box_loss(coder, refs, deltas, boxes):
    return (1 - giou(coder.decode(refs, deltas), boxes)).sum()
