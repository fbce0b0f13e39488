#!/usr/bin/env python3
import argparse
import logging

import torch
import torch.nn as nn

from nmt import GreedySearch, Seq2Seq, Vocab, batches, make_corpus

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("nmt")


class Run:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
        self.train_set, self.dev_set = make_corpus(12), make_corpus(4, seed=1)
        self.sv, self.tv = Vocab("abcdefg"), Vocab("ABCDEFG")
        self.model = Seq2Seq(len(self.sv), len(self.tv)).to(self.device)
        self.loss = nn.CrossEntropyLoss(ignore_index=Vocab.PAD)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.search = GreedySearch(self.model, self.tv, max_len=args.max_len)

    def epoch(self):
        self.model.train()
        total = 0.0
        for src, lens, tgt in batches(self.train_set, self.sv, self.tv, 4):
            src, tgt = src.to(self.device), tgt.to(self.device)
            logits = self.model(src, lens, tgt, Vocab.BOS)
            loss = self.loss(logits.flatten(0, 1), tgt.flatten())
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.opt.step()
            total += loss.item()
        return total

    def validate(self):
        self.model.eval()
        exact = 0
        for src, lens, tgt in batches(self.dev_set, self.sv, self.tv, 2):
            hyp = self.search(src.to(self.device), lens)
            for h, t in zip(hyp.tolist(), tgt.tolist()):
                exact += self.tv.decode(h) == self.tv.decode(t)
        return exact / len(self.dev_set)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--max-len", type=int, default=6)
    run = Run(p.parse_args())
    for e in range(run.args.epochs):
        log.info("%d loss %.3f", e, run.epoch())
        log.info("   exact match %.2f", run.validate())


if __name__ == "__main__":
    main()
