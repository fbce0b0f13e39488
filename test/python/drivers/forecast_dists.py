import torch
import forecast_dists as f

D = "cuda"
C = f.HeadConfig


def head(name):
    return f.build_head(C(name=name)).to(D)


def r(*s):
    return torch.randn(*s, device=D)


def score():
    s = f.IntervalScore((0.5, 0.9))
    s.update(r(3, 2), r(3, 2) + 1, r(3))
    return s


def band():
    return f.ConformalBand(2).calibrate(r(5), r(5), 0).calibrate(r(5), r(5), 1)


def fc(name="normal"):
    return f.RecurrentForecaster(C(name=name)).to(D)


CALLS = {
    "normal": lambda: head("normal").loss(r(4, 8), r(4), torch.rand(4, device=D) + 1),
    "shifted": lambda: head("shifted").loss(r(4, 8), r(4)),
    "student": lambda: head("student_t").loss(r(4, 8), r(4)),
    "student_sample": lambda: head("student_t")(r(4, 8)).sample(),
    "mixture": lambda: head("mixture").loss(r(4, 8), r(4)),
    "fixed": lambda: head("fixed_mixture").loss(r(4, 8), r(4)),
    "scaler": lambda: f.MeanAbsScaler().to(D)(r(2, 6), torch.ones(2, 6, device=D)),
    "seasonal": lambda: f.SeasonalScaler(3).to(D)(r(2, 6), torch.ones(2, 6, device=D)),
    "profile": lambda: f.SeasonalScaler(3).to(D).profile(r(2, 6)),
    "qloss": lambda: f.QuantileLoss((0.1, 0.9)).to(D)(r(4, 2), r(4)),
    "qlevels": lambda: f.QuantileLoss((0.1, 0.9)).to(D).per_level(r(4, 2), r(4)),
    "coverage": lambda: score().coverage(),
    "weighted": lambda: score().weighted(torch.ones(2, device=D)),
    "crps": lambda: f.crps_ensemble(r(7, 3), r(3)),
    "curve": lambda: f.sample_quantile_curve(r(7, 3)),
    "energy": lambda: f.energy_score(r(7, 3), r(3)),
    "expect": lambda: f.expectation(torch.sin, r(3), r(3).abs()),
    "expect_b": lambda: f.expectation_batched(torch.sin, r(3), r(3).abs()),
    "scores": lambda: f.to_normal_scores(r(5), r(9).sort()[0]),
    "jitter": lambda: f.jitter_scores(r(5)),
    "filter": lambda: f.LocalLevelFilter().to(D)(r(2, 4)),
    "interval": lambda: band().interval(r(4), 0.8),
    "grouped": lambda: band().grouped_interval(r(4), torch.tensor([0, 1, 0, 1], device=D), 0.8),
    "unroll": lambda: fc("student_t").unroll(r(2, 5), 3),
    "discounted": lambda: fc().discounted_loss(r(2, 5)),
    "summarise": lambda: f.summarise(r(6, 3)),
}
