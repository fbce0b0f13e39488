"""Trains LightGCN on a synthetic log: python main.py --popularity --drop-edges 0.2 --contrast 0.1"""
import argparse
import io

import numpy as np
import torch

from evaluate import evaluate
from graph import Graph
from model import LightGCN, PopularityLightGCN, bpr, contrast
from sampling import make_loader


def synthetic(users=12, items=20, per_user=6, seed=0):
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, items + 1)
    pairs, held_out = [], {}
    for user in range(users):
        chosen = rng.choice(items, per_user, replace=False, p=weights / weights.sum())
        pairs += [(user, item) for item in chosen[1:]]
        held_out[user] = chosen[:1]
    return pairs, held_out, users, items


class BestKeeper:
    """The best weights so far, in host memory."""

    def __init__(self):
        self.score, self.state = float("-inf"), None

    def offer(self, score, model):
        if score > self.score:
            self.score = score
            self.state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}

    def restore(self, model):
        stored = io.BytesIO()
        torch.save(self.state, stored)
        stored.seek(0)
        model.load_state_dict(torch.load(stored, map_location="cpu"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--negatives", choices=["uniform", "popular"], default="uniform")
    parser.add_argument("--popularity", action="store_true")
    parser.add_argument("--drop-edges", type=float, default=0.0)
    parser.add_argument("--contrast", type=float, default=0.0)
    parser.add_argument("--keep-seen", action="store_true")
    parser.add_argument("--norm-late", action="store_true", help="normalise after the move to the device")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    pairs, held_out, users, items = synthetic()
    graph = Graph.from_pairs(pairs, users, items)
    graph = graph.to(device).with_norm() if args.norm_late else graph.with_norm().to(device)
    if args.popularity:
        model = PopularityLightGCN(users, items, graph.degrees()[users:])
    else:
        model = LightGCN(users, items)
    # the optimizer holds the parameters themselves, which .to moves in place
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    model.to(device)
    loader = make_loader(graph, device, args.negatives, args.batch_size)
    best = BestKeeper()

    for epoch in range(args.epochs):
        running = torch.zeros(())
        for user, item, negative in loader:
            view = graph.drop_edges(args.drop_edges) if args.drop_edges else graph
            loss = bpr(model(view, user, item), model(view, user, negative))
            if args.contrast:
                first = model.propagate(graph.drop_edges(0.2))
                second = model.propagate(graph.drop_edges(0.2))
                loss = loss + args.contrast * contrast(first, second, user.unique())
            penalty = torch.tensor(1e-4) * model.weight.pow(2).sum()
            optimizer.zero_grad()
            (loss + penalty).backward()
            optimizer.step()
            running = 0.9 * running + 0.1 * loss.detach()
        result, hits_at = evaluate(model, graph, held_out, keep_seen=args.keep_seen)
        best.offer(result["ndcg"], model)
        print(epoch, f"{running.item():.4f}", result, hits_at.cpu().numpy().astype(int).tolist())
    best.restore(model)
    final, _ = evaluate(model, graph, held_out, keep_seen=args.keep_seen)
    print("best", final)


if __name__ == "__main__":
    main()
