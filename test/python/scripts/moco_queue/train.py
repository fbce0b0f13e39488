"""Contrastive pretraining: python train.py model.queue=64 knn.enabled=true"""
import argparse
import math
import os
import tempfile

import torch

from moco import config as configuration
from moco import data, evaluate, model


def schedule(warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))

    return factor


def pretrain(net, loader, settings, device):
    parameters = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=settings["lr"], momentum=0.9, weight_decay=1e-4)
    total = settings["epochs"] * len(loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule(settings["warmup"], total))
    for epoch in range(settings["epochs"]):
        net.train()
        mean = 0.0
        for number, (first, second, _) in enumerate(loader, start=1):
            loss = net(first.to(device), second.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            mean += (loss.item() - mean) / number
        print(f"epoch {epoch}: loss {mean:.3f}, lr {scheduler.get_last_lr()[0]:.4f}")


def reload(net, build, device):
    """The network as it comes back from a file."""
    handle, path = tempfile.mkstemp(suffix=".pt")
    os.close(handle)
    try:
        torch.save(net.state_dict(), path)
        fresh = build()
        fresh.load_state_dict(torch.load(path, map_location="cpu"))
    finally:
        os.remove(path)
    return fresh.to(device).eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("overrides", nargs="*", metavar="section.name=value")
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    config = configuration.load(args.config, args.overrides)
    torch.manual_seed(args.seed)
    device = config["device"]

    train, test, loader = data.build(config)
    build = lambda: model.build(config["data"]["dim"], config)  # noqa: E731
    net = build().to(device)
    pretrain(net, loader, config["train"], device)
    net = reload(net, build, device)

    classes = config["data"]["classes"]
    results = {}
    if config["probe"]["enabled"]:
        results["probe"] = evaluate.probe(net, train, test, config["probe"]["steps"], classes, device)
    if config["knn"]["enabled"]:
        results["knn"] = evaluate.knn(net, train, test, config["knn"]["k"], classes, device)
    print(", ".join(f"{name} {value:.1%}" for name, value in results.items()))


if __name__ == "__main__":
    main()
