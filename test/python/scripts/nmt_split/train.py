"""Copy-and-reverse task for the split translator."""
import argparse
from itertools import islice

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

from nmt import BOS, EOS, PAD
from nmt.model import SplitTranslator
from nmt.search import beam, greedy

VOCAB = 15


def stream(batch, seed=0):
    generator = torch.Generator().manual_seed(seed)
    while True:
        sources, targets = [], []
        for _ in range(batch):
            n = int(torch.randint(2, 6, (1,), generator=generator))
            words = torch.randint(3, VOCAB, (n,), generator=generator)
            sources.append(words)
            targets.append(torch.cat([torch.tensor([BOS]), words.flip(0), torch.tensor([EOS])]))
        yield pad_sequence(sources, True, PAD), pad_sequence(targets, True, PAD)


def token_loss(criterion, logits, gold, word_weights=None):
    losses = criterion(logits.flatten(0, 1), gold.flatten().to(logits.device))
    if word_weights is not None:
        losses = losses * word_weights[gold.flatten()]  # raises
    return losses.sum() / (gold != PAD).sum().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", nargs=2, default=["cuda:0", "cuda:1"])
    parser.add_argument("--attention", default="dot", choices=["dot", "local"])
    parser.add_argument("--bridge", action="store_true")
    parser.add_argument("--weigh-words", action="store_true")
    parser.add_argument("--search", default="greedy", choices=["greedy", "beam"])
    parser.add_argument("--coverage", type=float, default=0.0)
    parser.add_argument("--length-penalty", type=float, default=0.0)
    parser.add_argument("--block-repeats", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    devices = [torch.device(name) for name in args.devices]
    model = SplitTranslator(VOCAB, 8, devices, args.attention, args.bridge)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="none")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    weights = None
    if args.weigh_words:
        weights = torch.linspace(0.5, 1.5, VOCAB, device=devices[0])
    for source, target in islice(stream(4), args.steps):
        logits = model(source, target[:, :-1])
        loss = token_loss(criterion, logits, target[:, 1:], weights)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0)
        optimizer.step()
        print("loss", loss.item())

    model.eval()
    source, _ = next(stream(2, seed=9))
    if args.search == "beam":
        print(beam(model, source, length_penalty=args.length_penalty, block_repeats=args.block_repeats).tolist())
    else:
        print(greedy(model, source, coverage=args.coverage).tolist())


if __name__ == "__main__":
    main()
