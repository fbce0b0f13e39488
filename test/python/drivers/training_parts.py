import torch
from torch import nn

import training_parts as T

DEV = "cuda:0"


def net():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).to(DEV)
    return model


def backward(model):
    model.zero_grad()
    loss = model(torch.randn(6, 4, device=DEV)).pow(2).mean()
    loss.backward()
    return loss


def weights(model):
    return [p for p in model.parameters() if p.dim() > 1]


def optimize(kind, only=weights, steps=3, wrap=lambda o: o, **options):
    model = net()
    optimizer = wrap(kind(only(model), **options))
    for _ in range(steps):
        backward(model)
        optimizer.step()


def memory():
    kept = T.LBFGSMemory()
    for _ in range(3):
        a = torch.rand(5, device=DEV)
        kept.push(a, a + 0.1)
    return kept


def clipped(clipper):
    model = net()
    for _ in range(3):
        backward(model)
        clipper(weights(model))


def tasks(method):
    model = net()
    x = torch.randn(6, 4, device=DEV)
    out = model(x)
    return method([out[:, 0].pow(2).mean(), out[:, 1].abs().mean() + 1], weights(model))


def shadow(use):
    model = net()
    mean = T.ShadowAverage(model)
    mean.update(model)
    return use(mean, model)


def applied(mean, model):
    with mean.applied(model):
        backward(model)


def noise(method):
    model = net()
    backward(model)
    method(weights(model))


def prune(kind):
    model = net()
    kind(model).apply(model)


def quantized(layer, *shape):
    x = torch.randn(*shape, device=DEV, requires_grad=True)
    layer.to(DEV)(x).sum().backward()


CALLS = {
    "adam": lambda: optimize(T.Adam, decay=0.1),
    "factored": lambda: optimize(T.FactoredAdam),
    "factored_vectors": lambda: optimize(T.FactoredAdam, only=lambda m: [p for p in m.parameters() if p.dim() == 1]),
    "rprop": lambda: optimize(T.Rprop),
    "rprop_table": lambda: optimize(T.TableRprop),
    "preconditioned": lambda: optimize(T.Preconditioned),
    "preconditioned_lazy": lambda: optimize(T.LazyPreconditioned),
    "lbfgs": lambda: memory().direction(torch.rand(5, device=DEV)),
    "lbfgs_matrix": lambda: memory().matrix(torch.rand(5, device=DEV)),
    "shadow_applied": lambda: shadow(applied),
    "shadow_distance": lambda: shadow(lambda mean, model: mean.distance(model)),
    "clip": lambda: clipped(T.GradientClipper()),
    "clip_percentile": lambda: clipped(T.PercentileClipper()),
    "clip_adaptive": lambda: clipped(T.AdaptiveClipper()),
    "conflict": lambda: tasks(T.ConflictProjection()),
    "balance": lambda: tasks(T.NormBalance(2)),
    "noise": lambda: noise(T.GradientNoise()),
    "noise_shared": lambda: noise(T.SharedNoise()),
    "prune": lambda: prune(T.MagnitudePruner),
    "prune_block": lambda: prune(T.BlockPruner),
    "prune_sensitivity": lambda: prune(T.SensitivityPruner),
    "observer": lambda: quantized(T.Observer(T.QuantConfig()), 4, 4),
    "observer_channels": lambda: quantized(T.Observer(T.QuantConfig(per_channel=True), 4), 4, 4),
    "observer_histogram": lambda: quantized(T.HistogramObserver(T.QuantConfig()), 4, 4),
    "codebook": lambda: quantized(T.CodebookQuantizer(), 4, 4),
    "codebook_fast": lambda: T.CodebookQuantizer().to(DEV).fast(torch.randn(4, 4, device=DEV)),
}
