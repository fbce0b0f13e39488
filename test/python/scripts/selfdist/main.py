"""Self-supervised training on blobs: python main.py --method dino --probe centroid"""
import argparse

import torch

from augment import Erase, Jitter, TwoViews, loader
from knn import accuracy
from methods import METHODS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", choices=sorted(METHODS), default="dino")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--probe", choices=["none", "knn", "centroid"], default="none")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")

    train = loader()
    method = METHODS[args.method](device, total=args.epochs * len(train))
    optimizer = torch.optim.SGD([p for p in method.parameters() if p.requires_grad], lr=args.lr, momentum=0.9)
    views = TwoViews(Jitter(), Erase())
    for epoch in range(args.epochs):
        total, seen = 0.0, 0
        for x, _, index in train:
            x, index = x.to(device, non_blocking=True), index.to(device, non_blocking=True)
            loss = method.loss(*views(x), index)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            method.after_step()
            total, seen = total + loss.detach() * len(x), seen + len(x)
        print(f"{args.method} epoch {epoch} loss {(total / seen).item():.4f}")
    if args.probe != "none":
        print(args.probe, accuracy(method.student, loader(shuffle=False), device, args.probe))


if __name__ == "__main__":
    main()
