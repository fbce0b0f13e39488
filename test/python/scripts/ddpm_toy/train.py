import os
import tempfile

import numpy as np
import torch

from ddpm import EMA, Diffusion, ScoreNet

device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
workdir = tempfile.mkdtemp()


def two_moons(n):
    a = np.random.rand(n) * np.pi
    pts = np.stack([np.cos(a), np.sin(a)], 1)
    return torch.from_numpy(pts.astype(np.float32))


def build():
    net = ScoreNet(2, 8).to(device)
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)


def fit(net, opt, ema, diffusion, steps, log):
    for step in range(steps):
        loss = diffusion.training_loss(net, two_moons(16).to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
        log[step] = loss.item()


diffusion, ema = Diffusion(8), EMA()
net, opt = build()
ema.register(net)
log = torch.zeros(4)
fit(net, opt, ema, diffusion, 4, log)
path = os.path.join(workdir, "last.pt")
torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "ema": ema.state_dict(), "log": log}, path)

ckpt = torch.load(path, map_location="cpu")
net, opt = build()
net.load_state_dict(ckpt["net"])
opt.load_state_dict(ckpt["opt"])
ema = EMA()
ema.load_state_dict(ckpt["ema"], device)
more = torch.zeros(2)
fit(net, opt, ema, diffusion, 2, more)
ema.apply(net)
samples = diffusion.sample(net, 5, 2)
ema.restore(net)
np.save(os.path.join(workdir, "samples.npy"), samples.cpu().numpy())
print(torch.cat([ckpt["log"], more]).mean().item())
