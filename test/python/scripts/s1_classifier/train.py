import argparse
import os
import tempfile

import torch

from data import loaders
from model import build
from utils import AverageMeter, accuracy, cross_entropy_smooth, load_checkpoint, save_checkpoint


def parse_args():
    p = argparse.ArgumentParser(description="train a small classifier")
    p.add_argument("--model", default="resnet")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    p.add_argument("--out", default=None)
    return p.parse_args()


def run_epoch(model, loader, device, optimizer=None):
    training = optimizer is not None
    model.train(training)
    loss_meter, acc_meter = AverageMeter(), AverageMeter()
    with torch.set_grad_enabled(training):
        for images, target in loader:
            images = images.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            logits = model(images)
            loss = cross_entropy_smooth(logits, target)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_meter.update(loss.item(), images.size(0))
            acc_meter.update(accuracy(logits, target), images.size(0))
    return loss_meter.avg, float(acc_meter.avg)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    out = args.out or tempfile.mkdtemp()
    device = torch.device(args.device)
    train_loader, val_loader = loaders(args)
    model = build(args.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    model.to(device)
    for epoch in range(args.epochs):
        run_epoch(model, train_loader, device, optimizer)
        loss, acc = run_epoch(model, val_loader, device)
        print(f"epoch {epoch} loss {loss:.3f} acc {acc:.2f}")
        save_checkpoint(os.path.join(out, "last.pt"), model, optimizer, epoch)
    load_checkpoint(os.path.join(out, "last.pt"), model, optimizer, device)
    run_epoch(model, train_loader, device, optimizer)


if __name__ == "__main__":
    main()
