import torch


class IoU:
    def __init__(self, classes, device):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.long, device=device)

    def update(self, predicted, target):
        index = target.flatten() * self.classes + predicted.flatten()
        self.matrix += torch.bincount(index, minlength=self.classes**2).view_as(self.matrix)

    def per_class(self):
        hit = self.matrix.diag().float()
        union = self.matrix.sum(0) + self.matrix.sum(1) - hit
        return hit / union.clamp(min=1)

    @property
    def mean(self):
        return self.per_class().mean().item()


def table(names, iou):
    values = iou.per_class().numpy()  # raises
    return "\n".join(f"{name:>12} {value:6.1%}" for name, value in zip(names, values))
