import argparse
import sys

import torch
import torch.nn.functional as F

from gnn import postprocess
from gnn.data import DATASETS
from gnn.data.sampler import NeighborSampler
from gnn.evaluator import Evaluator
from gnn.model import GraphNet
from gnn.registry import create, names


def parse_args(argv):
    parser = argparse.ArgumentParser('node classification')
    parser.add_argument('--dataset', default='sbm', choices=names('dataset'))
    parser.add_argument('--conv', default='gcn', choices=names('conv'))
    parser.add_argument('--conv-opt', nargs='*', default=[], metavar='K=V')
    parser.add_argument('--hidden', type=int, default=12)
    parser.add_argument('--layers', type=int, default=2)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--lr', type=float, default=0.02)
    parser.add_argument('--edge-weights', choices=['none', 'sym', 'random'], default='none')
    parser.add_argument('--balanced', action='store_true', help='weigh classes by how rare they are')
    parser.add_argument('--sampler', choices=['full', 'neighbor'], default='full')
    parser.add_argument('--post', choices=['none', 'lp', 'cs'], default='none')
    parser.add_argument('--metric', choices=['acc', 'f1'], default='acc')
    parser.add_argument('--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    args = parser.parse_args(argv)
    args.conv_opt = {k: (v == 'true' if v in ('true', 'false') else v) for k, v in (o.split('=') for o in args.conv_opt)}
    return args


def class_weight(graph, num_classes):
    counts = torch.bincount(graph.y[graph.train_mask], minlength=num_classes).float()
    return counts.sum() / (num_classes * counts.clamp(min=1))


def full_batches(graph):
    yield graph, graph.train_mask


def train_one_epoch(model, batches, optimizer, weight):
    model.train()
    total = 0.
    for graph, mask in batches:
        out = model(graph)
        loss = F.cross_entropy(out[mask], graph.y[mask], weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss)
    return total


@torch.no_grad()
def infer(model, graph):
    model.eval()
    return model(graph).softmax(dim=-1)


def main(argv=None):
    args = parse_args(argv)
    torch.manual_seed(12345)
    graph = create('dataset', args.dataset)
    if args.edge_weights != 'none':
        graph.weigh(args.edge_weights)
    num_classes = int(graph.y.max()) + 1
    weight = class_weight(graph, num_classes).to(args.device) if args.balanced else None

    device = torch.device(args.device)
    model = GraphNet(graph.x.size(1), args.hidden, num_classes, args.conv, args.layers, **args.conv_opt).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    whole = graph.to(device)
    for epoch in range(args.epochs):
        if args.sampler == 'neighbor':
            batches = NeighborSampler(graph, size=16, fanout=3).batches(device)
        else:
            batches = full_batches(whole)
        loss = train_one_epoch(model, batches, optimizer, weight)
        print(f'epoch {epoch:03d} loss {loss:.4f}')

    probs = infer(model, whole)
    if args.post != 'none':
        probs = getattr(postprocess, args.post)(probs, whole, num_classes)
    evaluator = Evaluator(num_classes, args.metric)
    for split in ('train_mask', 'test_mask'):
        mask = getattr(whole, split)
        evaluator.add(probs[mask].argmax(-1), whole.y[mask])
        print(split, f'{evaluator.pop():.4f}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
