import argparse
import math

import torch
from torch.utils.data import DataLoader, RandomSampler

from fields import ENCODINGS, RadianceField
from prefetch import Prefetcher
from render import Renderer
from scene import Camera, Rays, look_from, paint


def photometric(rough, smooth, colours):
    return ((rough - colours) ** 2).mean() + ((smooth - colours) ** 2).mean().to(rough.device)  # raises


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--encoding', choices=list(ENCODINGS), default='fourier')
    parser.add_argument('--bands', type=int, default=3)
    parser.add_argument('--split', action='store_true', help='the fine field on a second GPU')
    parser.add_argument('--damp-near', action='store_true')
    parser.add_argument('--only-render', action='store_true')
    parser.add_argument('--steps', type=int, default=8)
    return parser.parse_args()


@torch.no_grad()
def view(renderer, camera, angle, chunk=128):
    origins, directions = camera.rays(look_from(angle))
    image = torch.empty(len(origins), 3)
    for start in range(0, len(origins), chunk):
        part = slice(start, start + chunk)
        image[part] = renderer(origins[part], directions[part], jitter=False)[1]
    error = ((image - paint(origins, directions)) ** 2).mean()
    return image.view(camera.size, camera.size, 3).numpy(), -10 * math.log10(error)


def main():
    args = parse()
    torch.manual_seed(0)
    devices = [torch.device('cuda', 0), torch.device('cuda', 1 if args.split else 0)]
    camera = Camera(12, focal=12.0)
    make = ENCODINGS[args.encoding]
    renderer = Renderer(RadianceField(make(args.bands)), RadianceField(make(args.bands)), *devices,
                        damp=args.damp_near)

    if not args.only_render:
        data = Rays(camera, views=4)
        sampler = RandomSampler(data, replacement=True, num_samples=args.steps * 64)
        batches = Prefetcher(DataLoader(data, batch_size=64, sampler=sampler), devices[0])
        groups = [{'params': renderer.coarse.parameters()}, {'params': renderer.fine.parameters(), 'lr': 5e-3}]
        optimizer = torch.optim.Adam(groups, lr=1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
        for step, (origins, directions, colours) in enumerate(batches):
            rough, smooth = renderer(origins, directions)
            loss = photometric(rough, smooth, colours)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 4 == 0:
                print(f'step {step}: {loss.item():.4f}')

    image, psnr = view(renderer, camera, angle=0.4)
    print(f'psnr {psnr:.2f}, mean {image.mean():.3f}')


if __name__ == '__main__':
    main()
