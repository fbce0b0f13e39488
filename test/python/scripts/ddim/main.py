import argparse
import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

from ema import EMA
from samplers import SAMPLERS
from schedule import Schedule
from unet import TinyUNet


def blobs(n, classes):
    y = torch.arange(n) % classes
    xs = torch.linspace(-1, 1, 8)
    grid = xs[:, None] ** 2 + xs[None] ** 2
    images = torch.exp(-grid[None] * (1 + y[:, None, None].float()))
    return TensorDataset(images[:, None] * 2 - 1, y)


def save(path, model, ema, step):
    torch.save({'model': model.state_dict(), 'ema': ema.shadow, 'step': step}, path)


def restore(path, model, ema):
    state = torch.load(path, map_location='cpu')
    model.load_state_dict(state['model'])
    for name, value in state['ema'].items():
        ema.shadow[name].copy_(value)
    return state['step']


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--beta', default='linear')
    ap.add_argument('--steps', type=int, default=20)
    ap.add_argument('--sampler', default='ddim', choices=list(SAMPLERS))
    ap.add_argument('--conditional', action='store_true')
    ap.add_argument('--snr-weight', action='store_true')
    ap.add_argument('--offload-ema', action='store_true')
    ap.add_argument('--report-ema', action='store_true')
    ap.add_argument('--cpu', action='store_true')
    args = ap.parse_args()

    torch.manual_seed(0)
    device = 'cpu' if args.cpu or not torch.cuda.is_available() else 'cuda'
    classes = 3
    model = TinyUNet(classes=classes if args.conditional else 0).to(device)
    schedule = Schedule(args.beta, args.steps, device)
    ema = EMA(model, offload=args.offload_ema)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(blobs(16, classes), batch_size=4, shuffle=True)

    for x, y in loader:
        x = x.to(device)
        y = y.to(device) if args.conditional else None
        t = torch.randint(schedule.steps, (len(x),), device=device)
        noise = torch.randn_like(x)
        err = (model(schedule.add_noise(x, t, noise), t, y) - noise) ** 2
        if args.snr_weight:
            err = err * schedule.weight(t, err)
        loss = err.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
    print('loss', loss.item())

    path = os.path.join(tempfile.mkdtemp(), 'last.pt')
    save(path, model, ema, 4)
    print('restored step', restore(path, model, ema))
    if args.report_ema:
        print('ema distance', ema.distance(model))

    labels = torch.tensor([0, 1]).to(device) if args.conditional else None
    with ema.applied(model):
        images = SAMPLERS[args.sampler](model, schedule, (2, 1, 8, 8), 5, seed=1, y=labels)
    print('mean pixel', images.cpu().numpy().mean())


if __name__ == '__main__':
    main()
