# broken
import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from loader import build_loader
from tagger import Tagger, token_accuracy

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("finetune")


class Trainer:
    def __init__(self, args):
        self.args = args
        self.local_rank = int(os.environ.get("LOCAL_RANK", 0))
        self.world_size = int(os.environ.get("WORLD_SIZE", 1))
        self.device = f"cuda:{self.local_rank}"
        self.model = Tagger(args.vocab, args.tags)
        self.model.to(self.device)
        if self.world_size > 1:
            dist.init_process_group("gloo")
            self.model = DistributedDataParallel(self.model, device_ids=[self.local_rank], output_device=self.local_rank)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.loader = build_loader(args.vocab, args.tags, rank=self.local_rank, world=self.world_size)
        self.weight = torch.linspace(1., 2., args.tags, device=self.device)

    def loss(self, logits, tags, mask):
        per_token = nn.functional.cross_entropy(logits.transpose(1, 2), tags, weight=self.weight, reduction="none")
        return (per_token * mask).sum() / mask.sum().clamp(min=1)

    def run_epoch(self, epoch):
        self.model.train()
        total = correct = 0
        for i, (words, tags, mask) in enumerate(self.loader):
            words = words.to(self.device)
            tags, mask = tags.to(self.device), mask.to(self.device)
            logits = self.model(words)
            loss = self.loss(logits, tags, mask)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            c, t = token_accuracy(logits.detach(), tags, mask)
            correct, total = correct + c, total + t
        log.info("rank %d epoch %d loss %.3f acc %.3f", self.local_rank, epoch, loss.item(), correct / max(total, 1))

    def fit(self):
        try:
            for e in range(self.args.epochs):
                self.run_epoch(e)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--vocab", type=int, default=20)
    ap.add_argument("--tags", type=int, default=4)
    Trainer(ap.parse_args()).fit()
