import json
import os
import random

import numpy as np
import torch

from det import model  # noqa: F401  registers
from det.anchors import iou
from det.registry import MODELS, OPTIMIZERS

OPTIMIZERS.register(torch.optim.SGD)
OPTIMIZERS.register(torch.optim.AdamW)


def sample(size=16):
    boxes = torch.tensor([[2.0, 2.0, 8.0, 8.0], [6.0, 4.0, 14.0, 12.0]])
    return {"image": torch.rand(3, size, size), "boxes": boxes, "labels": torch.tensor([1, 2])}


def average_precision(dets, gts):
    hits = []
    for d, g in zip(dets, gts):
        hits.append(iou(d["boxes"], g["boxes"]).max(1)[0] > 0.5)
    hits = torch.cat(hits).numpy().astype(np.float32)
    scores = torch.cat([d["scores"] for d in dets]).numpy()
    order = np.argsort(-scores)
    return float((np.cumsum(hits[order]) / np.arange(1, len(hits) + 1)).mean())


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.json")) as f:
        cfg = json.load(f)
    random.seed(0)
    torch.manual_seed(0)
    net = MODELS.build(cfg["model"], cfg["anchors"])
    optimizer = OPTIMIZERS.build(cfg["optimizer"], net.parameters())
    net.to(cfg["device"])
    meters = {}
    for step in range(cfg["steps"]):
        losses = net.train()([sample() for _ in range(2)])
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        for k, v in losses.items():
            meters[k] = meters.get(k, 0) + v.detach()
    data = [sample() for _ in range(2)]
    ap = average_precision(net.eval()(data), data)
    print({k: round(float(v) / cfg["steps"], 3) for k, v in meters.items()}, "ap", ap)


if __name__ == "__main__":
    main()
