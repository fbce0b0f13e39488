import argparse
import contextlib
import time

import torch

from model import CharLM
from tokenizer import CharTokenizer
from utils import Shadow, cosine_lr

TEXT = "it was the best of times, it was the worst of times; " * 8

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--block", type=int, default=12)
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--accumulate", type=int, default=2)
args = parser.parse_args()

device_type = "cuda" if "cuda" in args.device else "cpu"
tok = CharTokenizer(TEXT)
data = tok.encode(TEXT)
split = {"train": data[:-80], "val": data[-80:]}
sampler = torch.Generator().manual_seed(1337)


def get_batch(name):
    source = split[name]
    ix = torch.randint(len(source) - args.block - 1, (args.batch,), generator=sampler)
    x = torch.stack([source[i:i + args.block] for i in ix])
    y = torch.stack([source[i + 1:i + 1 + args.block] for i in ix])
    if device_type == "cuda":
        return x.pin_memory().to(args.device, non_blocking=True), y.pin_memory().to(args.device, non_blocking=True)
    return x.to(args.device), y.to(args.device)


@torch.no_grad()
def estimate(model, iters=2):
    model.eval()
    out = {}
    for name in split:
        losses = torch.zeros(iters)
        for k in range(iters):
            _, loss = model(*get_batch(name))
            losses[k] = loss.item()
        out[name] = losses.mean()
    model.train()
    return out


model = CharLM(tok.vocab_size).to(args.device)
shadow = Shadow(model)
optimizer = model.configure_optimizer(args.lr, 0.1)
best = float("inf")
for it in range(args.steps):
    for group in optimizer.param_groups:
        group["lr"] = cosine_lr(it, args.lr, 2, args.steps)
    for micro in range(args.accumulate):
        x, y = get_batch("train")
        _, loss = model(x, y)
        (loss / args.accumulate).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    shadow.step(model)
    if it % 2 == 1:
        with shadow.applied(model):
            losses = estimate(model)
        if losses["val"] < best:
            best = losses["val"]
        print(f"{it}: {losses['train']:.3f} {losses['val']:.3f} {loss.item():.3f}")

prompt = tok.encode("it was").unsqueeze(0).to(args.device)
print(tok.decode(model.generate(prompt, 10, top_k=5)[0].tolist()))
