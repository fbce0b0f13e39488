import argparse
import logging
import os
import tempfile

import torch

from textclf.data import build_loaders
from textclf.finetune import L2SP, freeze, load_backbone, param_groups, save_backbone
from textclf.model import build_model
from textclf.trainer import Trainer


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--vocab-size", type=int, default=40)
    parser.add_argument("--num-classes", type=int, default=3)
    parser.add_argument("--max-len", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backbone", choices=["transformer", "gru"], default="transformer")
    parser.add_argument("--positions", choices=["sin", "learned"], default="sin")
    parser.add_argument("--pooling", choices=["cls", "max", "mean"], default="cls")
    parser.add_argument("--balance", action="store_true")
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--finetune", action="store_true")
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    train_loader, valid_loader = build_loaders(args)

    model = build_model(args).to(device)
    weights = None
    if args.balance:
        counts = train_loader.dataset.class_counts(args.num_classes)
        weights = counts.sum() / (counts.clamp(min=1) * args.num_classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    trainer = Trainer(model, optimizer, device, weights, args.smoothing)
    for epoch in range(args.epochs):
        loss = trainer.train_epoch(train_loader)
        accuracy = trainer.evaluate(valid_loader, report=args.report)
        logging.info("epoch %d loss %.4f accuracy %.3f", epoch, loss, accuracy)

    if args.finetune:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "backbone.pt")
            save_backbone(model, path)
            tuned = build_model(args)
            tuned.to(device)
            load_backbone(tuned, path)
        regularizer = None
        if args.freeze:
            freeze(tuned.backbone)
        else:
            regularizer = L2SP(tuned, 0.01)
        groups = param_groups(tuned, args.lr)
        tuner = Trainer(tuned, torch.optim.SGD(groups, lr=args.lr), device, regularizer=regularizer)
        logging.info("tuned loss %.4f", tuner.train_epoch(train_loader))


if __name__ == "__main__":
    main()
