import argparse
import itertools

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from client import Client
from federation import Server
from shards import Blobs, dirichlet_split
from strategies import STRATEGIES


def network(dim=8, classes=4):
    return nn.Sequential(nn.Linear(dim, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, classes))


def devices(kind):
    if kind == 'one':
        return itertools.repeat('cuda:0')
    return itertools.cycle(f'cuda:{k}' for k in range(torch.cuda.device_count()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--strategy', choices=sorted(STRATEGIES), default='avg')
    parser.add_argument('--clients', type=int, default=6)
    parser.add_argument('--spread', choices=['one', 'all'], default='one', help='GPUs of the clients')
    parser.add_argument('--server', default='cuda:0')
    parser.add_argument('--alpha', type=float, default=5.0)
    parser.add_argument('--rounds', type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = network()
    shards = dirichlet_split(Blobs(400), args.clients, args.alpha)
    clients = [Client(f'client{i}', model, shard, device)
               for i, (shard, device) in enumerate(zip(shards, devices(args.spread)))]
    server = Server(model, clients, args.strategy, torch.device(args.server))
    test = DataLoader(Blobs(100, seed=1), batch_size=50)
    for k in range(args.rounds):
        print(f'round {k}: loss {server.round():.3f}, accuracy {server.accuracy(test):.2f}')
    server.model.cpu()
    torch.jit.trace(server.model, torch.zeros(2, 8))


if __name__ == '__main__':
    main()
