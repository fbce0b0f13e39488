import torch
from flow_density import *

C = "cuda"
X = lambda n=5: torch.randn(n, 4, device=C)
Y = lambda n=5: torch.randn(n, device=C)


def both(m):
    m = m.to(C)
    y, _ = m(X())
    return m.inverse(y)


def one(m):
    return m.to(C)(X())


CALLS = {
    "density": lambda: normal_log_density(Y(), Y(), Y()),
    "expected": lambda: expected(torch.sin, Y(), Y().exp()),
    "by terms": lambda: expected_by_terms(torch.sin, Y(), Y().exp()),
    "shuffle": lambda: one(Shuffle(4)),
    "shuffle back": lambda: both(Shuffle(4)),
    "scale": lambda: both(Scale(4)),
    "coupling": lambda: one(Coupling(4)),
    "moving": lambda: both(MovingCoupling(4, True)),
    "rotation": lambda: one(Rotation(4)),
    "rotation back": lambda: both(Rotation(4)),
    "rotation rows": lambda: Rotation(4).to(C).inverse_of_rows(X()),
    "bins": lambda: one(Bins()),
    "bins back": lambda: both(Bins()),
    "flow": lambda: Flow(Scale(4), Shuffle(4), MovingCoupling(4), Rotation(4), width=4).to(C).log_prob(X()),
    "flow sample": lambda: Flow(Scale(4), MovingCoupling(4), width=4).to(C).sample(3),
    "fixed": lambda: FixedBaseFlow(Scale(4), width=4).to(C).log_prob(X()),
    "rational": lambda: Process("rational").fit(X(), Y()),
    "radial": lambda: (lambda p: (p.mean(X(3)), p.covariance(X(3)), p.evidence(), p.draw_on_host(X(3))))(Process().fit(X(), Y())),
    "periodic": lambda: Process("periodic", 1.0).kernel(X(), X(3)),
    "draw": lambda: Process().fit(X(), Y()).draw(X(3)),
    "features": lambda: Features(6)(X()),
    "features host first": lambda: (Features(6)(torch.rand(3, 4)), Features(6)(X())),
    "gradient": lambda: Features(6).gradient(X()),
    "inducing": lambda: inducing(X(), 3),
    "leave": lambda: list(leave_out(X(8), Y(8))),
    "calibration": lambda: calibration(Y(), Y().exp(), Y()),
    "sharpness": lambda: sharpness(Y(), Y().exp(), Y()),
}
