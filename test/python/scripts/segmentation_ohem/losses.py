import torch
import torch.nn as nn
import torch.nn.functional as F


class SoftDice(nn.Module):
    def __init__(self, ignore_index=255, eps=1.0):
        super().__init__()
        self.ignore_index, self.eps = ignore_index, eps

    def forward(self, logits, target):
        valid = target != self.ignore_index
        target = target.masked_fill(~valid, 0)
        onehot = F.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2) * valid[:, None]
        probs = logits.softmax(1) * valid[:, None]
        inter = (probs * onehot).sum((0, 2, 3))
        return 1 - ((2 * inter + self.eps) / ((probs + onehot).sum((0, 2, 3)) + self.eps)).mean()


class OhemCE(nn.Module):
    """keeps the hardest pixels; classes can be re-weighted after the selection"""

    def __init__(self, ratio=0.5, ignore_index=255, class_weights=None):
        super().__init__()
        self.ratio, self.ignore_index = ratio, ignore_index
        self.class_weights = class_weights

    def forward(self, logits, target):
        pixel = F.cross_entropy(logits, target, ignore_index=self.ignore_index, reduction="none").flatten()
        keep = max(1, int(self.ratio * pixel.numel()))
        values, order = pixel.topk(keep)
        if self.class_weights is not None:
            picked = target.flatten()[order].clamp(max=len(self.class_weights) - 1)
            values = values * torch.index_select(self.class_weights, 0, picked)  # raises
        return values.mean()


class Combined(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = nn.ModuleList(p for p, _ in parts)
        self.scales = [s for _, s in parts]

    def forward(self, logits, target):
        total = torch.zeros((), device=logits.device)
        for part, scale in zip(self.parts, self.scales):
            total = total + scale * part(logits, target)
        return total


def build_criterion(name, frequencies=None):
    weights = None
    if frequencies is not None:
        weights = 1.0 / torch.log(1.02 + frequencies)
    if name == "ce":
        return nn.CrossEntropyLoss(weight=weights, ignore_index=255)
    if name == "ohem":
        return OhemCE(class_weights=weights)
    if name == "ohem+dice":
        return Combined([(OhemCE(class_weights=weights), 1.0), (SoftDice(), 0.5)])
    raise KeyError(name)
