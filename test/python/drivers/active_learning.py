import torch
from active_learning import *

D = "cuda"
C = LoopConfig()


def pool():
    return Pool(torch.randn(16, 6), torch.randint(0, 4, (16,)))


def loop(name):
    return lambda: LearningLoop(Classifier(C), pool(), name, C).run()


def x(n=5, device=D):
    return torch.randn(n, 6, device=device)


def temperature(classes):
    labels = torch.randint(0, 4, (5,), device=D)
    TemperatureScaling(classes).fit(torch.randn(5, 4, device=D), labels)


def gate(kind):
    each = kind()
    for _ in range(8):
        each.offer(torch.rand(3, device=D))


def prior(observe):
    module = PriorCorrection(C).to(D)
    if observe:
        module.observe(torch.randint(0, 4, (9,), device=D))
    module(torch.randn(3, 4, device=D))


CALLS = {
    "entropy": loop("entropy"),
    "margin": loop("margin"),
    "bald": loop("bald"),
    "bald_corrected": loop("bald_corrected"),
    "coreset": loop("coreset"),
    "coreset_cached": loop("coreset_cached"),
    "badge": loop("badge"),
    "badge_offload": loop("badge_offload"),
    "badge_numpy": loop("badge_numpy"),
    "density_fit": lambda: DensityEstimator(3).typicality(x(9)),
    "crowding": lambda: DensityEstimator(3).crowding(DensityEstimator(3).fit(x(9))),
    "committee_gather": lambda: Committee(C).spread().gather().consensus(x()),
    "committee_spread": lambda: Committee(C).spread().consensus(x()),
    "committee_entropy": lambda: Committee(C).spread().vote_entropy(x(device="cuda:2")),
    "temperature": lambda: temperature(None),
    "temperature_class": lambda: temperature(4),
    "gate": lambda: gate(StreamGate),
    "gate_float": lambda: gate(FloatGate),
    "prior": lambda: prior(False),
    "prior_observed": lambda: prior(True),
}
