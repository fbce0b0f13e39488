"""Node classification.

    python main.py --edge-dropout 0.2 --balanced
    python main.py --parallel
"""
import argparse
import copy
import json

import numpy as np
import torch
import torch.nn.functional as F

from gcn.data import communities
from gcn.layers import GCN, adjacency
from gcn.trainers import Replicated, Single


def smooth(logits, graph, rounds=3, keep=0.7):
    """Spreads the known labels and the predictions along the edges."""
    base = logits.softmax(dim=-1)
    base[graph.train] = F.one_hot(graph.labels[graph.train], base.size(1)).to(base.dtype)
    matrix, values = adjacency(graph), base.clone()
    for _ in range(rounds):
        values = keep * base + (1 - keep) * torch.sparse.mm(matrix, values)
    return values


def report(trainer, logits):
    labels = trainer.graph.labels.cpu().numpy()
    predicted = logits.argmax(-1).cpu().numpy()
    classes = int(labels.max()) + 1
    matrix = np.zeros((classes, classes), dtype=int)
    np.add.at(matrix, (labels, predicted), 1)
    return {"accuracy": round(trainer.accuracy(logits), 3), "confusion": matrix.tolist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--edge-dropout", type=float, default=0.0)
    parser.add_argument("--balanced", action="store_true", help="weigh the classes by their frequency")
    parser.add_argument("--smooth", action="store_true", help="smooth the predictions along the edges")
    parser.add_argument("--parallel", action="store_true", help="a replica on every GPU")
    parser.add_argument("--gpu", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)

    graph = communities()
    model = GCN(graph.features.size(1), args.hidden, 3, args.depth, args.edge_dropout)
    count = torch.cuda.device_count()
    device = f"cuda:{args.gpu}" if args.gpu < count else "cpu"
    if args.parallel and count > 1:
        trainer = Replicated(model, graph, [f"cuda:{i}" for i in range(count)], args.lr, args.balanced)
    else:
        trainer = Single(model, graph, device, args.lr, args.balanced)

    best, state = -1.0, None
    for epoch in range(args.epochs):
        loss = trainer.step()
        value = trainer.accuracy()
        if value > best:
            best, state = value, copy.deepcopy({k: v.cpu() for k, v in trainer.model.state_dict().items()})
        if epoch % 5 == 0:
            print(f"{epoch:3d} loss {loss:.3f} accuracy {value:.3f}")
    trainer.model.load_state_dict(state)
    logits = trainer.predict()
    if args.smooth:
        logits = smooth(logits, trainer.graph)
    print(json.dumps(report(trainer, logits)))


if __name__ == "__main__":
    main()
