import torch


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.long)

    def update(self, predicted, target):
        index = target.flatten() * self.classes + predicted.flatten()
        counts = torch.bincount(index, minlength=self.classes**2)
        self.matrix += counts.view(self.classes, self.classes).cpu()

    def iou(self):
        hit = self.matrix.diag().float()
        return hit / (self.matrix.sum(0) + self.matrix.sum(1) - hit).clamp(min=1)


class PixelAccuracy:
    def __init__(self):
        self.correct, self.total = 0, 0

    def update(self, predicted, target):
        self.correct = self.correct + (predicted == target).sum()
        self.total += target.numel()

    def value(self):
        return float(self.correct) / self.total
