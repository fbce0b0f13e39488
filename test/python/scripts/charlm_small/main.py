import argparse
import math

import torch

import checkpoint
from data import Corpus
from model import GPT, GPTConfig


def get_lr(it, warmup, total, lr):
    if it < warmup:
        return lr * (it + 1) / warmup
    return lr * 0.5 * (1 + math.cos(math.pi * (it - warmup) / max(1, total - warmup)))


@torch.no_grad()
def estimate_loss(model, corpus, args, device):
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(args.eval_iters)
        for k in range(args.eval_iters):
            X, Y = corpus.batch(split, args.batch_size, args.block_size, device)
            Y = torch.where(torch.rand(Y.shape, device=device) < 0.1, torch.full_like(Y, -1), Y)
            losses[k] = model(X, Y)[1].item()
        out[split] = losses.mean()
    model.train()
    return out


def train(model, optimizer, corpus, args, device, start=0, best=None):
    best = torch.tensor(float("inf"), device=device) if best is None else best
    for it in range(start, args.iters):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(it, 1, args.iters, args.lr)
        X, Y = corpus.batch("train", args.batch_size, args.block_size, device)
        _, loss, _ = model(X, Y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        best = torch.minimum(best, loss.detach())
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=2)
    parser.add_argument("--eval-iters", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--block-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--gpu", type=int, default=1)
    args = parser.parse_args()
    device = torch.device(f"cuda:{args.gpu}") if torch.cuda.device_count() > args.gpu else torch.device("cpu")
    torch.manual_seed(1337)
    corpus = Corpus()
    config = GPTConfig(block_size=args.block_size, vocab_size=len(corpus))
    model = GPT(config).to(device)
    optimizer = model.configure_optimizers(args.lr)
    best = train(model, optimizer, corpus, args, device)
    stream = checkpoint.save(model, optimizer, args.iters, best)

    model = GPT(config).to(device)
    optimizer = model.configure_optimizers(args.lr)
    start, best = checkpoint.restore(stream, model, optimizer, device)
    args.iters += 2
    best = train(model, optimizer, corpus, args, device, start, best)
    print({k: round(v.item(), 3) for k, v in estimate_loss(model, corpus, args, device).items()}, float(best))
    prompt = torch.tensor(corpus.encode("the"), dtype=torch.long, device=device)[None]
    model.eval()
    print(corpus.decode(model.generate(prompt, 4, top_k=5)[0].tolist()))


if __name__ == "__main__":
    main()
