import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import miners  # noqa: F401
from evaluate import embed_all, mean_average_precision, recall_at
from losses import CrossBatchMemory
from registry import LOSSES, MINERS


class Trunk(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU())
        self.head = nn.Linear(16, dim)

    def forward(self, x):
        return F.normalize(self.head(self.features(x).mean((2, 3))), dim=1)


def synthetic(n, n_classes):
    g = torch.Generator().manual_seed(3)
    y = torch.randint(n_classes, (n,), generator=g)
    base = torch.randn(n_classes, 3, 16, 16, generator=g)
    return TensorDataset(base[y] + 0.3 * torch.randn(n, 3, 16, 16, generator=g), y)


def warmup_cosine(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def main(opt):
    device = torch.device('cuda' if torch.cuda.is_available() and not opt.no_cuda else 'cpu')
    data = synthetic(40, opt.classes)
    loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
    model = Trunk(opt.dim).to(device)
    criterion = LOSSES.build(opt.loss, opt.dim, opt.classes).to(device)
    miner = MINERS.build(opt.miner) if criterion.needs_miner else None
    memory = CrossBatchMemory(opt.dim, opt.memory).to(device) if opt.memory else None

    groups = [{'params': model.parameters(), 'lr': opt.lr}]
    extra = list(criterion.parameters())
    if extra:
        groups.append({'params': extra, 'lr': opt.lr * 10})
    optimizer = torch.optim.AdamW(groups)
    schedule = warmup_cosine(optimizer, 3, opt.epochs * len(loader))

    running = torch.zeros(())
    for epoch in range(opt.epochs):
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            emb = model(images)
            triplets = miner(emb, labels) if miner is not None else None
            loss = criterion(emb, labels, triplets)
            if memory is not None and epoch >= opt.memory_from:
                loss = loss + memory(emb, labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            running = 0.9 * running + 0.1 * loss.detach().cpu()
        print(f'epoch {epoch} loss {running.item():.4f}')

    emb, labels = embed_all(model, DataLoader(data, batch_size=16), device)
    print('R@1 %.3f' % recall_at(1, emb, labels))
    if opt.map:
        print('mAP %.3f' % mean_average_precision(emb, labels))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--loss', default='triplet', choices=LOSSES.names())
    parser.add_argument('--miner', default='random', choices=MINERS.names())
    parser.add_argument('--dim', type=int, default=12)
    parser.add_argument('--classes', type=int, default=5)
    parser.add_argument('--memory', type=int, default=0)
    parser.add_argument('--memory-from', type=int, default=1)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--lr', type=float, default=1e-3)
    parser.add_argument('--map', action='store_true')
    parser.add_argument('--no-cuda', action='store_true')
    main(parser.parse_args())
