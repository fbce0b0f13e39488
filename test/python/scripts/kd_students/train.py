"""Distill a wide network into a narrow one."""
import argparse
import logging

import torch

from distill import models
from distill.data import Prefetcher, loaders, mixup
from distill.ema import ModelEMA
from distill.losses import DistillationLoss

logger = logging.getLogger(__name__)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--teacher-width", type=int, default=64)
parser.add_argument("--temperature", type=float, default=4.0)
parser.add_argument("--hint", type=float, default=0.0, help="weight of the feature loss")
parser.add_argument("--mixup", type=float, default=0.0, metavar="ALPHA")
parser.add_argument("--ema", action="store_true", help="evaluate the averaged weights")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = torch.device(args.device)
        self.teacher = models.teacher(args.teacher_width)
        self.student = models.student(args.width)
        self.ema = ModelEMA(self.student) if args.ema else None
        self.student.to(self.device)
        regressor = models.Regressor(args.width, args.teacher_width) if args.hint else None
        self.criterion = DistillationLoss(args.temperature, hint=args.hint, regressor=regressor).to(self.device)
        parameters = [*self.student.parameters(), *self.criterion.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=args.lr, momentum=0.9, nesterov=True)
        train, test = loaders(args.batch_size)
        self.train_loader, self.test_loader = (Prefetcher(each, self.device) for each in (train, test))

    def step(self, x, y):
        labels = [y]
        if self.args.mixup > 0:
            x, *labels = mixup(x, y, self.args.mixup)
        output = self.student(x, features=True)
        with torch.no_grad():
            guide = self.teacher(x, features=True)
        loss = self.criterion(output, guide, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.ema is not None:
            self.ema.update(self.student)
        return loss.item()

    @torch.no_grad()
    def accuracy(self):
        model = self.student.eval() if self.ema is None else self.ema.module
        right = torch.zeros((), dtype=torch.long, device=self.device)
        for x, y in self.test_loader:
            right += model(x).argmax(1).eq(y).sum()
        self.student.train()
        return right.item() / len(self.test_loader.loader.dataset)

    def fit(self):
        for epoch in range(self.args.epochs):
            losses = [self.step(x, y) for x, y in self.train_loader]
            logger.info("epoch %d: loss %.3f, accuracy %.1f%%", epoch, sum(losses) / len(losses), 100 * self.accuracy())


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    args = parser.parse_args()
    torch.manual_seed(0)
    Trainer(args).fit()


if __name__ == "__main__":
    main()
