import numpy as np
import torch
from causal_forests import *

D = "cuda"


def data(d=D):
    torch.manual_seed(0)
    x = torch.randn(30, 3)
    t = (torch.rand(30) > 0.5).float()
    return CausalData(x, t, x[:, 0] + t * x[:, 1]).to(d)


def forest(**k):
    return CausalForest(ForestConfig(**k)).fit(data())


def kernel(devices):
    return forest().spread(devices).kernel(data().x, data().x)


def fitter(factory=RidgeNuisance):
    return CrossFitter(factory)


def rlearner():
    return RLearner(fitter(), fitter(PropensityNet)).fit(data())


def ensemble():
    c, d = fitter(), data()
    c.out_of_fold(d.x, d.outcome)
    return c.ensemble(d.x)


def uplift():
    d = data()
    return UpliftReport(forest().predict(d.x), d)


def policy():
    return PolicyValue(torch.randn(30, 2, device=D))


ARMS = np.random.RandomState(0).randint(0, 2, 30)
E2 = (lambda: (torch.randn(4, device=D), torch.rand(4, device=D)))
CALLS = {
    "standardize": lambda: Standardizer().fit(data().x).transform(data().x),
    "standardize_column": lambda: Standardizer().fit(data().x).column(data().x, 1),
    "ridge": lambda: RidgeNuisance().fit(data().x, data().outcome).predict(data().x),
    "net": lambda: NetNuisance().fit(data().x, data().outcome).predict(data().x),
    "propensity": lambda: PropensityNet().fit(data().x, data().treatment).predict(data().x),
    "out_of_fold": lambda: fitter().out_of_fold(data().x, data().outcome),
    "residual_table": lambda: fitter().residual_table(data().x, data().outcome, data().treatment),
    "ensemble": ensemble,
    "forest": lambda: forest().predict(data().x),
    "forest_dishonest": lambda: forest(honest=False).predict(data().x),
    "forest_bootstrap": lambda: forest(sampling="bootstrap"),
    "forest_quantile": lambda: forest(splitter="quantile"),
    "forest_median": lambda: forest(splitter="median").predict(data().x),
    "spread_predict": lambda: forest().spread(["cuda:1"]).predict(data("cuda:1").x),
    "kernel_one": lambda: kernel(["cuda:2"]),
    "kernel_two": lambda: kernel(["cuda:0", "cuda:1"]),
    "out_of_bag": lambda: forest().out_of_bag(data().x),
    "oob_spread": lambda: forest().oob_spread(data().x),
    "bounds": lambda: Interval().bounds(*E2()),
    "fan": lambda: Interval().fan(*E2()),
    "rlearner": lambda: rlearner().predict(data().x),
    "rlearner_loaded": lambda: rlearner().loads(rlearner().dumps()).predict(data().x),
    "rlearner_average": lambda: rlearner().loads(rlearner().dumps()).average_effect(data().x),
    "area": lambda: uplift().area(),
    "qini": lambda: uplift().qini(),
    "rule": lambda: policy().of_rule(torch.randn(30, device=D)),
    "assignment": lambda: policy().of_assignment(ARMS),
    "regret": lambda: policy().regret(ARMS),
}
