import numpy as np
import torch
import forecast_parts as f

D = "cuda:0"
START = np.datetime64("2021-03-01")


def randn(*shape):
    torch.manual_seed(4)
    return torch.randn(*shape, device=D)


def scale(name):
    made = f.Scaler.registry[name]()(randn(2, 8), torch.ones(2, 8, device=D))
    return made.undo(made.values)


def norm():
    return f.ReversibleNorm(3).to(D)


def energy(x):
    return 0.5 * x.pow(2).sum(-1)


def band(**options):
    return f.ConformalBand().calibrate(randn(9, 4), randn(9, 4) + 0.1, **options).band(randn(2, 4))


def paths():
    return f.SamplePaths(randn(2, 7, 4))


def round_trip():
    made = norm()
    return made.inverse(made(randn(2, 5, 3)))


def head(cls):
    return cls(6).to(D).loss(randn(4, 6), randn(4))


CALLS = {
    "scale_mean": lambda: scale("mean"),
    "scale_standard": lambda: scale("standard"),
    "scale_none": lambda: scale("none"),
    "norm_round_trip": round_trip,
    "norm_inverse": lambda: norm().inverse(randn(2, 5, 3)),
    "calendar": lambda: f.CalendarFeatures().to(D)(randn(2, 9, 1), START),
    "calendar_embedded": lambda: f.CalendarFeatures().to(D).embedded(randn(2, 9, 1), START),
    "lagged": lambda: f.lagged(randn(2, 12), [1, 3], 4),
    "lagged_flat": lambda: f.lagged_flat(randn(2, 12), [1, 3]),
    "seasonal": lambda: f.SeasonalBlock(6, 5, 4).to(D)(randn(2, 6)),
    "trend": lambda: f.TrendBlock(6, 5, 3).to(D)(randn(2, 6)),
    "quantile": lambda: f.QuantileLoss()(randn(2, 4, 3), randn(2, 4)),
    "quantile_decay": lambda: f.QuantileLoss(horizon_decay=0.9)(randn(2, 4, 3), randn(2, 4)),
    "masked_mean": lambda: f.masked_mean(randn(2, 4), randn(2, 4) > 0),
    "head_normal": lambda: [head(f.DistributionHead), head(f.MixtureHead)],
    "head_equal": lambda: head(f.EqualMixtureHead),
    "flow_forward": lambda: f.Flow(4).to(D)(randn(3, 4)),
    "flow_log_prob": lambda: f.Flow(4).to(D).log_prob(randn(3, 4)),
    "latent_shared": lambda: f.LatentRegulariser()(randn(3, 4), randn(3, 4)),
    "latent_each": lambda: f.LatentRegulariser(4)(randn(3, 4), randn(3, 4)),
    "filter": lambda: f.LocalLevelFilter().to(D)(randn(2, 6)),
    "filter_forecast": lambda: f.LocalLevelFilter().to(D).forecast(randn(2, 6), 3),
    "process_posterior": lambda: f.GaussianProcess().posterior(randn(5, 2), randn(5), randn(3, 2)),
    "process_draw": lambda: f.GaussianProcess().draw(randn(5, 2)),
    "leapfrog": lambda: f.LeapfrogSampler(energy)(randn(3, 2)),
    "leapfrog_mass": lambda: f.LeapfrogSampler(energy, mass=(1.0, 2.0))(randn(3, 2)),
    "band": lambda: band(),
    "band_each": lambda: band(each_step=True),
    "paths_score": lambda: [paths().energy_score(randn(2, 4)), paths().interval()],
    "paths_ranks": lambda: paths().ranks(randn(2, 4)),
}
