"""Train a small language model whose two halves are on two GPUs.

    python main.py --steps 100
    python main.py --devices cuda:2 cuda:3
"""
import argparse
import itertools
import math

import torch

from stages import Config, TwoStageLM
from stages.data import Stream


def get_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--micro", type=int, default=2, help="micro-batches per step")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--devices", nargs=2, default=(), metavar="DEVICE")
    parser.add_argument("--tie", action="store_true", help="use the token embedding as output layer")
    parser.add_argument("--aux", type=float, default=0.0, help="weight of the loss after the first stage")
    parser.add_argument("--complete", type=int, default=0, metavar="N", help="continue a few sequences by N tokens")
    parser.add_argument("--log-every", type=int, default=4)
    return parser.parse_args()


def parameter_groups(model, weight_decay=0.01):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def gradient_norm(model):
    squares = [p.grad.pow(2).sum().item() for p in model.parameters() if p.grad is not None]
    return math.sqrt(sum(squares))


def train(model, stream, args):
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, total_iters=args.steps)
    for step, tokens in enumerate(itertools.islice(stream, args.steps), start=1):
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part in tokens.chunk(args.micro):
            loss = model.loss(part) / args.micro
            loss.backward()
            total += loss.item()
        norm = gradient_norm(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % args.log_every == 0:
            print(f"step {step:4d}  loss {total:.3f}  gradient {norm:.2f}")


@torch.no_grad()
def accuracy(model, stream, batches=2):
    model.eval()
    right = seen = 0
    for tokens in itertools.islice(stream, batches):
        logits, _ = model(tokens[:, :-1])
        predicted = logits.argmax(-1).to(tokens.device)
        right += (predicted == tokens[:, 1:])[:, 2:].sum().item()
        seen += tokens[:, 3:].numel()
    return right / seen


def main():
    args = get_args()
    torch.manual_seed(0)
    config = Config(tie=args.tie, aux=args.aux, devices=tuple(args.devices))
    model = TwoStageLM(config)
    print(f"stages on {config.first} and {config.last}")
    train(model, Stream(config, args.batch_size), args)
    held = Stream(config, args.batch_size, seed=1)
    print(f"accuracy {accuracy(model, held):.1%}")
    if args.complete:
        prompts = next(iter(held))[:3, :4]
        for row in model.complete(prompts, args.complete).tolist():
            print(" ".join(map(str, row)))


if __name__ == "__main__":
    main()
