import torch
import torch.nn as nn
from optim_kit import *  # noqa: F401,F403

D = torch.device("cuda:0")


def model(backward=True):
    m = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)).to(D)
    if backward:
        m(torch.rand(5, 4, device=D)).pow(2).mean().backward()
    return m


def optimize(make, steps=2):
    m = model()
    opt = make(m)
    for _ in range(steps):
        opt.step()
    return opt


def lbfgs(host):
    m = model()
    memory = LBFGSMemory(m.parameters(), keep_on_host=host)
    for _ in range(3):
        m.zero_grad()
        m(torch.rand(5, 4, device=D)).pow(2).mean().backward()
        memory.step()


def ema(device=None, warmup=False, distance=True):
    m = model()
    e = EMA(m, device=device, warmup=warmup)
    e.update(m)
    with e.swapped(m):
        m(torch.rand(5, 4, device=D))
    return e.distance(m) if distance else e


def accumulate(restore=None):
    m = model()
    a = Accumulator(m.parameters())
    if restore:
        return a.restore({"grads": restore(m)})
    a.add()
    return a.flush()


def averaged(apply):
    m = model()
    a = PosthocAverage(m)
    a.record(1)
    a.record(2)
    return a.apply(1.5) if apply else a.interpolate(1.5, 0.5)


def scheduled(as_tensor):
    opt = optimize(lambda m: AdamLike(m.parameters()))
    s = WarmupCosine(opt, 2, 6, as_tensor)
    s.step()
    opt.step()
    p = PlateauByLoss(opt)
    losses = [torch.rand((), device=D) for _ in range(4)]
    for each in losses:
        p.step(each)
    return p, losses


def history():
    seen = []
    for _ in range(3):
        clip_by_history(list(model().parameters()), seen)


def tasks():
    return [torch.randn(6, device=D) for _ in range(3)]


def fisher(host):
    m = model()
    f = {name: p.grad.pow(2).to("cpu" if host else D) for name, p in m.named_parameters()}
    return fisher_penalty(m, f, snapshot(m))


CALLS = {
    "adam": lambda: optimize(lambda m: AdamLike(param_groups_by_decay(m, depth_decay=0.9))),
    "factored": lambda: optimize(lambda m: FactoredAdam(m.parameters())),
    "sign": lambda: optimize(lambda m: SignMajority(m.parameters())),
    "lion": lambda: optimize(lambda m: LionOffloaded(m.parameters())),
    "shampoo": lambda: optimize(lambda m: Shampoo(m.parameters())),
    "shampoo_diagonal": lambda: optimize(lambda m: Shampoo(m.parameters(), diagonal=True)),
    "noise": lambda: optimize(lambda m: GradNoise(m.parameters())),
    "noise_direct": lambda: optimize(lambda m: GradNoise(m.parameters(), portable=False)),
    "lbfgs": lambda: lbfgs(False),
    "lbfgs_host": lambda: lbfgs(True),
    "clip": lambda: (clip_global(model().parameters(), 0.1), global_norm(model(False).parameters())),
    "clip_history": history,
    "agc": lambda: agc(model().parameters()),
    "min_norm": lambda: min_norm_weights(tasks()),
    "accumulate": accumulate,
    "restore_numpy": lambda: accumulate(lambda m: [p.grad.cpu().numpy() for p in m.parameters()]),
    "restore": lambda: accumulate(lambda m: [p.grad.clone() for p in m.parameters()]),
    "ema": ema,
    "ema_host": lambda: ema(device="cpu", distance=False),
    "ema_host_distance": lambda: ema(device="cpu"),
    "posthoc": lambda: averaged(True),
    "posthoc_interpolate": lambda: averaged(False),
    "schedule": lambda: scheduled(False),
    "schedule_tensor": lambda: scheduled(True),
    "trend": lambda: (lambda p, losses: p.trend(losses))(*scheduled(False)),
    "spectral": lambda: PowerSpectral(nn.Linear(4, 3)).to(D)(torch.rand(2, 4, device=D)),
    "spectral_once": lambda: PowerSpectral(nn.Linear(4, 3), 1).to(D)(torch.rand(2, 4, device=D)),
    "prune": lambda: magnitude_prune(model()),
    "fisher": lambda: fisher(False),
    "fisher_host": lambda: fisher(True),
}
