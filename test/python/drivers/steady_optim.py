import torch
from steady_optim import *

D = "cuda"


def net():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(D)
    m(torch.rand(5, 3, device=D)).square().mean().backward()
    return m


def opt(cls, **o):
    m = net()
    s = cls(m.parameters(), **o)
    s.step()
    s.step()
    return s


def look():
    m = net()
    o = Lookahead(torch.optim.SGD(m.parameters(), lr=0.1))
    o.step(), o.step()
    o.load_state_dict(o.state_dict())
    o.step(), o.step()


def avg(dist=False):
    m = net()
    a = Average(m)
    if dist:
        return a.distance(m)
    a.update(m)
    a.copy_to(m)


def mavg():
    m = net()
    a = ModelAverage(m)
    a.update(m)
    return a(torch.rand(2, 3, device=D))


def proj(name):
    p = Projector()
    for _ in range(2):
        p.remember(torch.rand(2, 3, device=D))
    return getattr(p, name)(torch.rand(2, 3, device=D))


def sharp(worst=False, adaptive=False):
    s = Sharpness(torch.optim.SGD(net().parameters(), lr=0.1), adaptive=adaptive)
    if worst:
        return s.worst()
    s.climb()
    s.descend()


def plateau():
    p = Plateau(torch.optim.SGD(net().parameters(), lr=0.1))
    for v in (1.0, 2.0, 2.0, 2.0, 0.5):
        p.step(torch.tensor(v, device=D))


LS = lambda: [torch.tensor(1.0, device=D), torch.tensor(2.0, device=D)]
CALLS = {
    "clip": lambda: clip_total(net().parameters(), 0.1),
    "clip none": lambda: clip_total(nn.Linear(2, 2).to(D).parameters(), 0.1),
    "clip quantile": lambda: clip_by_quantile(net().parameters()),
    "clip each": lambda: clip_by_quantile_each(net().parameters()),
    "signed": lambda: opt(Signed),
    "signed like": lambda: opt(SignedLike),
    "damped": lambda: opt(Damped),
    "damped bounded": lambda: opt(Damped, bounded=True),
    "factored": lambda: opt(Factored),
    "factored relative": lambda: opt(Factored, relative=True),
    "lookahead": look,
    "average": avg,
    "distance": lambda: avg(True),
    "model average": mavg,
    "accumulate": lambda: Accumulator(net()).add(),
    "accumulator put": lambda: Accumulator(net()).put(),
    "project": lambda: proj("free"),
    "project mixed": lambda: proj("mixed"),
    "noisy": lambda: opt(Noisy),
    "noisy seeded": lambda: opt(Noisy, seed=1),
    "noisy host": lambda: opt(NoisyOnHost, seed=1),
    "sharp": lambda: sharp(),
    "sharp adaptive": lambda: sharp(adaptive=True),
    "worst": lambda: sharp(True),
    "plateau": plateau,
    "weights": lambda: LossWeights(2).to(D)(LS()),
    "averaged": lambda: LossWeights(2).to(D).averaged(LS()),
    "together": lambda: LossWeights(2).to(D).averaged_together(LS()),
}
