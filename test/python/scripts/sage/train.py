import argparse

import torch
import torch.nn.functional as F

from graph import random_graph
from nets import AGGREGATORS, LabelPropagation, Sage
from sampling import HistoricalImportance, NeighbourSampler, layers_to


class ConfusionMeter:
    def __init__(self, classes):
        self.matrix = torch.zeros(classes, classes, dtype=torch.long)

    def add(self, pred, truth):
        flat = truth * self.matrix.size(0) + pred
        self.matrix += torch.bincount(flat.cpu(), minlength=self.matrix.numel()).view_as(self.matrix)

    def accuracy(self):
        return (self.matrix.diag().sum() / self.matrix.sum()).item()


def fetch(graph, nodes, device):
    """Features may be on the GPU already or not."""
    return graph.feats[nodes].to(device)


@torch.no_grad()
def predict(model, graph, sampler, device, classes):
    model.eval()
    probs = torch.zeros(graph.num_nodes, classes)
    for batch in sampler.batches(20):
        logits = model(fetch(graph, batch.nodes, device), layers_to(batch.layers, device))
        probs[batch.seeds] = logits.softmax(-1).cpu()
    return probs


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--aggr', choices=sorted(AGGREGATORS), default='mean')
    ap.add_argument('--residual', action='store_true')
    ap.add_argument('--feats-on-gpu', action='store_true')
    ap.add_argument('--importance', choices=['none', 'degree', 'loss'], default='none')
    ap.add_argument('--balance', action='store_true')
    ap.add_argument('--gpu', type=int, default=0)
    ap.add_argument('--epochs', type=int, default=2)
    a = ap.parse_args()

    torch.manual_seed(0)
    device = torch.device(f'cuda:{a.gpu}' if a.gpu >= 0 and torch.cuda.is_available() else 'cpu')
    classes = 3
    graph = random_graph(classes=classes)
    in_dim = graph.feats.size(1)
    if a.feats_on_gpu:
        graph.pin_features(device)
    history = HistoricalImportance(graph.num_nodes) if a.importance == 'loss' else None
    importance = {'none': None, 'degree': graph.degrees().float(), 'loss': history and history.score}[a.importance]
    sampler = NeighbourSampler(graph, [3, 2], importance)

    model = Sage(in_dim, 16, classes, depth=2, aggr=a.aggr, residual=a.residual)
    model = model.to(device)
    weight = None
    if a.balance:
        counts = torch.bincount(graph.labels, minlength=classes).float()
        weight = (counts.sum() / counts).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)

    for epoch in range(a.epochs):
        model.train()
        for batch in sampler.batches(16, seed=epoch):
            x = fetch(graph, batch.nodes, device)
            y = graph.labels[batch.seeds].to(device)
            losses = F.cross_entropy(model(x, layers_to(batch.layers, device)), y, weight=weight, reduction='none')
            opt.zero_grad()
            losses.mean().backward()
            opt.step()
            if history is not None:
                sampler.importance = history.record(batch.seeds, losses)
        print('epoch', epoch, float(losses.mean()))

    probs = predict(model, graph, NeighbourSampler(graph, [3, 2]), device, classes)
    probs = LabelPropagation(2)(probs, graph.indptr, graph.indices)
    meter = ConfusionMeter(classes)
    meter.add(probs.argmax(-1), graph.labels)
    print('accuracy %.3f' % meter.accuracy())


if __name__ == '__main__':
    main()
