import argparse
import os

import torch

import placement
from lm import LayeredLM

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--placement", default=os.path.join(HERE, "placement.json"))
    ap.add_argument("--steps", type=int, default=2)
    args = ap.parse_args()
    model = LayeredLM(vocab=11)
    placement.apply(model, placement.read(args.placement))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        ids = torch.randint(0, 11, (2, 7))
        loss = model.loss(ids)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(step, float(loss))


if __name__ == "__main__":
    main()
