#!/usr/bin/env python3
import argparse
import logging

import torch

from ssl_lib.augment import GpuAugment
from ssl_lib.bank import InstanceBank
from ssl_lib.knn import embed, knn_accuracy
from ssl_lib.models import InstanceDiscrimination, MoCo, SimCLR

DIM, OUT, SAMPLES, CLASSES = 6, 5, 32, 3
logger = logging.getLogger(__name__)


def blobs():
    labels = torch.arange(SAMPLES) % CLASSES
    return torch.randn(CLASSES, DIM)[labels] * 2 + torch.randn(SAMPLES, DIM), labels


def build(args, device):
    if args.method == "simclr":
        return SimCLR(DIM, OUT, args.temperature).to(device)
    if args.method == "instance":
        return InstanceDiscrimination(DIM, OUT, InstanceBank(SAMPLES, OUT), args.temperature).to(device)
    key_device = torch.device(args.key_device) if args.key_device else None
    return MoCo(DIM, OUT, 24, 0.9, args.temperature, key_device).place(device)


def epoch(model, augment, x, optimizer, args, device):
    total = 0.0
    for index in torch.randperm(SAMPLES).split(args.batch):
        batch = x[index].to(device)
        if args.method == "instance":
            loss, features = model(augment(batch), index)
        else:
            loss = model(*augment.pair(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.method == "instance" and not args.frozen_bank:
            model.bank.update(index, features)
        total += loss.item()
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", choices=("moco", "simclr", "instance"), default="moco")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--key-device")
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rotate", action="store_true")
    parser.add_argument("--frozen-bank", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(4)
    device = torch.device(args.device)
    x, labels = blobs()
    model = build(args, device)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    augment = GpuAugment(DIM, rotate=args.rotate)
    for number in range(2):
        logger.info("epoch %d: %.3f", number, epoch(model, augment, x, optimizer, args, device))
    features = embed(model, x, device)
    logger.info("knn %.3f", knn_accuracy(features[:24], labels[:24], features[24:], labels[24:]))
