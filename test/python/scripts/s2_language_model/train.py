import argparse

import torch

from data import VOCAB, make_loader
from model import LanguageModel


def to_device(batch, device, keys=("input_ids", "labels")):
    moved = dict(batch)
    for key in keys:
        moved[key] = batch[key].to(device)
    return moved


class Trainer:
    def __init__(self, model, loader, args):
        self.args = args
        self.model = model.to(args.device)
        self.loader = loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.step = 0

    def train_step(self, batch):
        out = self.model(
            batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["labels"]
        )
        loss = out["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def fit(self):
        for _ in range(self.args.epochs):
            total = 0.0
            for batch in self.loader:
                total += self.train_step(to_device(batch, self.args.device))
                self.step += 1
            print(f"step {self.step} loss {total / len(self.loader):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=4)
    args = parser.parse_args()
    args.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = Trainer(LanguageModel(VOCAB), make_loader(args.batch_size), args)
    trainer.fit()


if __name__ == "__main__":
    main()
