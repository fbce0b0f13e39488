"""A variational autoencoder of bars: python train.py --conditional --draw 4"""
import argparse
import sys

import torch

from vae.data import Bars
from vae.model import VAE
from vae.utils import Annealing, Average, Snapshot, picture


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--side", type=int, default=6)
    parser.add_argument("--code", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--conditional", action="store_true")
    parser.add_argument("--averaged", action="store_true", help="evaluate averaged weights")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--file", default="output/vae.pt")
    parser.add_argument("--device", type=torch.device, default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args(argv)


def train(model, optimizer, data, snapshot, args, step):
    beta = Annealing(args.warm_up)
    for epoch in range(args.epochs):
        model.train()
        loss_mean, divergence_mean = Average(), Average()
        for x, y in data.batches(args.device):
            loss, divergence = model.bound(x, y, beta(step))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            snapshot.follow()
            loss_mean.add(loss)
            divergence_mean.add(divergence)
            step += 1
        print(f"epoch {epoch}: loss {float(loss_mean):.2f}, divergence {float(divergence_mean):.2f}")
    return step


def evaluate(model, data, args):
    model.eval()
    mean, codes = Average(), []
    for x, y in data.batches(args.device, shuffle=False):
        mean.add(model.likelihood(x, y))
        codes.append(model.posterior(x, y).mean.detach().cpu())
    codes = torch.cat(codes)
    centre = torch.stack([codes[data.labels == label].mean(0) for label in range(2)])
    return float(mean), (centre[0] - centre[1]).norm().item()


def main(argv=None):
    args = parse(argv)
    torch.manual_seed(1)
    data, held = Bars(side=args.side), Bars(count=48, side=args.side, seed=1)
    model = VAE(data.pixels, args.code, classes=2 if args.conditional else 0).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    snapshot = Snapshot(args.file, model, optimizer)
    step = 0
    if args.resume:
        try:
            step = snapshot.restore()
        except FileNotFoundError:
            print("nothing to resume", file=sys.stderr)
    step = train(model, optimizer, data, snapshot, args, step)
    snapshot.save(step)
    if args.averaged:
        model.load_state_dict(snapshot.average)
    print("log likelihood %.2f, distance of the labels %.2f" % evaluate(model, held, args))
    if args.draw:
        generator = torch.Generator().manual_seed(0)
        label = 1 if args.conditional else None
        print(picture(model.draw(args.draw, label, generator), args.side))


if __name__ == "__main__":
    main()
