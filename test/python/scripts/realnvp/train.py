import argparse
import os
import tempfile

import torch
from torch.utils.data import DataLoader

from data import Rows, Standardiser, mixed, telemetry
from flow import BASES, Flow
from scoring import Alarm, auroc, scores


def build(args, dim):
    return Flow(dim, BASES[args.base](dim), steps=args.steps, permute=args.permute)


def save(path, flow, optimizer, epoch):
    torch.save({'flow': flow.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}, path)


def restore(path, flow, optimizer):
    state = torch.load(path, map_location='cpu')
    flow.load_state_dict(state['flow'])
    optimizer.load_state_dict(state['optimizer'])
    return state['epoch'] + 1


def fit(flow, optimizer, loader, device, epochs, start=0, path=None):
    for epoch in range(start, epochs):
        flow.train()
        running, seen = torch.zeros((), device=device), 0
        for x, _ in loader:
            x = x.to(device, non_blocking=True)
            loss = -flow.log_prob(x).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
            running += loss.detach() * len(x)
            seen += len(x)
        print(f'epoch {epoch} nll {running.item() / seen:.3f}')
        if path:
            save(path, flow, optimizer, epoch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--base', choices=sorted(BASES), default='gaussian')
    parser.add_argument('--permute', choices=['reverse', 'shuffle'], default='reverse')
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--resume', action='store_true', help='stop half way and go on from the checkpoint')
    parser.add_argument('--simulate', type=int, default=0, metavar='N', help='write N made-up rows')
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    normal = telemetry(256)
    scaler = Standardiser().fit(normal)
    loader = DataLoader(Rows(scaler.forward(normal)), batch_size=64, shuffle=True)
    table, labels = mixed(128, seed=10)
    test = DataLoader(Rows(scaler.forward(table), labels), batch_size=64)

    flow = build(args, normal.shape[1]).to(device)
    optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
    if args.resume:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'flow.pt')
            fit(flow, optimizer, loader, device, 1, path=path)
            flow = build(args, normal.shape[1]).to(device)
            optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
            start = restore(path, flow, optimizer)
            fit(flow, optimizer, loader, device, args.epochs, start)
    else:
        fit(flow, optimizer, loader, device, args.epochs)

    reference, _ = scores(flow, loader, device)
    found, truth = scores(flow, test, device)
    alarm = Alarm().calibrate(reference)
    print('auroc', round(auroc(found, truth), 3), 'alarms', int(alarm(found).sum()))

    if args.simulate:
        rows = scaler.backward(flow.sample(args.simulate))
        for row in rows.cpu().numpy():
            print(' '.join(f'{v:8.2f}' for v in row))


if __name__ == '__main__':
    main()
