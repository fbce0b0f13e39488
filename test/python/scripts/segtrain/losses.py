import torch
import torch.nn as nn
import torch.nn.functional as F

LAPLACIAN = torch.tensor([[-1.0, -1, -1], [-1, 8, -1], [-1, -1, -1]]).reshape(1, 1, 3, 3)


class DiceLoss(nn.Module):
    def __init__(self, classes, smooth=1.0):
        super().__init__()
        self.classes, self.smooth = classes, smooth

    def forward(self, logits, mask):
        prob = logits.softmax(1)
        hot = F.one_hot(mask, self.classes).permute(0, 3, 1, 2).float()
        inter = (prob * hot).sum((2, 3))
        return 1 - ((2 * inter + self.smooth) / (prob.sum((2, 3)) + hot.sum((2, 3)) + self.smooth)).mean()


class BoundaryLoss(nn.Module):
    def __init__(self, threshold=0.1):
        super().__init__()
        self.kernel = LAPLACIAN
        self.threshold = threshold

    def edges(self, mask):
        response = F.conv2d(mask.float().unsqueeze(1), self.kernel, padding=1)  # raises
        return (response.abs() > self.threshold).float().squeeze(1)

    def forward(self, logits, mask):
        weight = 1 + 4 * self.edges(mask)
        return (F.cross_entropy(logits, mask, reduction="none") * weight).mean()


class CombinedLoss(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.register_buffer("class_weight", torch.tensor([0.3] + [1.0] * (cfg.classes - 1)))
        self.dice = DiceLoss(cfg.classes)
        self.boundary = BoundaryLoss()
        self.boundary_from = cfg.boundary_from

    def forward(self, logits, mask, epoch):
        parts = {"ce": F.cross_entropy(logits, mask, self.class_weight), "dice": self.dice(logits, mask)}
        if epoch >= self.boundary_from:
            parts["boundary"] = 0.5 * self.boundary(logits, mask)
        return sum(parts.values()), parts
