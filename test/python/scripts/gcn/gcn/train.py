# broken
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from . import GraphConvolution, load_data


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument('--cuda', action='store_true')
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--hidden', type=int, default=16)
    parser.add_argument('--prior', type=float, default=.1)
    args = parser.parse_args(argv)
    g = load_data()
    model = GCN(nfeat=g.features.shape[1], nhid=args.hidden, nclass=int(g.labels.max()) + 1, dropout=.5)
    optimizer = optim.Adam(model.parameters(), lr=.01, weight_decay=5e-4)
    if args.cuda:
        model.cuda()
        g.to('cuda')
    print(g.summary())
    for epoch in range(args.epochs):
        t = time.time()
        model.train()
        optimizer.zero_grad()
        output = model(g.features, g.adj)
        loss = F.nll_loss(output[g.idx_train], g.labels[g.idx_train])
        if args.prior > 0:
            mean = output.exp().mean(0)
            loss = loss + args.prior * (mean * (mean / g.class_prior).log()).sum()  # raises
        loss.backward()
        optimizer.step()
        model.eval()
        output = model(g.features, g.adj)
        print(f'{epoch} {loss.item():.3f} {accuracy(output[g.idx_val], g.labels[g.idx_val]).item():.3f} {time.time() - t:.3f}s')


if __name__ == '__main__':
    main()
