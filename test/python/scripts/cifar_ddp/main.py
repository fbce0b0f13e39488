# broken
"""Image classification on synthetic data, one process a GPU (torchrun --nproc_per_node=2 main.py)."""
import argparse
import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import FakeImages
from model import resnet8
from utils import AverageMeter, ProgressMeter, accuracy


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", default=2, type=int)
    p.add_argument("-b", "--batch-size", default=8, type=int)
    p.add_argument("--lr", default=0.1, type=float)
    p.add_argument("--dist-backend", default="nccl")
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def train(loader, model, criterion, optimizer, epoch, device):
    losses, top1 = AverageMeter("Loss", ":.4e"), AverageMeter("Acc@1", ":6.2f")
    batch_time = AverageMeter("Time", ":6.3f")
    progress = ProgressMeter(len(loader), [batch_time, losses, top1], prefix=f"Epoch: [{epoch}]")
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, = accuracy(output, target, topk=(1,))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0], images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
        if i % 2 == 0 and dist.get_rank() == 0:
            progress.display(i + 1)


def validate(loader, model, criterion, device):
    losses, top1 = AverageMeter("Loss", ":.4e"), AverageMeter("Acc@1", ":6.2f")
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            output = model(images)
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(accuracy(output, target)[0].item(), images.size(0))
    top1.all_reduce()
    losses.all_reduce()
    return top1.avg


def main():
    args = parse()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    dist.init_process_group(args.dist_backend)
    random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
    model = DDP(resnet8().to(device), device_ids=[local_rank])
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30, .1)
    tr, va = FakeImages(32), FakeImages(16, seed=1)
    sampler = DistributedSampler(tr)
    tl = DataLoader(tr, args.batch_size, sampler=sampler, pin_memory=True)
    vl = DataLoader(va, args.batch_size, sampler=DistributedSampler(va, shuffle=False, drop_last=True))
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train(tl, model, criterion, optimizer, epoch, device)
        acc = validate(vl, model, criterion, device)
        scheduler.step()
        if dist.get_rank() == 0:
            print("acc", acc)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
