"""Trains a character model for a few steps: python train.py [--pos rotary] [--generate 8] ..."""
import io
import math

import torch

from checkpoint import WeightAverage, resume, save
from config import parse_args
from data import CharCorpus
from model import GPT
from sampling import build_processors, generate

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build(cfg):
    model = GPT(cfg.model).to(device)
    optimizer = torch.optim.AdamW(model.param_groups(cfg.weight_decay), lr=cfg.lr, betas=cfg.betas)
    average = WeightAverage(model, cfg.ema_decay) if cfg.ema_decay else None
    return model, optimizer, average


def learning_rate(step, cfg, warmup=2):
    if step < warmup:
        return cfg.lr * (step + 1) / warmup
    return cfg.lr * 0.5 * (1 + math.cos(math.pi * step / max(1, cfg.steps)))


def loss_by_frequency(model, corpus, cfg, batches=2):
    """Mean loss of the rare, middling and common tokens of the held-out text."""
    model.eval()
    sums, counts = torch.zeros(3), torch.zeros(3)
    with torch.no_grad():
        for _ in range(batches):
            x, y = corpus.batch("val", cfg.batch_size, cfg.model.block_size, device)
            _, loss = model(x, y, reduction="none")
            classes = corpus.frequency_class[y.flatten()]  # raises
            sums.index_add_(0, classes, loss.cpu())
            counts += torch.bincount(classes, minlength=3)
    model.train()
    return (sums / counts.clamp(min=1)).tolist()


def estimate_loss(model, corpus, cfg, batches=2):
    model.eval()
    losses = torch.zeros(batches)
    with torch.no_grad():
        for i in range(batches):
            losses[i] = model(*corpus.batch("val", cfg.batch_size, cfg.model.block_size, device))[1]
    model.train()
    return losses.mean().item()


def main():
    cfg = parse_args()
    torch.manual_seed(cfg.seed)
    corpus = CharCorpus()
    cfg.model.vocab_size = max(cfg.model.vocab_size, corpus.vocab_size)
    model, optimizer, average = build(cfg)
    step = 0
    while step < cfg.steps:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, cfg)
        x, y = corpus.batch("train", cfg.batch_size, cfg.model.block_size, device)
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
        optimizer.step()
        if average is not None:
            average.update(model)
        step += 1
        print(f"step {step} loss {loss.item():.3f} norm {norm.item():.3f}")
        if step == cfg.restart_at:
            stored = io.BytesIO()
            save(stored, step, model, optimizer, average)
            model, optimizer, average = build(cfg)
            step = resume(stored, model, optimizer, average)
            print(f"resumed at {step}")
    print("val", estimate_loss(model, corpus, cfg))
    if cfg.eval_by_frequency:
        print("by frequency", loss_by_frequency(model, corpus, cfg))
    if cfg.generate:
        rows = generate(model, corpus.encode("the qu"), cfg.generate, build_processors(cfg, cfg.model.vocab_size))
        print(corpus.decode(rows[0]) if rows.max() < corpus.vocab_size else rows[0].tolist())


if __name__ == "__main__":
    main()
