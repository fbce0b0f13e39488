import torch
from neural_operators import *

D = "cuda"
C = OperatorConfig()


def field(device=D, channels=1):
    return torch.randn(2, channels, 8, 8, device=device)


def grid_two():
    embedding = GridEmbedding()
    return [embedding(field(device)) for device in ("cuda:0", "cuda:1", "cpu")]


def normal(kind, decode, channels=None):
    normalizer = kind(torch.randn(9, 3, 8))
    x = normalizer.encode(torch.randn(2, 3, 8, device=D))
    return normalizer.decode(x if channels is None else x[:, channels], channels) if decode else x


def sensors():
    return torch.randn(3, 5, device=D)


def graph(aggregate):
    return GraphKernel(aggregate=aggregate).to(D)(torch.rand(6, 2, device=D), torch.rand(6, 4, device=D))


def pod(device):
    basis = PODBasis(torch.randn(6, 9, device=device), 4).to(D).truncate(0.8)
    return basis(torch.randn(2, len(basis.modes), device=D))


def poisson(residual):
    solver, source = PoissonSolver(6), torch.randn(6, 6, device=D)
    u = solver.solve(source)
    return solver.residual(u, source) if residual else u


def sobolev(dim):
    return SobolevLoss(dim=dim).to(D)(torch.randn(2, 8, 8, device=D), torch.randn(2, 8, 8, device=D))


def physics(loss):
    each = Physics(torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(D))
    return each.loss() if loss else each.residual(each.sample())


CALLS = {
    "fno": lambda: FNO(C).to(D)(field()),
    "fno_half": lambda: FNO(C, HalfSpectralConv).to(D)(field()),
    "fno_fourier": lambda: FNO(C, embedding=FourierGridEmbedding()).to(D)(field()),
    "grid_two": grid_two,
    "encode": lambda: normal(UnitGaussian, False),
    "decode": lambda: normal(UnitGaussian, True, [0, 2]),
    "range": lambda: normal(RangeNormalizer, True),
    "deeponet": lambda: DeepONet().to(D)(sensors()),
    "deeponet_cached": lambda: DeepONet().to(D).freeze_basis().cached(sensors()),
    "deeponet_coefficients": lambda: DeepONet().to(D).coefficients(torch.randn(3, 7, device=D)),
    "pod": lambda: pod("cpu"),
    "pod_gpu": lambda: pod(D),
    "wavelet": lambda: WaveletTransform().to(D)(torch.randn(2, 1, 8, device=D)),
    "wavelet_inverse": lambda: WaveletTransform().to(D).inverse(torch.randn(2, 2, 4, device=D)),
    "graph": lambda: graph("sum"),
    "graph_dense": lambda: graph("dense"),
    "sphere": lambda: SphericalQuadrature(5).integrate(torch.randn(2, 5, 8, device=D)),
    "zonal": lambda: SphericalQuadrature(5).zonal_mean(torch.randn(5, 8, device=D)),
    "legendre": lambda: SphericalQuadrature(5).legendre(torch.randn(2, 5, 8, device=D), 3),
    "sobolev": lambda: sobolev(1),
    "sobolev_plane": lambda: sobolev(2),
    "poisson": lambda: poisson(False),
    "poisson_residual": lambda: poisson(True),
    "rollout": lambda: Rollout(FNO(C).to(D), D)(field("cpu"), 2),
    "rollout_host": lambda: Rollout(Advection(), D, keep="host")(field("cpu"), 2),
    "advection": lambda: Rollout(Advection(), "cuda:1")(field("cuda:1"), 2),
    "physics": lambda: physics(False),
    "physics_loss": lambda: physics(True),
}
