import numpy as np
import torch
import tabular_series as S

C = "cuda:0"


def r(*shape):
    return torch.randn(*shape, device=C)


def i(high, *shape):
    return torch.randint(high, shape, device=C)


def nan():
    x = r(3, 6)
    x[0, 2] = x[1, 0] = x[2, 5] = float("nan")
    return x


BINS = [np.linspace(-1, 1, 4), np.linspace(-2, 2, 5)]
DAYS = torch.tensor([3, 100, 364])
CALLS = {
    "tokens": lambda: S.FeatureTokenizer(2, [3, 4], 4).to(C)(r(5, 2), i(3, 5, 2)),
    "unknown": lambda: S.FeatureTokenizer(2, [3, 4], 4, S.UnknownAwareTokens).to(C)(r(5, 2), i(3, 5, 2)),
    "drop": lambda: S.FeatureTokenizer(2, [], 4).to(C).drop(r(5, 3, 4)),
    "ple": lambda: S.PiecewiseLinearEncoding(BINS).to(C)(r(5, 2)),
    "ple_soft": lambda: S.PiecewiseLinearEncoding(BINS).to(C).soft(r(5, 2)),
    "season": lambda: S.Calendar().season(DAYS.to(C)),
    "fourier": lambda: S.Calendar().fourier(DAYS.to(C)),
    "holiday": lambda: S.Calendar([0, 359]).to_holiday(DAYS.to(C)),
    "standard": lambda: S.StandardScaler().fit_transform(r(9, 2)),
    "robust": lambda: S.RobustScaler().fit_transform(r(9, 2)),
    "robust_inverse": lambda: S.RobustScaler().fit(r(9, 2)).inverse(r(9, 2)),
    "minmax": lambda: S.RunningMinMax(2).fit_transform(r(9, 2)),
    "minmax_update": lambda: S.RunningMinMax(2).update(r(9, 2)),
    "quantile": lambda: S.QuantileScaler().fit_transform(r(9, 2)),
    "spread": lambda: S.QuantileScaler().spread(r(9, 2)),
    "series_default": lambda: S.SeriesScaler(default=1.0).to(C)(r(2, 9), torch.ones(2, 9, device=C)),
    "constant": lambda: S.ConstantImputer([0.0] * 6).to(C)(nan()),
    "replace": lambda: S.ConstantImputer([0.0] * 6).to(C).replace(nan()),
    "forward": lambda: S.ForwardImputer().to(C)(nan()),
    "linear": lambda: S.LinearImputer().to(C)(nan()),
    "lag_attend": lambda: S.LagFeatures([1, 2], 3).attend(r(2, 9), r(2)),
    "lag_scatter": lambda: S.LagFeatures([1, 2], 3).scatter(r(2, 9), r(2, 2, 3)),
    "window": lambda: S.WindowSampler(3, 2)(r(2, 9)),
    "window_time": lambda: S.WindowSampler(3, 2).with_time(r(2, 9)),
    "ql": lambda: S.METRICS["quantileloss"](reduction="none").to(C)(r(2, 4, 3), r(2, 4)),
    "ql_inter": lambda: S.QuantileLoss().to(C).interpolate(r(2, 4, 3), 0.3),
    "smooth_ql": lambda: S.SmoothQuantileLoss().to(C)(r(2, 4, 3), r(2, 4)),
    "normal": lambda: S.NormalOutput(3).to(C)(r(2, 3)).log_prob(r(2)),
    "binned": lambda: S.BinnedOutput(3).to(C).log_prob(r(2, 3), r(2)),
    "binned_mean": lambda: S.BinnedOutput(3).to(C).mean(r(2, 3)),
}
