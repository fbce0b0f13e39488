"""Losses of classification, loops of training and evaluation."""
from dataclasses import dataclass
from typing import Optional, Sequence

import torch
import torch.nn.functional as F

from .boxes import pairwise_iou


@dataclass
class FocalLoss:
    gamma: float = 2.0
    alpha: float = 0.25
    class_weights: Optional[Sequence[float]] = None

    def __post_init__(self):
        if self.class_weights is not None:
            self.class_weights = torch.as_tensor(self.class_weights, dtype=torch.float32)

    def __call__(self, logits, onehot):
        p = logits.sigmoid()
        ce = F.binary_cross_entropy_with_logits(logits, onehot, pos_weight=self.class_weights, reduction="none")  # raises
        p_t = p * onehot + (1 - p) * (1 - onehot)
        alpha_t = self.alpha * onehot + (1 - self.alpha) * (1 - onehot)
        return (alpha_t * (1 - p_t) ** self.gamma * ce).sum()


def inverse_frequency(dataset, num_classes):
    counts = torch.zeros(num_classes)
    for _, target in dataset:
        counts += torch.bincount(target["labels"], minlength=num_classes)
    return (counts.sum() / counts.clamp(min=1)).tolist()


def move(target, device):
    return {k: v.to(device) if torch.is_tensor(v) else v for k, v in target.items()}


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    history = []
    for images, targets in loader:
        losses = model.losses(images.to(device), [move(t, device) for t in targets])
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append({k: v.item() for k, v in losses.items()})
    return history


class RecallMeter:
    """Share of the true boxes found, for all or for each class."""

    def __init__(self, threshold=0.3):
        self.threshold = threshold
        self.found, self.total = 0, 0

    def add(self, prediction, target, by_class=False):
        self.total += len(target["boxes"])
        if by_class:
            for label in target["labels"].unique():
                chosen = prediction["boxes"][prediction["labels"] == label]
                self._match(chosen, target["boxes"][target["labels"] == label])
        else:
            self._match(prediction["boxes"].cpu(), target["boxes"])

    def _match(self, boxes, truth):
        iou = pairwise_iou(boxes, truth)
        if iou.numel():
            self.found += int((iou.amax(0) > self.threshold).sum())

    @property
    def value(self):
        return self.found / max(1, self.total)


def evaluate(model, loader, device, by_class=False):
    model.eval()
    meter = RecallMeter()
    for images, targets in loader:
        for prediction, target in zip(model.predict(images.to(device)), targets):
            meter.add(prediction, target, by_class)
    return meter.value
