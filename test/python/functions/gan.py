from __future__ import print_function
import argparse, os, random, io
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.autograd as autograd

nz, ngf, nc = 6, 4, 3
real_label, fake_label = 1., 0.


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find('Conv') != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find('BatchNorm') != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, minibatch_std=False):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(nn.Conv2d(nc + minibatch_std, ngf, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ngf, 1, 4, 1, 0))
        self.mbstd = minibatch_std

    def forward(self, x):
        if self.mbstd:
            s = x.std(0, unbiased=False).mean()
            x = torch.cat([x, s.expand(x.size(0), 1, *x.shape[2:])], 1)
        return torch.sigmoid(self.main(x)).view(-1)


class ImagePool:
    """history of generated images"""
    def __init__(self, size, host=False):
        self.size, self.images, self.host = size, [], host

    def query(self, images):
        out = []
        for image in images:
            image = image.data.unsqueeze(0)
            stored = image.cpu() if self.host else image
            if len(self.images) < self.size:
                self.images.append(stored)
                out.append(image)
            else:
                k = random.randrange(self.size)
                out.append(self.images[k].clone())
                self.images[k] = stored
        return torch.cat(out, 0)  # raises


class GANLoss(nn.Module):
    def __init__(self, registered=True):
        super().__init__()
        if registered:
            self.register_buffer('real_label', torch.tensor([1.0]))
            self.register_buffer('fake_label', torch.tensor([0.0]))
        else:
            self.real_label = torch.tensor([1.0])
            self.fake_label = torch.tensor([0.0])

    def __call__(self, pred, target_is_real):
        t = self.real_label if target_is_real else self.fake_label
        return F.binary_cross_entropy(pred, t.expand_as(pred))  # raises


def gradient_penalty(D, real, fake, eps=None):
    if eps is None:
        eps = torch.rand(real.size(0), 1, 1, 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)  # raises
    out = D(mixed)
    g, = autograd.grad(out, mixed, torch.ones_like(out), create_graph=True)
    return ((g.flatten(1).norm(2, 1) - 1) ** 2).mean()


# clean
def case_dcgan_epoch():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cuda', action='store_true', default=True)
    parser.add_argument('--beta1', type=float, default=.5)
    opt = parser.parse_args([])
    device = torch.device("cuda:0" if opt.cuda else "cpu")
    netG = Generator().to(device)
    netG.apply(weights_init)
    netD = Discriminator(minibatch_std=True).to(device)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    fixed_noise = torch.randn(4, nz, 1, 1, device=device)
    optD, optG = [torch.optim.Adam(n.parameters(), lr=2e-4, betas=(opt.beta1, .999)) for n in (netD, netG)]
    data = [(torch.rand(4, nc, 8, 8), 0) for _ in range(2)]
    for i, (real_cpu, _) in enumerate(data):
        netD.zero_grad()
        real = real_cpu.to(device)
        label = torch.full((real.size(0),), real_label, dtype=real.dtype, device=device)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        fake = netG(torch.randn(real.size(0), nz, 1, 1, device=device))
        label.fill_(fake_label)
        criterion(netD(fake.detach()), label).backward()
        optD.step()
        netG.zero_grad()
        label.fill_(real_label)
        criterion(netD(fake), label).backward()
        optG.step()
    return netG(fixed_noise).detach().cpu().numpy().shape


# broken
def case_wgan_gp():
    D, G = Discriminator().cuda(), Generator().cuda()
    real = torch.rand(2, nc, 8, 8).cuda()
    with torch.no_grad():
        fake = G(torch.randn(2, nz, 1, 1, device='cuda'))
    loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(D, real, fake)
    loss.backward()


# clean
def case_wgan_gp_given_eps():
    D, G = Discriminator().cuda(), Generator().cuda()
    real = torch.rand(2, nc, 8, 8).cuda()
    fake = G(torch.randn(2, nz, 1, 1).type_as(real)).detach()
    loss = gradient_penalty(D, real, fake, torch.rand(1).item())
    loss = loss + gradient_penalty(D, real, fake, real.new_empty(2, 1, 1, 1).uniform_())
    loss.backward()
    return {k: p.grad.norm().item() for k, p in D.named_parameters() if p.grad is not None}


# broken
def case_pool_keeps_host_copies():
    random.seed(2)
    pool, G = ImagePool(2, host=True), Generator().cuda()
    outs = []
    for _ in range(2):
        fake = G(torch.randn(3, nz, 1, 1).cuda())
        outs.append(pool.query(fake))
    return len(outs)


# broken
def case_lsgan_labels():
    crit = GANLoss(registered=False).to('cuda')
    D = nn.DataParallel(Discriminator().cuda(), device_ids=[0])
    x = torch.rand(2, nc, 8, 8, device='cuda')
    return .5 * (crit(D(x), True) + crit(D(1 - x), False))


# clean
def case_cyclegan_checkpoint():
    random.seed(1)
    crit = GANLoss()
    crit.to('cuda')
    pool = ImagePool(2)
    G, D = Generator().cuda(), Discriminator().cuda()
    for _ in range(3):
        p = pool.query(G(torch.randn(2, nz, 1, 1, device='cuda')))
        crit(D(p), False).backward()
    buf = io.BytesIO()
    torch.save({'g': G.state_dict(), 'd': D.state_dict()}, buf)
    buf.seek(0)
    state = torch.load(buf, map_location='cpu')
    G2 = Generator()
    G2.load_state_dict(state['g'])
    a = G2.eval()(torch.zeros(1, nz, 1, 1))
    D.load_state_dict(state['d'])           # copies into the gpu parameters
    return D(a.to('cuda')).item()
