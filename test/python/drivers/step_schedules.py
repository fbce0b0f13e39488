import torch
from step_schedules import *

D = "cuda"
X = lambda n=2: torch.rand(n, 4, device=D)
T = lambda: torch.tensor([3, 7], device=D)
LB = lambda: torch.tensor([0, 2], device=D)
M = lambda: Denoiser().to(D)
T0 = lambda i: torch.tensor(i, device=D)


def euler():
    s = Euler()
    s.set_timesteps(4, D)
    t = s.timesteps[1]
    return s.scale(X(), t), s.step(X(), t, X()), s.sigma_of(T())


def multi():
    s = Multistep()
    s.memory.append(torch.rand(2, 4))
    return s.blended(X())


def bins():
    b = LossBins(20)
    b.update(T(), torch.rand(2, device=D))
    t, w = b.draw(3, torch.device(D))
    return w * torch.rand(3, device=D), b.smoothed(T(), torch.rand(2, device=D))


CALLS = {
    "noise": lambda: Ancestral().add_noise(X(), X(), T()),
    "velocity": lambda: Ancestral(kind="cosine").velocity(X(), X(), T()),
    "snr": lambda: Ancestral().signal_to_noise(T()),
    "ancestral": lambda: Ancestral().step(X(), T0(5), X()),
    "ancestral last": lambda: Ancestral().step(X(), T0(0), X()),
    "deterministic": lambda: [Deterministic(eta=e).step(X(), T0(i), X()) for e in (0.0, 0.5) for i in (5, 0)],
    "invert": lambda: Deterministic().invert(X(), T(), X()),
    "euler": euler,
    "euler weight": lambda: Euler().weight_of(torch.rand(2, device=D), T()),
    "multistep": lambda: Multistep().step(X(), T0(5), X()),
    "blended": multi,
    "embedding": lambda: time_embedding(T(), 6),
    "Embedding": lambda: (TimeEmbedding(6).to(D)(T()), TimeEmbedding(6).to(D)(3)),
    "denoiser": lambda: (M()(X(), T()), M()(X(), T(), LB())),
    "unconditional": lambda: M().unconditional(X(), T()),
    "guided": lambda: guided(M(), 2.0)(X(), T0(3), LB()),
    "dropped": lambda: dropped(M(), 0.5)(X(), T(), LB()),
    "pipeline": lambda: (Pipeline(M(), Deterministic())(seed=3), Pipeline(M(), Euler())()),
    "pipeline generator": lambda: Pipeline(M(), Euler()).latents(2, torch.Generator(D).manual_seed(1)),
    "varied": lambda: Pipeline(M(), Deterministic()).varied(X(), 0.5),
    "snapshots": lambda: Pipeline(M(), Deterministic()).snapshots(X(), 4),
    "bins": bins,
    "accumulate": lambda: LossBins(20).accumulate(T(), torch.rand(2, device=D)),
}
