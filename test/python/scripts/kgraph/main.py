import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, WeightedRandomSampler

from negatives import NEGATIVES
from ranking import Known, KnownKinds, rank, summary
from scorers import SCORERS
from triples import RELATIONS, Graph, Triples

DEFAULTS = dict(scorer='transe', negatives='uniform', filter='known', rank_on='gpu', dim=16, count=8, epochs=3)


def options():
    parser = argparse.ArgumentParser()
    for name, value in DEFAULTS.items():
        parser.add_argument('--' + name.replace('_', '-'), type=type(value), default=value)
    return vars(parser.parse_args())


def adversarial(positive, negative, weights, temperature=1.0):
    """Hard negatives count for more."""
    p = F.softmax(negative.detach() * temperature, dim=1)
    loss = -F.logsigmoid(positive).squeeze(1) - (p * F.logsigmoid(-negative)).sum(1)
    return (weights * loss).sum() / weights.sum()


def main():
    o = options()
    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    graph = Graph()
    data = Triples(graph.train)
    loader = DataLoader(data, batch_size=32, sampler=WeightedRandomSampler(data.weights, len(data)))
    model = SCORERS[o['scorer']](graph.entities, len(RELATIONS), o['dim']).to(device)
    draw = NEGATIVES[o['negatives']](graph, o['count'])
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(o['epochs']):
        model.train()
        total = torch.zeros(1)
        for triples, weights in loader:
            triples, weights = triples.to(device), weights.to(device)
            positive = model(triples[:, 0], triples[:, 1], triples[:, 2:])
            negative = model(triples[:, 0], triples[:, 1], draw(triples))
            loss = adversarial(positive, negative, weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f'epoch {epoch} loss {total.item() / len(loader):.3f}')

    remove = Known(graph) if o['filter'] == 'known' else KnownKinds(graph, len(RELATIONS))
    print(summary(rank(model, graph.test, remove, device, on_host=o['rank_on'] == 'host')))


if __name__ == '__main__':
    main()
