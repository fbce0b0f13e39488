import torch
import gp_components as G

C = "cuda:0"


def r(*shape):
    return torch.randn(*shape, device=C)


def k(kernel, d=2):
    kernel.to(C)
    return kernel(r(5, d), r(4, d))


def spd(n=5):
    a = r(n, n)
    return a @ a.t() + n * torch.eye(n, device=C)


def strategy(cls=G.VariationalStrategy, dist=G.CholeskyDistribution):
    return cls(G.RBFKernel(), torch.randn(4, 2), dist(4)).to(C)


def logp(x):
    return -x.pow(2).sum()


def lik(cls, *args):
    return cls(*args).to(C)


CALLS = {
    "rbf": lambda: k(G.RBFKernel(ard=2)),
    "rbf_greater": lambda: k(G.RBFKernel(constraint=G.GreaterThan(1e-3))),
    "sum": lambda: k(G.RBFKernel() + G.PeriodicKernel()),
    "matern": lambda: k(G.MaternKernel(2.5)),
    "rff": lambda: k(G.RandomFeatureKernel(6)),
    "rff_dims": lambda: k(G.RandomFeatureKernel(6, dims=2)),
    "grid": lambda: k(G.GridKernel(G.RBFKernel(), 5, [(-2, 2), (-1, 1)])),
    "on_grid": lambda: G.GridKernel(G.RBFKernel(), 5, [(-2, 2), (-1, 1)]).to(C).on_grid(),
    "index": lambda: lik(G.IndexKernel, 3)(torch.tensor([0, 2, 1], device=C)),
    "block": lambda: lik(G.IndexKernel, 3).block([2, 1, 2]),
    "per_point": lambda: lik(G.IndexKernel, 3).per_point(r(5), [2, 1, 2]),
    "poly": lambda: lik(G.PolynomialMean, 2, 2)(r(5, 2)),
    "gauss_elp": lambda: lik(G.GaussianLikelihood).expected_log_prob(r(5), r(5).exp(), r(5)),
    "marginal": lambda: lik(G.GaussianLikelihood).marginal(r(5), spd()),
    "predictive": lambda: lik(G.GaussianLikelihood).predictive(r(5), spd()),
    "ordinal": lambda: lik(G.OrdinalLikelihood, 4).expected_log_prob(r(5), r(5).exp(), torch.randint(4, (5,), device=C)),
    "most_likely": lambda: lik(G.OrdinalLikelihood, 4).most_likely(r(5)),
    "strategy": lambda: strategy()(r(3, 2)),
    "kl": lambda: strategy(dist=G.MeanFieldDistribution).kl(),
    "natural": lambda: strategy(dist=G.NaturalDistribution)(r(3, 2)),
    "eager": lambda: strategy(G.EagerStrategy)(r(3, 2)),
    "eager_kl": lambda: strategy(G.EagerStrategy).kl(),
    "hmc": lambda: G.HMC(logp).sample(r(3)),
    "sobol": lambda: G.sobol_start(torch.tensor([[0.0, 0], [1, 2]], device=C), 4),
    "effective": lambda: G.effective_size(r(16, 2)),
    "rhat": lambda: G.gelman_rubin(r(3, 16, 2)),
    "lanczos": lambda: G.lanczos_root(spd(), 3),
}
