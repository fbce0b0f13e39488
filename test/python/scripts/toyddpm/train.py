import copy
import sys
import time

import numpy as np
import torch

import conf
from diffusion import build_sampler
from diffusion.process import GaussianDiffusion
from nets.unet import TinyUNet
from utils.data import endless, two_moons_images
from utils.ema import ModuleEMA, ShadowEMA
from utils.logging import Meter, Stopwatch


def build_ema(cfg, net, pristine):
    kind = cfg['ema']['kind']
    if kind == 'none':
        return None
    if kind == 'shadow':
        return ShadowEMA(net, cfg['ema']['decay'])
    return ModuleEMA(pristine, cfg['ema']['decay'])


def save(path, net, ema, opt, step):
    torch.save({'net': net.state_dict(),
                'ema': ema.state_dict() if ema is not None else None,
                'opt': opt.state_dict(),
                'step': step}, path)


def load(path, net, ema, opt):
    ckpt = torch.load(path, map_location='cpu')
    net.load_state_dict(ckpt['net'])
    opt.load_state_dict(ckpt['opt'])
    if ema is not None:
        ema.load_state_dict(ckpt['ema'])
    return ckpt['step']


def main(cfg):
    np.random.seed(cfg['seed'])
    torch.manual_seed(cfg['seed'])
    use_cuda = torch.cuda.is_available() and cfg['device'] != 'cpu'
    device = torch.device(cfg['device'] if use_cuda else 'cpu')

    net = TinyUNet(**cfg['net'])
    pristine = copy.deepcopy(net)
    diffusion = GaussianDiffusion(net, **cfg['diffusion']).to(device)
    ema = build_ema(cfg, net, pristine)
    opt = torch.optim.Adam(net.parameters(), lr=cfg['train']['lr'])
    lrs = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / cfg['train']['warmup']))
    data = endless(two_moons_images(64, cfg['net']['channels']), cfg['train']['batch'])

    meter = Meter()
    step = 0
    while step < cfg['train']['steps']:
        x, y = next(data)
        x, y = x.to(device), y.to(device)
        loss = diffusion.training_loss(x, y, drop=cfg['cond']['drop'], weighting=cfg['loss']['weighting'])
        opt.zero_grad()
        loss.backward()
        opt.step()
        lrs.step()
        if ema is not None:
            ema.update(net)
        meter.add(loss)
        step += 1
        if step == cfg['train']['restart_at']:
            save('last.pt', net, ema, opt, step)
            step = load('last.pt', net, ema, opt)

    if ema is not None:
        ema.copy_to(net)
    sampler = build_sampler(cfg['sample']['sampler'], diffusion, steps=cfg['sample']['steps'])
    net.eval()
    with Stopwatch() as watch, torch.no_grad():
        n = cfg['sample']['n']
        labels = torch.arange(n) % cfg['net']['classes']
        images = sampler((n, cfg['net']['channels'], 8, 8), labels.to(device), cfg['sample']['guidance'])
    print('loss %.4f, %d images in %.1fs, mean %.3f' % (meter.value(), n, watch.seconds, images.mean()))
    np.save('samples.npy', images.clamp(-1, 1).cpu().numpy())


if __name__ == '__main__':
    started = time.time()
    main(conf.compose(sys.argv[1:]))
    print('done in %ds' % (time.time() - started))
