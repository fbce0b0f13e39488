import torch
from torch import nn

import optimlib as O


def net():
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to("cuda:0")
    loss = m(torch.rand(2, 3, device="cuda:0")).pow(2).mean()
    loss.backward()
    return m


def steps(cls, **kw):
    m = net()
    o = cls(m.parameters(), **kw)
    o.step()
    o.step()


def sam():
    m = net()
    o = O.SAM(m.parameters(), torch.optim.SGD, lr=0.1)
    o.first_step()
    o.second_step()


def average(cls):
    m = net()
    a = cls(m)
    a.update(m)
    return a


def trace():
    m = nn.Linear(3, 1).to("cuda:0")
    return O.hutchinson_trace(m(torch.rand(2, 3, device="cuda:0")).pow(2).mean(), m.parameters())


vec = lambda k: [torch.randn(4, device="cuda:0") for _ in range(k)]
CALLS = {
    "lion": lambda: steps(O.Lion, weight_decay=0.1),
    "lars": lambda: steps(O.LARS, lr=0.1),
    "sam": sam,
    "adafactor": lambda: steps(O.Adafactorish),
    "ema": lambda: average(O.EMA).copy_to(net()),
    "swa": lambda: average(O.SWA),
    "clip": lambda: O.clip_by_global_norm(net().parameters(), 0.1),
    "adaptive": lambda: O.adaptive_clip(net().parameters()),
    "flatten": lambda: O.flatten_grads(net().parameters()),
    "hutchinson": trace,
    "noise": lambda: O.gradient_noise(net().parameters()),
    "pcgrad": lambda: O.pcgrad(vec(3)),
    "cagrad": lambda: O.cagrad_weights(vec(2)),
}
