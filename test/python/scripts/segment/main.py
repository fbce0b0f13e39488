import argparse
from dataclasses import fields

import numpy as np
import torch

from config import TrainConfig
from data import make_loaders
from losses import CombinedLoss
from model import TinyUNet


def parse_args():
    parser = argparse.ArgumentParser()
    for f in fields(TrainConfig):
        if f.type in (int, float):
            parser.add_argument("--" + f.name.replace("_", "-"), type=f.type, default=f.default)
    return TrainConfig(**vars(parser.parse_args()))


def train_one_epoch(model, loader, criterion, optimizer, device, epoch):
    model.train()
    total, seen = torch.zeros(1, device=device), 0
    for batch in loader:
        image, mask = batch["image"].to(device), batch["mask"].to(device)
        loss = criterion(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() * image.size(0)
        seen += image.size(0)
    print(f"epoch {epoch}: loss {(total / seen).item():.4f}")


@torch.no_grad()
def evaluate(model, loader, cfg, device):
    model.eval()
    hist = np.zeros((cfg.num_classes, cfg.num_classes))
    for batch in loader:
        pred = model(batch["image"].to(device)).argmax(1).cpu()
        keep = batch["mask"] != cfg.ignore_index
        flat = batch["mask"][keep] * cfg.num_classes + pred[keep]
        hist += np.bincount(flat.numpy(), minlength=cfg.num_classes ** 2).reshape(cfg.num_classes, -1)
    iou = np.diag(hist) / (hist.sum(0) + hist.sum(1) - np.diag(hist) + 1e-6)
    print("mIoU", iou.mean())


def main():
    cfg = parse_args()
    device = cfg.resolve_device()
    torch.manual_seed(0)
    train_loader, val_loader = make_loaders(cfg)
    model = TinyUNet(cfg.num_classes).to(device)
    criterion = CombinedLoss(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        train_one_epoch(model, train_loader, criterion, optimizer, device, epoch)
        evaluate(model, val_loader, cfg, device)


if __name__ == "__main__":
    main()
