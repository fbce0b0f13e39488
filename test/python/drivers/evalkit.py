import torch
from torch import nn

import evalkit as E

D = torch.device("cuda:0")
P = lambda *s: torch.rand(*s, device=D)
T = lambda n, *s: torch.randint(n, s, device=D)


def _auroc(**kw):
    m = E.AUROC(**kw).to(D)
    m.update(P(6), T(2, 6))
    m.update(torch.tensor([0.2, 0.9]).to(D), torch.tensor([0, 1]).to(D))
    return m.compute()


def _mrr():
    m = E.RetrievalMRR().to(D)
    return m(torch.tensor([0.3, 0.2, 0.9, 0.8]).to(D), torch.tensor([1, 0, 0, 0]).to(D), torch.tensor([0, 0, 1, 1]).to(D))


def _fid():
    m = E.FrechetDistance(nn.Linear(4, 3), 3).to(D)
    m.update(P(6, 4), True)
    m.update(P(6, 4), False)
    return m.compute()


def _tracker():
    t = E.MetricTracker(E.ConfusionMatrix(3, normalize="all").to(D))
    t.increment(P(5, 3), T(3, 5))
    return t.compute_all()


def _tracker_best():
    t = E.MetricTracker(E.MeanMetric().to(D))
    for _ in range(2):
        t.increment(P(4))
    return t.best()


mae = lambda p, t: (p - t).abs().mean()

CALLS = {
    "confusion": lambda: E.ConfusionMatrix(3, normalize="true", ignore_index=2).to(D)(P(5, 3), T(3, 5)),
    "kappa_none": lambda: E.CohenKappa(3).to(D)(P(5, 3), T(3, 5)),
    "kappa_linear": lambda: E.CohenKappa(3, "linear").to(D)(P(5, 3), T(3, 5)),
    "kappa_quadratic": lambda: E.CohenKappa(3, "quadratic").to(D)(P(5, 3), T(3, 5)),
    "auroc": lambda: _auroc(),
    "auroc_partial": lambda: _auroc(max_fpr=0.5),
    "mrr": _mrr,
    "ssim": lambda: E.SSIM().to(D)(P(2, 3, 8, 8), P(2, 3, 8, 8)),
    "ssim_range": lambda: E.SSIM(data_range=1.0).to(D)(P(2, 3, 8, 8), P(2, 3, 8, 8)),
    "pearson": lambda: E.PearsonCorrCoef(2).to(D)(P(5, 2), P(5, 2)),
    "mean": lambda: E.MeanMetric().to(D)(P(5), 2.0),
    "mean_weighted": lambda: E.MeanMetric(0.0).to(D)(torch.tensor([1.0, float("nan")], device=D), P(2)),
    "tracker": _tracker,
    "tracker_best": _tracker_best,
    "frechet": _fid,
    "bootstrap": lambda: E.bootstrap(mae, P(5), P(5)),
    "bootstrap_weights": lambda: E.bootstrap_weights(mae, P(5), P(5)),
    "edit": lambda: E.edit_distance_rates(["abc", "d"], ["abd", "d"]),
    "topk": lambda: E.topk_onehot(P(4, 3), 2),
    "precision": lambda: E.precision_at_thresholds(P(6), T(2, 6)),
    "precision_given": lambda: E.precision_at_thresholds(P(6), T(2, 6), P(3)),
}
