import logging
from collections import defaultdict

import torch

from config import Config
from data import build_loaders
from losses import CombinedLoss
from models import create_model

log = logging.getLogger("segtrain")


def iou(pred, mask, classes):
    cm = torch.bincount((mask * classes + pred).flatten(), minlength=classes ** 2).view(classes, classes)
    return cm.diag() / (cm.sum(0) + cm.sum(1) - cm.diag()).clamp(min=1)


def run_epoch(model, loader, criterion, cfg, epoch, optimizer=None):
    model.train(optimizer is not None)
    totals = defaultdict(float)
    scores = torch.zeros(cfg.classes)
    for batch in loader:
        image = batch["image"].to(cfg.device, non_blocking=True)
        mask = batch["mask"].to(cfg.device, non_blocking=True)
        with torch.set_grad_enabled(optimizer is not None):
            logits = model(image)
            loss, parts = criterion(logits, mask, epoch)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for k, v in parts.items():
            totals[k] += v.item()
        scores += iou(logits.argmax(1).cpu(), batch["mask"], cfg.classes)
    return dict(totals), scores / len(loader)


def main():
    logging.basicConfig(level=logging.INFO)
    cfg = Config()
    torch.manual_seed(cfg.seed)
    train, val = build_loaders(cfg)
    model = create_model(cfg).to(cfg.device)
    criterion = CombinedLoss(cfg).to(cfg.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.optim.lr, weight_decay=cfg.optim.weight_decay)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: min(1.0, (e + 1) / cfg.optim.warmup))
    for epoch in range(cfg.epochs):
        log.info("train %s %s", *run_epoch(model, train, criterion, cfg, epoch, optimizer))
        log.info("valid %s %s", *run_epoch(model, val, criterion, cfg, epoch))
        warmup.step()


if __name__ == "__main__":
    main()
