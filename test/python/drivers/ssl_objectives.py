import torch
import ssl_objectives as s

D = "cuda"
C = s.SSLConfig()


def r(*a):
    return torch.randn(*a, device=D)


def lq():
    q = s.LabelledQueue(8, 16).to(D)
    q.push(r(5, 8), torch.arange(5, device=D))
    return q


def avg(what):
    m = s.mlp([4, 4], True).to(D)
    getattr(s.WeightAverage(m), what)(m)


def follow():
    s.MoCo(C).to(D).follow(2)


def centre(what):
    c = s.Centring(8).to(D)
    c.update(r(4, 8))
    return c.trend() if what else c(r(4, 8), 1)


def crops():
    return [r(2, 3, 8, 8), r(2, 3, 8, 8), r(2, 3, 4, 4), r(2, 3, 4, 4)]


def mae(loss):
    m = s.RandomMasking(8).to(D)
    x = r(2, 6, 8)
    out, restore = m(x)
    return m.loss(out, x, restore) if loss else out


CALLS = {
    "standardise": lambda: s.standardise(r(2, 3, 4, 4)),
    "restore": lambda: s.restore_pixels(r(2, 3, 4, 4)),
    "bright": lambda: s.brightness(r(2, 3, 4, 4), 0.4),
    "bright_each": lambda: s.brightness(r(2, 3, 4, 4), 0.4, True),
    "nearest": lambda: lq().nearest(r(3, 8)),
    "positives": lambda: lq().positives(torch.arange(3, device=D)),
    "aged": lambda: lq().aged_logits(r(3, 8)),
    "oldest": lambda: lq().oldest(2),
    "follow": follow,
    "moco": lambda: s.MoCo(C).to(D)(r(4, 12), r(4, 12)),
    "pretext": lambda: s.MoCo(C).to(D).pretext_accuracy(r(4, 12), r(4, 12)),
    "byol": lambda: s.HiddenTeacher(C).to(D)(r(4, 12), r(4, 12)),
    "simsiam": lambda: s.HiddenTeacher(C).to(D).simsiam(r(4, 12), r(4, 12)),
    "avg_update": lambda: avg("update"),
    "avg_apply": lambda: avg("apply_to"),
    "avg_drift": lambda: avg("drift"),
    "centre": lambda: centre(False),
    "trend": lambda: centre(True),
    "multicrop": lambda: s.MultiCrop(C).to(D)(crops()),
    "hardest": lambda: s.MultiCrop(C).to(D).hardest(crops()),
    "sinkhorn": lambda: s.sinkhorn(r(5, 6)),
    "swav": lambda: s.SwAV(C).to(D)(r(5, 8), r(5, 8)),
    "ntxent": lambda: s.NTXent()(r(4, 8), r(4, 8)),
    "debiased2": lambda: s.NTXent().debiased(r(4, 8), r(4, 8)),
    "vicreg": lambda: s.VarianceCovariance(8).to(D).vicreg(r(5, 8)),
    "barlow": lambda: s.VarianceCovariance(8).to(D).barlow(r(5, 8), r(5, 8)),
    "mae": lambda: mae(False),
    "mae_loss": lambda: mae(True),
    "block": lambda: s.BlockMasking(8).to(D)(r(2, 6, 8)),
    "knn": lambda: s.knn_vote(r(4, 8), r(9, 8), torch.arange(9, device=D) % 3, 3),
}
