import argparse
import random

import torch
import torch.nn as nn
import torch.optim as optim

from data import get_loader
from models import Discriminator, Generator, weights_init

parser = argparse.ArgumentParser()
parser.add_argument("--batchSize", type=int, default=4)
parser.add_argument("--nz", type=int, default=6)
parser.add_argument("--niter", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--cuda", action="store_true", default=True)
parser.add_argument("--manualSeed", type=int)


def train(opt, netG, netD, device):
    criterion = nn.BCELoss()
    optD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    optG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    for epoch in range(opt.niter):
        for i, (real, labels) in enumerate(get_loader(opt), 0):
            netD.zero_grad()
            real, labels = real.to(device), labels.to(device)
            target = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=device)
            errD_real = criterion(netD(real, labels), target)
            errD_real.backward()
            noise = torch.randn(real.size(0), opt.nz, 1, 1, device=device)
            fake = netG(noise, labels)
            target.fill_(0.0)
            errD_fake = criterion(netD(fake.detach(), labels), target)
            errD_fake.backward()
            optD.step()
            netG.zero_grad()
            target.fill_(1.0)
            errG = criterion(netD(fake, labels), target)
            errG.backward()
            optG.step()
            print(f"[{epoch}][{i}] D {errD_real.item() + errD_fake.item():.3f} G {errG.item():.3f}")


def main():
    opt = parser.parse_args()
    if opt.manualSeed is None:
        opt.manualSeed = random.randint(1, 10000)
    torch.manual_seed(opt.manualSeed)
    if opt.cuda and torch.cuda.is_available():
        device = torch.device("cuda:0")
    else:
        device = torch.device("cpu")
    netG = Generator(opt.nz).to(device)
    netG.apply(weights_init)
    netD = Discriminator().to(device)
    netD.apply(weights_init)
    fixed_noise = torch.randn(2, opt.nz, 1, 1, device=device)
    train(opt, netG, netD, device)
    netG.eval()
    grid = netG.sample(4).cpu()
    path = netG.interpolate(fixed_noise[:1], fixed_noise[1:]).cpu()
    print(grid.shape, path.shape)


if __name__ == "__main__":
    main()
