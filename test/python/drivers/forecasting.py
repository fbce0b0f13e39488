from forecasting import *
import numpy as np
import torch

D = "cuda:0"
C = ForecastConfig()


def rand(*shape, device=D):
    return torch.rand(*shape, device=device)


def group(kind):
    n = GroupNormalizer().fit(np.random.rand(30), np.arange(30) % 3)
    g = torch.tensor([0, 1, 2, 1], device=D)
    if kind == "inverse":
        n.inverse(rand(4, 6), g)
    else:
        n.transform(rand(4, 6), g if kind == "groups" else None)


def metric(reset):
    m = HorizonMetric(6).to(D)
    for _ in range(2):
        m.update(rand(4, 6), rand(4, 6))
        m.compute()
        if reset:
            m.reset()


def ragged(sort):
    mask = torch.arange(24, device=D)[None] < torch.tensor([10, 24, 5, 7], device=D)[:, None]
    RaggedEncoder(C, sort).to(D)(rand(4, 24, 1), mask)


def stateful(reset):
    m = StatefulForecaster(C).to(D)
    m.step(rand(4, 1))
    m.to("cuda:1")
    if reset:
        m.reset()
    m.step(rand(4, 1, device="cuda:1"))


def conformal(per_step):
    c = ConformalCalibrator(per_step=per_step)
    for _ in range(3):
        c.collect(rand(4, 6), rand(4, 6))
    c.interval(rand(4, 6))



def head(name, **kw):
    return build_head(name, C, **kw).to(D)


CALLS = {
    "mean_scaler": lambda: MeanScaler().to(D)(rand(4, 24), torch.ones(4, 24, device=D)),
    "group": lambda: group("groups"),
    "group_overall": lambda: group("overall"),
    "group_inverse": lambda: group("inverse"),
    "lags_index": lambda: lagged_by_index(rand(4, 40), C.lags, 24),
    "negbin": lambda: head("negbin").loss(rand(4, 6, 16), rand(4, 6).round()),
    "fixed": lambda: head("fixed").loss(rand(4, 6, 16), rand(4, 6)),
    "fixed_point": lambda: head("fixed").point(rand(4, 6, 16)),
    "binned": lambda: head("binned").sample(rand(4, 16)),
    "binned_seeded": lambda: head("binned", seed=1).sample(rand(4, 16)),
    "forecast_numpy": lambda: SampleForecast(rand(4, 50, 6), C.quantiles).numpy(),
    "forecast_quantiles": lambda: SampleForecast(rand(4, 50, 6), C.quantiles).quantiles(),
    "mase": lambda: mase(rand(4, 6), rand(4, 6), rand(4, 24)),
    "metric": lambda: metric(False),
    "metric_reset": lambda: metric(True),
    "ragged_sorted": lambda: ragged(True),
    "ragged": lambda: ragged(False),
    "stateful_reset": lambda: stateful(True),
    "stateful": lambda: stateful(False),
    "tokenize": lambda: BinTokenizer().encode(rand(4, 24)),
    "detokenize": lambda: BinTokenizer().decode(torch.randint(0, 32, (4, 24), device=D), rand(4, 1)),
    "conformal": lambda: conformal(False),
    "conformal_steps": lambda: conformal(True),
    "windows": lambda: StartIndexSampler(C)(rand(4, 80)),
}
