import argparse
import os
import tempfile
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from export import export
from fake import SmallNet, reference
from stripes import Stripes


@contextmanager
def frozen(model):
    quantisers = model.quantisers()
    for q in quantisers:
        q.frozen = True
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was)
        for q in quantisers:
            q.frozen = False


def train(model, loader, device, epochs, distil):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss = F.cross_entropy(logits, labels)
            if distil:
                loss = loss + distil * F.kl_div(F.log_softmax(logits, 1), reference(model, images),
                                                reduction='batchmean', log_target=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f'epoch {epoch} loss {loss.item():.3f}')


def evaluate(model, loader, device):
    table = torch.zeros(Stripes.classes, Stripes.classes, dtype=torch.long)
    with frozen(model):
        for images, labels in loader:
            guess = model(images.to(device)).argmax(1)
            table.index_put_((labels, guess.cpu()), torch.tensor(1), accumulate=True)
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--bits', type=int, default=8)
    parser.add_argument('--activation', choices=['minmax', 'moving', 'histogram'], default='minmax')
    parser.add_argument('--per-channel', action='store_true')
    parser.add_argument('--distil', type=float, default=0.0)
    parser.add_argument('--export', choices=['no', 'deployed', 'direct'], default='no')
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = SmallNet(Stripes.classes, bits=args.bits, activation=args.activation, per_channel=args.per_channel)
    model.to(device)
    train(model, DataLoader(Stripes(96), batch_size=32, shuffle=True), device, 2, args.distil)
    table = evaluate(model, DataLoader(Stripes(48, seed=1), batch_size=16), device)
    print('accuracy', round(float(table.diag().sum() / table.sum()), 3), table.tolist())
    if args.export != 'no':
        if args.export == 'deployed':
            model = model.cpu().eval()
        path = os.path.join(tempfile.mkdtemp(), 'net.json')
        print('exported', export(model, path), 'characters')


if __name__ == '__main__':
    main()
