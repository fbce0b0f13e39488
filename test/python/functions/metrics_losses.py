"""Metrics and losses."""
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def batch(n=6, classes=3, device="cuda:0"):
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(n, classes, generator=g).to(device).requires_grad_()
    return logits, torch.randint(classes, (n,), generator=g).to(device)


# --- accumulated counts


class Confusion:
    def __init__(self, classes):
        self.classes = classes
        self.matrix = None

    def prepare(self, pred, target):
        return pred, target

    def update(self, pred, target):
        if self.matrix is None:
            self.matrix = torch.zeros(self.classes, self.classes, dtype=torch.long)
        pred, target = self.prepare(pred, target)
        counts = torch.bincount(target * self.classes + pred, minlength=self.classes ** 2)
        self.matrix += counts.view_as(self.matrix)  # raises

    def iou(self):
        m = self.matrix.double()
        return (m.diag() / (m.sum(0) + m.sum(1) - m.diag()).clamp(min=1)).mean().item()


class HostConfusion(Confusion):
    def prepare(self, pred, target):
        return pred.cpu(), target.cpu()


def case_confusion():
    logits, target = batch()
    meter = Confusion(3)
    meter.update(logits.argmax(1), target)
    return meter.iou()


def case_confusion_on_host():
    logits, target = batch()
    meter = HostConfusion(3)
    for _ in range(2):
        meter.update(logits.argmax(1), target)
    return meter.iou()


@dataclass
class Average:
    total: torch.Tensor = field(default_factory=lambda: torch.zeros(()))
    count: int = 0

    def update(self, value, n=1):
        self.total = self.total + value.detach() * n
        self.count += n

    @property
    def mean(self):
        return (self.total / max(1, self.count)).item()


class Meters(defaultdict):
    """Sums by name, one element each so that they can be gathered later."""

    def __init__(self):
        super().__init__(lambda: torch.zeros(1))

    def log(self, **values):
        for name, value in values.items():
            self[name] += value.detach()  # raises


def case_average_of_losses():
    logits, target = batch()
    meter = Average()
    for _ in range(3):
        meter.update(F.cross_entropy(logits, target), n=len(target))
    return meter.mean


def case_meters_by_name():
    logits, target = batch()
    meters = Meters()
    meters.log(ce=F.cross_entropy(logits, target), entropy=-(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean())
    return {k: v.item() for k, v in meters.items()}


# --- weighted and smoothed classification


def balanced_criterion(labels, classes):
    counts = torch.bincount(labels, minlength=classes).float()
    return nn.CrossEntropyLoss(weight=counts.sum() / (classes * counts.clamp(min=1)))


def train_step(criterion, device="cuda:0"):
    logits, target = batch(device=device)
    loss = criterion(logits, target)  # raises
    loss.backward()
    return logits.grad


def case_balanced():
    return train_step(balanced_criterion(torch.tensor([0, 0, 1, 2, 2, 2]), 3))


def case_balanced_moved():
    criterion = balanced_criterion(torch.tensor([0, 0, 1, 2, 2, 2]), 3)
    criterion.to("cuda:0")
    return train_step(criterion)


class DiceLoss(nn.Module):
    def __init__(self, classes, onehot="eye", eps=1.0):
        super().__init__()
        self.classes, self.eps = classes, eps
        self.onehot = getattr(self, f"_{onehot}")

    def _eye(self, target):
        return torch.eye(self.classes)[target]  # raises

    def _library(self, target):
        return F.one_hot(target, self.classes).float()

    def _eye_on_host(self, target):
        return torch.eye(self.classes)[target.cpu()].to(target.device)

    def forward(self, logits, target):
        p, t = logits.softmax(1), self.onehot(target)
        return 1 - ((2 * (p * t).sum(0) + self.eps) / ((p + t).sum(0) + self.eps)).mean()


def case_dice():
    return DiceLoss(3)(*batch())


def case_dice_library():
    return DiceLoss(3, "library").cuda()(*batch()).backward()


def case_dice_host():
    return DiceLoss(3, "eye_on_host")(*batch(device="cuda:1"))


# --- on images


class Perceptual(nn.Module):
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 4, 3)

    def normalize(self, x):
        return x.sub(self.mean).div(self.std)  # raises

    def forward(self, a, b, normalized=False):
        if not normalized:
            a, b = self.normalize(a), self.normalize(b)
        return F.l1_loss(self.features(a), self.features(b))


