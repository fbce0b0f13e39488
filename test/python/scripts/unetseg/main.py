"""Segment shapes with a small U-Net: python main.py --loss weighted --coordinates"""
import argparse
from dataclasses import dataclass, fields

import torch

from seg import losses
from seg.data import CLASSES, class_frequencies, loaders
from seg.metrics import IoU, table
from seg.unet import UNet


@dataclass
class Config:
    images: int = 16
    size: int = 32
    batch_size: int = 4
    epochs: int = 1
    lr: float = 0.01
    seed: int = 0
    classes: int = len(CLASSES)
    loss: str = "ce"
    boundary: float = 0.0
    coordinates: bool = False
    flips: bool = False
    quiet: bool = False
    device: str = "cuda:0" if torch.cuda.is_available() else "cpu"

    @classmethod
    def parse(cls):
        parser = argparse.ArgumentParser(description=__doc__)
        for each in fields(cls):
            if each.type is bool:
                parser.add_argument(f"--{each.name}", action="store_true")
            else:
                parser.add_argument(f"--{each.name}", type=each.type, default=each.default)
        return cls(**vars(parser.parse_args()))


def predict(model, images, flips=False):
    scores = model(images).softmax(1)
    if flips:
        scores = (scores + model(images.flip(-1)).softmax(1).flip(-1)) / 2
    return scores.argmax(1)


def train(model, loader, criterion, optimizer, device):
    model.train()
    total = torch.zeros(1, device=device)
    for images, masks in loader:
        images, masks = images.to(device, non_blocking=True), masks.to(device, non_blocking=True)
        loss = criterion(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


@torch.no_grad()
def validate(model, loader, config):
    model.eval()
    iou = IoU(config.classes, config.device)
    for images, masks in loader:
        iou.update(predict(model, images.to(config.device), config.flips), masks.to(config.device))
    return iou


def main():
    config = Config.parse()
    torch.manual_seed(config.seed)
    train_loader, valid_loader = loaders(config)
    model = UNet(config.classes, coordinates=config.coordinates).to(config.device)
    criterion = losses.build(config, class_frequencies(train_loader, config.classes)).to(config.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total_steps=max(config.epochs, 1) + 1)
    best = None
    for epoch in range(config.epochs):
        loss = train(model, train_loader, criterion, optimizer, config.device)
        scheduler.step()
        iou = validate(model, valid_loader, config)
        print(f"epoch {epoch}: loss {loss:.3f}, mean IoU {iou.mean:.3f}")
        if best is None or iou.mean > best.mean:
            best = iou
    if best is not None and not config.quiet:
        print(table(CLASSES, best))


if __name__ == "__main__":
    main()
