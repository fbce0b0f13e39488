import torch
import torch.nn as nn
import torch.nn.functional as F


class DiceLoss(nn.Module):
    def __init__(self, num_classes, ignore_index):
        super().__init__()
        self.num_classes, self.ignore_index = num_classes, ignore_index

    def forward(self, logits, target):
        valid = target != self.ignore_index
        onehot = F.one_hot(target.masked_fill(~valid, 0), self.num_classes).permute(0, 3, 1, 2).float()
        probs = logits.softmax(1) * valid[:, None]
        onehot = onehot * valid[:, None]
        inter = (probs * onehot).sum((0, 2, 3))
        return 1 - ((2 * inter + 1) / (probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + 1)).mean()


class BoundaryLoss:
    """Penalizes edges of the prediction that lie away from those of the target."""

    def __init__(self, weight):
        self.weight = weight
        self.kernel = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]).view(1, 1, 3, 3)

    def __call__(self, logits, target):
        fg = 1 - logits.softmax(1)[:, :1]
        gt = ((target > 0) & (target < 255)).float().unsqueeze(1)
        edges = F.conv2d(fg, self.kernel, padding=1).abs()  # raises
        return self.weight * (edges * (1 - gt)).mean()


class CombinedLoss(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ce = nn.CrossEntropyLoss(weight=torch.tensor(cfg.class_weights), ignore_index=cfg.ignore_index)
        self.dice = DiceLoss(cfg.num_classes, cfg.ignore_index)
        self.boundary = BoundaryLoss(cfg.boundary_weight)

    def forward(self, logits, target):
        return self.ce(logits, target) + self.dice(logits, target) + self.boundary(logits, target)
