import argparse

import torch

from data import loader
from evaluator import Evaluator
from model import Detector


def train_one_epoch(model, optimizer, data_loader, device, scaler=None):
    model.train()
    for images, targets in data_loader:
        images = list(image.to(device) for image in images)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
    return losses.item()


@torch.no_grad()
def evaluate(model, data_loader, device):
    model.eval()
    evaluator = Evaluator()
    for images, targets in data_loader:
        images = list(img.to(device) for img in images)
        evaluator.update(model(images), targets)
    return evaluator.summarize()


def main(args):
    device = torch.device(args.device)
    model = Detector()
    model.to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, optimizer, loader(), device)
        print(f"epoch {epoch} loss {loss:.3f}", evaluate(model, loader(train=False), device))


def get_args_parser():
    parser = argparse.ArgumentParser(description="detection training", add_help=True)
    parser.add_argument("--device", default="cuda", type=str, help="device (use cuda or cpu)")
    parser.add_argument("--lr", default=0.01, type=float)
    parser.add_argument("--epochs", default=1, type=int)
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
