import torch
from inverse_problems import *

D = "cuda"


def img(d=D, c=1):
    return torch.rand(2, c, 8, 8, device=d)


def solve(cls, physics, prior=None, d=D, **k):
    p = physics.to(d)
    s = cls(p, prior, SolverConfig(**k))
    y = p(img(d))
    s.solve(y)
    return s


def fista_moves(step=None):
    s = solve(FISTA, Blur(), TVPrior(), step=step)
    s.physics.to("cuda:1")
    return s.solve(s.physics(img("cuda:1")))


def admm(warm):
    s = solve(ADMM, Inpainting((8, 8)), HaarPrior(), warm_start=warm)
    return s.solve(s.physics(img()))


def shards(norm, devices=("cuda:0", "cuda:1")):
    p = ShardedPhysics([Blur(), Blur("motion")], devices)
    y = p.A(img())
    return p.residual_norm(img(), y) if norm else p.A_adjoint(y)


def diffusion():
    return DiffusionPosterior(nn.Conv2d(1, 1, 3, padding=1)).to(D)


def board(table):
    b = QualityBoard()
    b.add("x", img(), img())
    return b.table() if table else b.mean("x")


CALLS = {
    "inpaint": lambda: solve(ConjugateGradient, Inpainting((8, 8), noise=GaussianNoise())),
    "blur_cg": lambda: solve(ConjugateGradient, Blur(noise=GaussianNoise())).trace.numpy(),
    "levels": lambda: Blur(noise=MultiLevelNoise()).to(D)(img()),
    "at_level": lambda: MultiLevelNoise().at_level(img(), 2),
    "tomo": lambda: Tomography(8).to(D).A(img()),
    "tomo_adjoint": lambda: Tomography(8).to(D).A_adjoint(torch.rand(2, 1, 4, 8, device=D)),
    "fourier": lambda: solve(ConjugateGradient, UndersampledFourier(8, device=D)),
    "fourier_adj": lambda: UndersampledFourier(8, device=D).adjointness(img()),
    "shards": lambda: shards(False),
    "shards_norm": lambda: shards(True),
    "shards_norm_one": lambda: shards(True, ("cuda:0", "cuda:0")),
    "fista_haar": lambda: solve(FISTA, Blur(), HaarPrior()),
    "fista_tv": lambda: solve(FISTA, Blur(), TVPrior(), step=0.5),
    "fista_dct": lambda: solve(FISTA, Blur(), DCTPrior(), step=0.5),
    "fista_moves": fista_moves,
    "fista_moves_given": lambda: fista_moves(0.5),
    "admm": lambda: admm(False),
    "admm_warm": lambda: admm(True),
    "anderson": lambda: AndersonFixedPoint(lambda x: 0.5 * x)(img()),
    "anderson_short": lambda: AndersonFixedPoint(lambda x: 0.5 * x, SolverConfig(history=9))(img()),
    "unrolled": lambda: UnrolledNet(Blur()).to(D)(img()),
    "unrolled_channels": lambda: UnrolledNet(Blur(), channels=2, per_channel=True).to(D)(img(c=2)),
    "diffusion_loss": lambda: diffusion().training_loss(img()),
    "diffusion_restore": lambda: diffusion().restore(img(), Inpainting((8, 8)).to(D), (2, 1, 8, 8)),
    "board": lambda: board(False),
    "board_table": lambda: board(True),
}