def case_perceptual():
    images = torch.rand(2, 3, 8, 8, device="cuda:0")
    return Perceptual().to(images.device)(images, images.flip(-1))


def case_perceptual_normalized():
    images = torch.rand(2, 3, 8, 8, device="cuda:0")
    return Perceptual().to(images.device)(images, images.flip(-1), normalized=True)


# --- ranking and accuracy


def topk_accuracy(output, target, topk=(1, 2)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))  # raises
        return [correct[:k].reshape(-1).float().sum().item() / len(target) for k in topk]


def validate(loader, net):
    results = []
    for x, y in loader:
        output = net(x.cuda())
        F.cross_entropy(output, y.cuda())
        results.append(topk_accuracy(output, y))
    return np.mean(results, axis=0)


def case_topk_accuracy():
    logits, target = batch()
    return topk_accuracy(logits, target)


def case_validate():
    net = nn.Linear(4, 3).cuda()
    return validate([(torch.randn(5, 4), torch.randint(3, (5,)))], net)


def ranking(anchor, near, far, margin=0.2):
    d_near, d_far = F.pairwise_distance(anchor, near), F.pairwise_distance(anchor, far)
    farther = torch.ones(d_near.shape[0])
    return F.margin_ranking_loss(d_far, d_near, farther, margin=margin)  # raises


def case_ranking():
    return ranking(*torch.randn(3, 5, 8, device="cuda:0"))


def roc_points(scores, labels):
    order = scores.argsort(descending=True)
    hits = labels[order].float()
    tpr, fpr = hits.cumsum(0) / hits.sum(), (1 - hits).cumsum(0) / (1 - hits).sum()
    return tpr, fpr


def case_area_under_curve():
    scores = torch.rand(8, device="cuda:0")
    tpr, fpr = roc_points(scores, torch.tensor([0, 1] * 4).cuda())
    return np.trapz(tpr.numpy(), fpr.numpy())  # raises


def case_area_under_curve_torch():
    scores = torch.rand(8, device="cuda:0")
    tpr, fpr = roc_points(scores, torch.tensor([0, 1] * 4).cuda())
    return float(torch.trapz(tpr, fpr)), tpr.cpu().numpy().max()


# --- running normalisation


class BalancedSum:
    """Divides each term by its running magnitude."""

    def __init__(self, momentum=0.9):
        self.momentum = momentum
        self.scale = {}

    def __call__(self, terms):
        total = 0
        for name, value in terms.items():
            if name not in self.scale:
                self.scale[name] = torch.tensor(1.0)
            self.scale[name].mul_(self.momentum).add_(value.detach(), alpha=1 - self.momentum)  # raises
            total = total + value / self.scale[name]
        return total


def case_balanced_sum():
    logits, target = batch()
    return BalancedSum()({"ce": F.cross_entropy(logits, target), "norm": logits.pow(2).mean()})


def summarize(history, reduce):
    return {name: reduce(values) for name, values in history.items()}


def case_summary_of_items():
    losses = [F.cross_entropy(*batch()) for _ in range(3)]
    return summarize({"loss": [x.item() for x in losses], "max": torch.stack(losses).tolist()}, np.mean)


def case_summary_of_tensors():
    losses = [F.cross_entropy(*batch()).detach() for _ in range(3)]
    return summarize({"loss": losses}, lambda values: float(np.mean(values)))  # raises


def case_unpacked_sums():
    """a tensor of sums and numbers has one dimension, what is unpacked of it none"""
    x = torch.randn(3).cuda()
    total, count = torch.tensor([x.sum(), 3])
    return x - total / count


def case_unpacked_rows():
    x = torch.randn(3).cuda()
    first, second = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return x - first  # raises


class Moments:
    def __init__(self):
        self.mean = 0

    def update(self, x):
        _, self.mean = torch.var_mean(x.cpu(), unbiased=False)

    def centred(self, x):
        return x - self.mean


def case_kept_mean():
    moments = Moments()
    x = torch.randn(3).cuda()
    moments.update(x)
    return moments.centred(x)
