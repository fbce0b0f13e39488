import torch
from torch import nn

import fitloop as L

D = torch.device("cuda:0")
P = lambda *s: torch.randn(*s, device=D)
T = lambda n=5, high=3: torch.randint(high, (n,), device=D)
net = lambda: nn.Linear(4, 3).to(D)
loader = lambda dev=D, n=3: [(torch.randn(5, 4, device=dev), torch.randint(3, (5,), device=dev)) for _ in range(n)]


def _meter(cls=L.AverageMeter, read="avg"):
    m = cls()
    for _ in range(4):
        m.update(P(2).mean(), n=2)
    return str(m), getattr(m, read)


def _updated(metric, read="compute"):
    for _ in range(2):
        metric.update(P(5, 3), T())
    return getattr(metric, read)()


def _supcon(memory):
    loss = L.SupConLoss(memory=memory).to(D)
    return [loss(P(5, 4), T()) for _ in range(2)]


def _weighting(late):
    w = L.UncertaintyWeighting(["a", "b"]).to(D)
    losses = {"a": P(1), "b": P(1)}
    if late:
        losses["c"] = P(1)
    return w(losses)


def _ema(device=None, distance=False):
    model = net()
    ema = L.ModelEma(model, device=device)
    ema.update(model)
    return ema.distance(model) if distance else ema.module.weight.sum()


def _swa():
    model, swa = net(), L.SWA()
    for _ in range(2):
        swa.collect(model)
    with swa.average(model) as averaged:
        return averaged(P(2, 4))


def _fit(*callbacks, loss=nn.CrossEntropyLoss(), dev=D):
    return L.Trainer(net(), loss, callbacks).fit(loader(dev))


def _history(**kw):
    h = L.History(keep_outputs=True, **kw)
    _fit(h)
    return h.logits()


CALLS = {
    "collection": lambda: L.detach_all({"a": [P(2)], "b": (P(1), 3)}, cpu=True)["a"][0].numpy(),
    "norm": lambda: L.global_norm([P(2), P(3)]) + L.global_norm([]),
    "average": _meter,
    "median": lambda: _meter(L.SmoothedValue, "median"),
    "trend": lambda: _meter(L.SmoothedValue, "trend"),
    "classwise": lambda: _updated(L.ClasswiseAccuracy(3)),
    "topk": lambda: _updated(L.TopKAccuracy(3)),
    "ece": lambda: _updated(L.CalibrationError()),
    "reliability": lambda: _updated(L.CalibrationError(), "reliability"),
    "reliability_given": lambda: _updated(L.CalibrationError(boundaries=torch.linspace(0, 1, 4, device=D)), "reliability"),
    "focal": lambda: L.FocalLoss().to(D)(P(5, 3), T()),
    "focal_alpha": lambda: L.FocalLoss(alpha=0.25).to(D)(P(5, 2), T(high=2)),
    "supcon": lambda: _supcon(0),
    "supcon_queue": lambda: _supcon(8),
    "uncertainty": lambda: _weighting(False),
    "uncertainty_late": lambda: _weighting(True),
    "ema": _ema,
    "ema_host": lambda: _ema("cpu"),
    "ema_distance": lambda: _ema(distance=True),
    "ema_host_distance": lambda: _ema("cpu", True),
    "swa": _swa,
    "fit": lambda: _fit(L.EarlyStopping(), dev="cpu"),
    "fit_noise": lambda: _fit(L.GradientNoise()),
    "fit_noise_model": lambda: _fit(L.GradientNoise(on_model=True)),
    "history": _history,
    "history_device": lambda: _history(to_host=False),
    "fit_focal": lambda: _fit(L.History(), loss=L.FocalLoss()),
}
