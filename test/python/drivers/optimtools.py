import torch
import torch.nn as nn
from optimtools import *


def model(dev="cuda:0"):
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).to(dev)


def loss_of(m):
    return m(torch.randn(4, 6, device=next(m.parameters()).device)).square().mean()


def backward(m, create_graph=False):
    m.zero_grad()
    loss = loss_of(m)
    loss.backward(create_graph=create_graph)
    return loss


def train(cls, create_graph=False, steps=2, **kwargs):
    m = model()
    opt = cls(m.parameters(), **kwargs)
    for _ in range(steps):
        backward(m, create_graph)
        opt.step()


class TwoGpu(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8).to("cuda:0"), nn.Linear(8, 1).to("cuda:1")

    def forward(self, x):
        return self.b(self.a(x).to("cuda:1"))


def norm(m):
    backward(m)
    return global_norm(m.parameters())


def lookahead(resume):
    m = model()
    look = Lookahead(torch.optim.SGD(m.parameters(), lr=0.1), k=1)
    for _ in range(2):
        backward(m)
        look.step()
    state = look.state_dict()
    if resume:
        look.load_state_dict(state)
        backward(m)
        look.step()


def ema(device, what="update"):
    m = model()
    return getattr(ModelEma(m, device=device), what)(m)


def autoclip():
    m, clip = model(), AutoClip()
    for _ in range(4):
        backward(m)
        clip(m.parameters())


def flat(what):
    m = model()
    acc = FlatAccumulator(m.parameters())
    backward(m)
    getattr(acc, what)()
    acc.write_back()


def plateau(what):
    m = model()
    plat = PlateauLR(torch.optim.SGD(m.parameters(), lr=0.1))
    for _ in range(5):
        plat.step(loss_of(m))
    if what:
        plat.slope()


def finder(what):
    m = model()
    f = LRFinder(torch.optim.SGD(m.parameters(), lr=0.1))
    f.run(lambda: backward(m))
    return getattr(f, what)()


CALLS = {
    "adafactor": lambda: train(Adafactor),
    "lamb": lambda: train(Lamb),
    "lamb_clip": lambda: train(Lamb, trust_clip=True),
    "adahessian": lambda: train(AdaHessian, create_graph=True),
    "shampoo": lambda: train(Shampoo),
    "shampoo_gpu": lambda: train(Shampoo, on_host=False),
    "sgld": lambda: train(SGLD),
    "lookahead": lambda: lookahead(False),
    "lookahead_resume": lambda: lookahead(True),
    "ema": lambda: ema(None),
    "ema_cpu": lambda: ema("cpu"),
    "ema_distance": lambda: ema(None, "distance"),
    "ema_cpu_distance": lambda: ema("cpu", "distance"),
    "norm": lambda: norm(model()),
    "norm_two": lambda: two_norm(),
    "autoclip": autoclip,
    "flat_store": lambda: flat("store"),
    "flat_accumulate": lambda: flat("accumulate"),
    "plateau": lambda: plateau(False),
    "plateau_slope": lambda: plateau(True),
    "finder": lambda: finder("suggestion"),
    "finder_curve": lambda: finder("curve"),
}


def two_norm():
    m = TwoGpu()
    m(torch.randn(4, 6, device="cuda:0")).square().mean().backward()
    return global_norm(m.parameters())
