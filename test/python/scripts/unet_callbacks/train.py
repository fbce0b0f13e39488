import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from seg.data import Shapes
from seg.engine import Engine, LossMeter, Validate
from seg.losses import DiceLoss, FocalLoss
from seg.unet import UNet

CLASSES = 3


def build_loss(name):
    if name == "dice":
        return DiceLoss(CLASSES)
    if name == "focal":
        return FocalLoss([0.2, 1.0, 1.0])
    return nn.CrossEntropyLoss(weight=torch.tensor([0.3, 1.0, 1.0]))


def main(args):
    torch.manual_seed(0)
    gpus = [torch.device("cuda", index) for index in args.gpus]
    device = gpus[0]
    model = UNet(CLASSES, coords=args.coords).to(device)
    if args.warmup:
        with torch.no_grad():
            model(torch.zeros(1, 3, args.side, args.side, device=device))
    if len(gpus) > 1:
        model = nn.DataParallel(model, device_ids=gpus)
    criterion = build_loss(args.loss).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train = DataLoader(Shapes(8, args.side, CLASSES, augment=True, raw=args.late_normalize), batch_size=4)
    valid = DataLoader(Shapes(4, args.side, CLASSES, raw=args.late_normalize), batch_size=2)
    callbacks = [LossMeter(), Validate(valid, CLASSES, args.tta)]
    Engine(model, criterion, optimizer, device, callbacks, args.late_normalize).fit(train, args.epochs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", choices=["ce", "dice", "focal"], default="ce")
    parser.add_argument("--gpus", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--coords", action="store_true")
    parser.add_argument("--warmup", action="store_true")
    parser.add_argument("--tta", action="store_true")
    parser.add_argument("--late-normalize", action="store_true")
    main(parser.parse_args())
