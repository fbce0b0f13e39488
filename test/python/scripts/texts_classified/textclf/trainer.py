import logging

import numpy as np
import torch
import torch.nn.functional as F

from textclf.data import batch_to

log = logging.getLogger("textclf")


class Trainer:
    def __init__(self, model, optimizer, device, class_weights=None, smoothing=0.0, regularizer=None):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.class_weights = class_weights
        self.smoothing = smoothing
        self.regularizer = regularizer

    def loss(self, logits, labels):
        if self.class_weights is not None:
            return F.cross_entropy(logits, labels, weight=self.class_weights)  # raises
        if self.smoothing:
            n = logits.size(-1)
            target = torch.full_like(logits, self.smoothing / (n - 1))
            target.scatter_(1, labels.unsqueeze(1), 1 - self.smoothing)
            return -(target * logits.log_softmax(-1)).sum(-1).mean()
        return F.cross_entropy(logits, labels)

    def train_epoch(self, loader):
        self.model.train()
        running = torch.tensor(0.0)
        for batch in loader:
            batch = batch_to(batch, self.device)
            loss = self.loss(self.model(batch["input_ids"], batch["lengths"]), batch["labels"])
            if self.regularizer is not None:
                loss = loss + self.regularizer(self.model)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            running = running + loss.detach()
        return running.item() / len(loader)

    @torch.no_grad()
    def evaluate(self, loader, report=False):
        self.model.eval()
        predictions, targets = [], []
        for batch in loader:
            labels = batch["labels"]
            batch = batch_to(batch, self.device, skip=("labels",))
            logits = self.model(batch["input_ids"], batch["lengths"])
            predictions.append(logits.argmax(-1))
            targets.append(labels)
        predictions, targets = torch.cat(predictions), torch.cat(targets)
        if report:
            self.report(predictions, targets)
        return (predictions.cpu() == targets).float().mean().item()

    def report(self, predictions, targets):
        truth = targets.numpy()
        guess = predictions.numpy()  # raises
        for label in np.unique(truth):
            hit = np.logical_and(truth == label, guess == label).sum()
            log.info("class %d recall %.3f", label, hit / max((truth == label).sum(), 1))
