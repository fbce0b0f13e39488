"""Train a character-level language model.

    python train.py --epochs 3 --cell gru
    python train.py --resume checkpoints/last.pt
"""
import argparse
import logging
import math

import torch
import torch.nn.functional as F

from charlm import CharRNN, Corpus
from charlm import checkpoint
from charlm.generate import sample
from charlm.model import detached

log = logging.getLogger("charlm")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--window", type=int, default=30)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--cell", choices=["lstm", "gru"], default="lstm")
    parser.add_argument("--tie", action="store_true", help="tie input and output embeddings")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--sample", action="store_true", help="write a sample after each epoch")
    parser.add_argument("--resume", metavar="FILE", default=None)
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def train_epoch(model, corpus, optimizer, args, device):
    model.train()
    state = model.initial(args.batch_size, device)
    total, steps = 0.0, 0
    for x, y in corpus.batches("train", args.batch_size, args.window, device):
        logits, state = model(x, detached(state))
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()  # raises
        total += loss.item()
        steps += 1
    return total / max(steps, 1)


@torch.no_grad()
def evaluate(model, corpus, args, device):
    model.eval()
    batch_size = max(args.batch_size // 4, 1)
    state = model.initial(batch_size, device)
    losses = []
    for x, y in corpus.batches("valid", batch_size, args.window, device):
        logits, state = model(x, state)
        losses.append(F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none"))
    return torch.cat(losses).mean().item()


def main():
    args = parse()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    device = torch.device(args.device)
    corpus = Corpus()
    model = CharRNN(corpus.size, hidden=args.hidden, layers=args.layers, cell=args.cell, tie=args.tie)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)

    start, best = 0, math.inf
    if args.resume:
        start, best = checkpoint.load(args.resume, model, optimizer)
        log.info("resumed from %s at epoch %d (best %.3f)", args.resume, start, best)
    model.to(device)
    log.info("%d parameters on %s", sum(p.numel() for p in model.parameters()), device)

    for epoch in range(start, start + args.epochs):
        train_loss = train_epoch(model, corpus, optimizer, args, device)
        valid_loss = evaluate(model, corpus, args, device)
        scheduler.step(valid_loss)
        log.info("epoch %d: train %.3f, valid %.3f, perplexity %.2f", epoch, train_loss, valid_loss, math.exp(valid_loss))
        if args.sample:
            log.info("sample: %r", sample(model, corpus, device=device))
        best = min(best, valid_loss)
        checkpoint.save(args.out, model, optimizer, epoch, best)


if __name__ == "__main__":
    main()
