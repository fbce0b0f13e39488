from model_surgery import *
import os
import tempfile
import torch
from torch import nn
D = "cuda:0"
net = lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
gpu = lambda: net().to(D)
x = lambda: torch.randn(5, 6, device=D)
y = lambda: torch.randint(4, (5,), device=D)


def split():
    m = net()
    m[2].to("cuda:1")
    m[0].to(D)
    return m


def pruner(grads):
    m = gpu()
    p = MagnitudePruner(m)
    p.compute_masks()
    if grads:
        m(x()).sum().backward()
        p.mask_gradients()
    p.zero_out()
    return p.sparsity()


def cka():
    m = gpu()
    with recording(m, ["0", "2"]) as r:
        m(x()); m(x())
    return linear_cka(r.stacked("0"), r.stacked("2"))


def tune(ema=False, reset=False):
    t = FineTuner(net(), D, ema)
    t.step(x(), y())
    if reset:
        t.reset_moments(["0.weight"])
    t.step(x(), y())


def resume():
    a, b = FineTuner(net(), "cpu"), FineTuner(net(), D)
    a.step(x().cpu(), y().cpu())
    b.resume(a.opt.state_dict())
    b.step(x(), y())


def ema_gpu():
    m = gpu()
    e = ModelEMA(m)
    e.update(m)
    e.copy_to(m)


def average(n):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(__file__))) as d:
        paths = [os.path.join(d, f"{i}.pt") for i in range(n)]
        for p in paths:
            torch.save(gpu().state_dict(), p)
        average_checkpoints(gpu(), paths)


CALLS = {
    "global": lambda: global_threshold(gpu(), 0.3),
    "global_split": lambda: global_threshold(split(), 0.3),
    "pruner": lambda: pruner(False),
    "pruner_grads": lambda: pruner(True),
    "clip": lambda: clip_outliers(x()),
    "shrink": lambda: shrink_linear(gpu()[0], [0, 3])(x()),
    "shrink_inputs": lambda: shrink_inputs(gpu()[0], [0, 3]),
    "factorize": lambda: factorize(gpu()[0], 2)(x()),
    "lora_late": lambda: inject_lora(gpu())(x()),
    "lora": lambda: inject_lora(net()).to(D)(x()),
    "observer": lambda: MinMaxObserver().to(D)(x()),
    "per_channel": lambda: PerChannelObserver(6).to(D)(x()),
    "cka": cka,
    "probe": lambda: LinearProbe(8, 4).to(D).fit_layer(gpu(), "0", x(), y()),
    "probe_accuracy": lambda: LinearProbe(8, 4).to(D).accuracy(gpu(), "0", x(), y()),
    "tune": tune,
    "tune_ema": lambda: tune(ema=True),
    "tune_reset": lambda: tune(reset=True),
    "resume": resume,
    "ema_gpu": ema_gpu,
    "average": lambda: average(2),
    "summary": lambda: weight_summary(gpu()),
    "dead": lambda: dead_units(gpu()[0]),
}
