import argparse
import functools

import torch
from torch.utils.data import DataLoader

from boxes import iou
from checkpoint import RESUME, pack
from detector import Detector
from shapes import Shapes, collate


class RecallMeter:
    def __init__(self, thresholds=(0.3, 0.5)):
        self.thresholds = torch.tensor(thresholds)
        self.hits = torch.zeros(len(thresholds))
        self.total = 0

    def update(self, found, targets):
        for f, t in zip(found, targets):
            best = iou(t['boxes'], f['boxes'].to(t['boxes'].device)).max(1).values
            self.hits += (best[:, None] > self.thresholds).float().sum(0)  # raises
            self.total += len(best)

    def __str__(self):
        parts = [f'recall@{t:.1f} {h / self.total:.3f}' for t, h in zip(self.thresholds.tolist(), self.hits.tolist())]
        return ' '.join(parts)


def move(x, device):
    if torch.is_tensor(x):
        return x.to(device)
    if isinstance(x, dict):
        return {k: move(v, device) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(move(v, device) for v in x)
    return x


def train_one_epoch(model, optimizer, loader, device):
    model.train()
    for images, targets in loader:
        images, targets = move((images, targets), device)
        loss = model.loss(images, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # raises
    return loss.item()


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)


def validate(model, loader, device, on_device):
    model.eval()
    meter = RecallMeter()
    for images, targets in loader:
        images = images.to(device)
        found = model.detect(images)
        meter.update(found, move(targets, device) if on_device else targets)
    return meter


def main():
    parser = argparse.ArgumentParser('tinydet')
    parser.add_argument('--cache', default='device', choices=['size', 'device'])
    parser.add_argument('--suppress', default='hard', choices=['hard', 'soft'])
    parser.add_argument('--eval-device', default='same', help='validate on another device; same for the one of training')
    parser.add_argument('--gpu-metric', action='store_true')
    parser.add_argument('--resume', choices=sorted(RESUME), help='go through a checkpoint after the first epoch')
    parser.add_argument('--epochs', type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(1)
    device = torch.device('cuda') if torch.cuda.is_available() else torch.device('cpu')
    make_model = functools.partial(Detector, 3, cache=args.cache, suppress=args.suppress)
    model = make_model()
    model.to(device)
    optimizer = make_optimizer(model)
    train_loader = DataLoader(Shapes(12), batch_size=4, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Shapes(4, seed=500), batch_size=2, collate_fn=collate)
    for epoch in range(args.epochs):
        print('epoch', epoch, 'loss', round(train_one_epoch(model, optimizer, train_loader, device), 4))
        if args.resume and epoch == 0:
            blob = pack(model, optimizer, epoch)
            model, optimizer, _ = RESUME[args.resume](blob, make_model, make_optimizer, device)

    if args.eval_device != 'same':
        device = torch.device(args.eval_device)
        model = model.to(device)
    print(validate(model, val_loader, device, args.gpu_metric))


if __name__ == '__main__':
    main()
