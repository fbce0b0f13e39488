import argparse
import json
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from gnn.graph import drop_edges, drop_features, random_graph, to_device
from gnn.layers import GATConv, GCNConv, Net, SAGEConv
from gnn.propagate import correct_and_smooth, precompute_hops

SETTINGS = json.loads((Path(__file__).parent / "settings.json").read_text())
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
CONVS = {"gcn": GCNConv, "gat": GATConv, "sage": SAGEConv}


def accuracy(logits, y, mask):
    return (logits[mask].argmax(-1) == y[mask]).float().mean().item()


def step(model, optimizer, graph, args):
    model.train()
    x, edges = graph.x, graph.edge_index
    if args.drop_edge:
        edges = drop_edges(edges, args.drop_edge)
    if args.drop_feature:
        x = drop_features(x, args.drop_feature)
    logits = model(x, edges)
    loss = F.cross_entropy(logits[graph.train_mask], graph.y[graph.train_mask])  # raises
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def calibrate(model, graph):
    """Temperature by grid search on the validation nodes."""
    logits = model(graph.x, graph.edge_index)[graph.val_mask]
    labels = graph.y[graph.val_mask]
    temperatures = torch.linspace(0.5, 2.0, 7)
    losses = torch.stack([F.cross_entropy(logits / t, labels) for t in temperatures])
    best = temperatures[losses.argmin().item()]
    return logits.div(best), best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conv", choices=CONVS, default="gcn")
    parser.add_argument("--norm", choices=["sym", "walk"], default="sym")
    parser.add_argument("--cached", action="store_true")
    parser.add_argument("--hops", type=int, default=0)
    parser.add_argument("--drop-edge", type=float, default=0.0)
    parser.add_argument("--drop-feature", type=float, default=0.0)
    parser.add_argument("--keep-labels", action="store_true", help="leave labels and masks where they are")
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--calibrate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(1)
    graph = random_graph(*(SETTINGS[k] for k in ("nodes", "features", "classes", "edges")))
    if args.hops:
        graph = precompute_hops(graph, args.hops)
    graph = to_device(graph, DEVICE, only=("x", "edge_index") if args.keep_labels else None)

    conv = CONVS[args.conv]
    if args.conv == "gcn":
        conv = partial(conv, norm=args.norm, cached=args.cached)
    model = Net(conv, SETTINGS["features"], SETTINGS["hidden"], SETTINGS["classes"])
    model.to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=SETTINGS["lr"])
    for epoch in range(SETTINGS["epochs"]):
        print(epoch, step(model, optimizer, graph, args))

    model.eval()
    with torch.no_grad():
        logits = model(graph.x, graph.edge_index)
    if args.smooth:
        logits = correct_and_smooth(logits, graph)
    print("test", accuracy(logits, graph.y, graph.test_mask))
    if args.calibrate:
        scaled, best = calibrate(model, graph)
        print("temperature", float(best), "entropy", torch.special.entr(scaled.softmax(-1)).sum(-1).mean().item())


if __name__ == "__main__":
    main()
