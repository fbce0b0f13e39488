import argparse

import torch
from torch.utils.data import DataLoader

from dataset import CLASSES, SyntheticCity
from losses import build_criterion
from models import create_model


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="unet")
    parser.add_argument("--loss", default="ohem+dice", choices=["ce", "ohem", "ohem+dice"])
    parser.add_argument("--balance", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    return parser.parse_args()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    n = len(CLASSES)
    hist = torch.zeros(n, n)
    for batch in loader:
        pred = model(batch["image"].to(device)).argmax(1).cpu()
        gt = batch["mask"]
        k = gt < n
        hist += torch.bincount(n * gt[k] + pred[k], minlength=n * n).view(n, n)
    return (hist.diag() / (hist.sum(0) + hist.sum(1) - hist.diag())).mean().item()


def main():
    args = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_set = SyntheticCity("train")
    loader = DataLoader(train_set, batch_size=2, shuffle=True, drop_last=True)
    val_loader = DataLoader(SyntheticCity("val"), batch_size=2)

    extra = {"coords": True} if args.model == "unet" else {}
    model = create_model(args.model, num_classes=len(CLASSES), **extra).to(device)
    criterion = build_criterion(args.loss, train_set.class_frequencies() if args.balance else None).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.PolynomialLR(optimizer, 10) if hasattr(torch.optim.lr_scheduler, "PolynomialLR") else None

    for epoch in range(args.epochs):
        model.train()
        for batch in loader:
            image, mask = batch["image"].to(device), batch["mask"].to(device)
            loss = criterion(model(image), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if sched is not None:
            sched.step()
        print(epoch, loss.item(), validate(model, val_loader, device))


if __name__ == "__main__":
    main()
