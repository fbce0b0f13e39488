import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

import ddp_utils
from eval.knn import KNNMonitor
from eval.retrieval import recall_at_k
from losses import CRITERIA
from models.encoder import Encoder
from models.moco import MoCo
from views import ClassBalancedSampler, TwoViews, Blobs

parser = argparse.ArgumentParser(description='Embeddings, contrastive or with labels')
parser.add_argument('--arch', default='small', choices=['small', 'wide'])
parser.add_argument('--method', default='simclr', choices=['simclr', 'moco', 'triplet', 'proxy', 'arcface'])
parser.add_argument('--epochs', default=1, type=int)
parser.add_argument('-b', '--batch-size', default=8, type=int)
parser.add_argument('--lr', default=0.05, type=float)
parser.add_argument('--dim', default=8, type=int)
parser.add_argument('--queue', default=16, type=int)
parser.add_argument('--moco-m', default=0.9, type=float)
parser.add_argument('--shuffle-bn', action='store_true')
parser.add_argument('--mining', default='all', choices=['all', 'hard'])
parser.add_argument('--mask-self', default='diag', choices=['diag', 'eye'])
parser.add_argument('--monitor', default='none', choices=['none', 'knn', 'recall'])
parser.add_argument('--bank', default='host', choices=['host', 'device'])
parser.add_argument('--resume', default='', help='"self": save after the first epoch and go on from there')
parser.add_argument('--seed', default=1, type=int)
parser.add_argument('--distributed', action='store_true')
parser.add_argument('--no-cuda', action='store_true')


def build(args, device):
    encoder = lambda: Encoder(args.arch, args.dim)
    if args.method == 'moco':
        model = MoCo(encoder, dim=args.dim, K=args.queue, m=args.moco_m, shuffle=args.shuffle_bn)
        criterion = nn.CrossEntropyLoss().to(device)
    else:
        model = encoder()
        criterion = CRITERIA[args.method](args)
        if args.method == 'arcface':
            criterion = criterion.to(device)
    return model.to(device), criterion


def main():
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    if args.distributed:
        ddp_utils.init(args)
    args.gpu = None if args.no_cuda else ddp_utils.local_rank()
    device = torch.device('cpu') if args.gpu is None else torch.device('cuda', args.gpu)

    model, criterion = build(args, device)
    bare = model
    if args.distributed:
        model = DDP(model, device_ids=None if args.gpu is None else [args.gpu])
    params = list(model.parameters()) + list(criterion.parameters())
    optimizer = torch.optim.SGD([p for p in params if p.requires_grad], args.lr, momentum=0.9, weight_decay=1e-4)

    dataset = Blobs(48, seed=args.seed)
    labelled = args.method in ('triplet', 'proxy', 'arcface')
    if labelled:
        loader = DataLoader(dataset, batch_sampler=ClassBalancedSampler(dataset.labels, args.batch_size, args.seed))
        step = supervised_step
    else:
        loader = DataLoader(TwoViews(dataset), args.batch_size, shuffle=True, drop_last=True)
        step = moco_step if args.method == 'moco' else simclr_step

    for epoch in range(args.epochs):
        model.train()
        losses = ddp_utils.AverageMeter()
        for batch in loader:
            loss = step(model, criterion, batch, device)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), len(batch[0]))
        print('epoch {} loss {:.4f}'.format(epoch, ddp_utils.reduce_mean(losses.avg)))
        if epoch == 0 and args.resume == 'self' and ddp_utils.is_main():
            torch.save({'model': bare.state_dict(), 'optimizer': optimizer.state_dict()}, 'ckpt.pth.tar')
            checkpoint = torch.load('ckpt.pth.tar', map_location=lambda storage, loc: storage)
            bare.load_state_dict(checkpoint['model'])
            optimizer.load_state_dict(checkpoint['optimizer'])

    embed = bare.encoder_q if args.method == 'moco' else bare
    validate(args, embed, dataset, device)
    if args.distributed:
        ddp_utils.finish()


def simclr_step(model, criterion, batch, device):
    (a, b), _ = batch
    z = model(torch.cat([a, b], dim=0).to(device))
    return criterion(*z.chunk(2))


def moco_step(model, criterion, batch, device):
    (a, b), _ = batch
    logits, labels = model(a.to(device, non_blocking=True), b.to(device, non_blocking=True))
    return criterion(logits, labels)


def supervised_step(model, criterion, batch, device):
    images, labels = batch
    return criterion(model(images.to(device)), labels.to(device))


def validate(args, model, dataset, device):
    model.eval()
    loader = DataLoader(dataset, batch_size=12)
    if args.monitor == 'knn':
        monitor = KNNMonitor(k=3, classes=dataset.classes, on_host=args.bank == 'host')
        print('knn', monitor.fit(model, loader, device).accuracy(model, loader, device))
    elif args.monitor == 'recall':
        print('recall@1', recall_at_k(model, loader, device, k=1))


if __name__ == '__main__':
    main()
