import argparse

import torch
import torch.nn.functional as F

from graph import make_graph
from layers import GCN
from metrics import EarlyStopping, Report, accuracy


def train_step(model, graph, optimizer, drop_edge):
    model.train()
    keep = torch.rand(graph.edge_index.size(1)) > drop_edge
    out = model(graph.x, graph.edge_index[:, keep])
    weight = torch.bincount(graph.y[graph.train_mask], minlength=3).float().clamp(min=1).reciprocal()
    loss = F.cross_entropy(out[graph.train_mask], graph.y[graph.train_mask], weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, graph):
    model.eval()
    out = model(graph.x, graph.edge_index)
    return {name: accuracy(out, graph.y, getattr(graph, f"{name}_mask")) for name in ("train", "val")}


@torch.no_grad()
def report(model, graph):
    model.eval()
    result = Report(graph.names)
    probs = model(graph.x, graph.edge_index).softmax(-1)
    for part in torch.arange(graph.num_nodes).chunk(2):
        score, pred = probs[part].max(-1)
        result.add(pred=pred, target=graph.y[part], score=score)
    return result.table()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=4)
    parser.add_argument("--drop-edge", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    graph = make_graph().to(device)
    model = GCN(graph.x.size(1), args.hidden, 3).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    stopper = EarlyStopping(2)
    for epoch in range(args.epochs):
        loss = train_step(model, graph, optimizer, args.drop_edge)
        scores = test(model, graph)
        print(epoch, round(loss, 3), scores)
        if stopper(scores["val"], model):
            break
    model.load_state_dict(stopper.state)
    print(report(model, graph))
