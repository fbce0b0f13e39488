"""A model over two GPUs, as a pipeline or replicated: python run.py --mode pipeline --micros 2"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from replicate import Replicas
from schedule import concatenate, run_ticks, split
from stages import EmbedStage, HeadStage, MixerStage, Pipeline

VOCAB, LENGTH, WIDTH = 20, 8, 12


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["pipeline", "replicas"], default="pipeline")
    parser.add_argument("--devices", nargs="+", default=["cuda:0", "cuda:1"])
    parser.add_argument("--micros", type=int, default=1)
    parser.add_argument("--tie", action="store_true")
    parser.add_argument("--skip", action="store_true", help="feed the last stage with the embedding too")
    parser.add_argument("--balance", type=float, default=0.0)
    parser.add_argument("--reduce-on", choices=["first", "host", "tree"], default="first")
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


def batches(count, size=8):
    g = torch.Generator().manual_seed(1)
    for _ in range(count):
        tokens = torch.randint(VOCAB, (size, LENGTH + 1), generator=g)
        yield tokens[:, :-1], tokens[:, 1:]


def build_pipeline(args):
    stages = [EmbedStage(VOCAB, WIDTH), MixerStage(WIDTH, LENGTH), HeadStage(WIDTH, VOCAB)]
    first, last = args.devices[0], args.devices[-1]
    pipeline = Pipeline(stages, [first, first, last], skips=[2] if args.skip else [])
    if args.tie:
        stages[-1].tie(stages[0].tokens)
    return pipeline


def train_pipeline(args):
    pipeline = build_pipeline(args)
    params = list(pipeline.parameters())
    optimizer = torch.optim.Adam(params, lr=1e-2)
    for step, batch in enumerate(batches(args.steps)):
        micro = split(batch, args.micros)
        keep = (0,) if args.skip else ()
        outputs = run_ticks(pipeline, [x for x, _ in micro], keep)
        logits = concatenate(outputs)
        target = concatenate([y for _, y in micro], to=pipeline.last)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        if args.balance:
            for term in pipeline.balances():
                loss = loss + args.balance * term  # raises
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")
    return pipeline


def train_replicas(args):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Embedding(VOCAB, WIDTH), nn.Flatten(), nn.Linear(WIDTH * LENGTH, VOCAB))
    replicas = Replicas(net, args.devices, args.reduce_on)
    optimizer = torch.optim.SGD(replicas.master.parameters(), lr=0.1, momentum=0.9)
    for step, (x, y) in enumerate(batches(args.steps)):
        replicas.broadcast()
        replicas.zero_grad()
        outputs = replicas.forward(x)
        targets = y[:, -1].chunk(len(outputs))
        losses = [F.cross_entropy(o, t.to(o.device)) for o, t in zip(outputs, targets)]
        for loss in losses:
            loss.backward()
        replicas.reduce()
        optimizer.step()
        print(f"step {step} loss {sum(loss.item() for loss in losses) / len(losses):.4f}")
    return replicas


def report(args, model):
    if args.mode == "pipeline":
        for stage, device in zip(model.stages, model.devices):
            count = sum(p.numel() for p in stage.parameters())
            print(f"{type(stage).__name__:12} {device} {count} parameters")
    else:
        replicas_agree = [
            torch.allclose(a.cpu(), b.cpu(), atol=1.0)
            for other in model.others
            for a, b in zip(model.master.parameters(), other.parameters())
        ]
        print("replicas within reach:", all(replicas_agree))


def main():
    args = parse()
    if torch.cuda.device_count() < len(set(args.devices)):
        args.devices = ["cuda:0"] * len(args.devices) if torch.cuda.is_available() else ["cpu"] * len(args.devices)
    model = train_pipeline(args) if args.mode == "pipeline" else train_replicas(args)
    report(args, model)


if __name__ == "__main__":
    main()
