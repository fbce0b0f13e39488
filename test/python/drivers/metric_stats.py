import numpy as np
import torch

import metric_stats as M

DEV = "cuda:0"


def labels(n=12, c=3):
    return torch.arange(n, device=DEV) % c


def fed(metric, *batch, rounds=2):
    metric = metric.to(DEV)
    for _ in range(rounds):
        metric.update(*batch)
    value = metric.compute()
    metric.reset()
    metric.update(*batch)
    return value


def probs(n=12, c=3):
    return torch.randn(n, c, device=DEV).softmax(-1)


def rows(n=3, m=6):
    return torch.rand(n, m, device=DEV), torch.arange(n * m, device=DEV).view(n, m) % 2


def vec(n=12):
    return torch.rand(n, device=DEV)


def retrieval(kind):
    return fed(kind(), vec(), labels(12, 4) > 1, labels(12, 4))


def distance():
    return M.ReferenceDistance(np.zeros(3), np.eye(3)).to(DEV)


def decayed():
    return M.DecayedMoments().update(torch.rand(5, 3, device=DEV)).update(torch.rand(5, 3, device=DEV))


def reservoir():
    metric = M.Reservoir().to(DEV)
    metric.update(vec())
    return metric


CALLS = {
    "confusion": lambda: fed(M.Confusion(3), labels(), labels().roll(1)),
    "kappa": lambda: fed(M.WeightedKappa(3), labels(), labels().roll(1)),
    "plain_confusion": lambda: fed(M.PlainConfusion(3), labels(), labels()),
    "calibration": lambda: fed(M.Calibration(), probs(), labels()),
    "calibration_adaptive": lambda: fed(M.AdaptiveCalibration(), probs(), labels()),
    "calibration_quantile": lambda: fed(M.QuantileCalibration(), probs(), labels()),
    "temperature": lambda: M.TemperatureScaling().to(DEV).fit(torch.randn(12, 3, device=DEV), labels()),
    "temperature_smooth": lambda: M.TemperatureScaling().to(DEV).fit_smooth(torch.randn(12, 3, device=DEV), labels()),
    "auroc": lambda: M.auroc(vec(), labels(12, 2)),
    "average_precision": lambda: M.average_precision(vec(), labels(12, 2)),
    "average_precision_points": lambda: M.average_precision(vec(), labels(12, 2), points=11),
    "ndcg": lambda: M.ndcg(*rows()),
    "rank_biased": lambda: M.rank_biased_precision(*rows()),
    "retrieval": lambda: retrieval(M.Retrieval),
    "retrieval_missing": lambda: retrieval(M.MissingAwareRetrieval),
    "spearman": lambda: M.spearman(vec(), vec()),
    "kendall": lambda: M.kendall(vec(), vec()),
    "moments": lambda: fed(M.Moments(4), torch.rand(6, 4, device=DEV)),
    "distance": lambda: fed(distance(), torch.rand(6, 3, device=DEV)),
    "mahalanobis": lambda: distance().mahalanobis(torch.rand(6, 3, device=DEV)),
    "decayed": lambda: decayed().corrected(),
    "decayed_rows": lambda: decayed().corrected_rows(),
    "reservoir": lambda: reservoir().compute(),
    "reservoir_histogram": lambda: reservoir().histogram(),
    "bootstrap": lambda: M.Bootstrap(M.spearman).limits(vec(), vec()),
    "bootstrap_poisson": lambda: M.PoissonBootstrap(torch.mean).limits(vec()),
    "bootstrap_bayes": lambda: M.BayesianBootstrap(torch.mean).samples(vec()),
}
