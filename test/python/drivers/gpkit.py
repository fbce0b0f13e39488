import torch

import gpkit as G

D = torch.device("cuda:0")
R = lambda *s: torch.rand(*s, device=D)
X = lambda: R(4, 2)
PD = lambda n=4: torch.eye(n, device=D) + 0.1


def _spectral():
    k = G.SpectralMixtureKernel(3, 2).to(D)
    k.initialize_from_data(X(), R(4))
    return k(X())


def _var():
    v = G.VariationalDistribution(4).to(D)
    v.init_from(R(4), PD())
    return v.kl_to_standard()


def _gp():
    gp = G.ExactGP(R(4, 2), R(4), G.ScaleKernel(G.RBFKernel()), G.GaussianLikelihood()).to(D).eval()
    return gp.posterior(X()) + gp.posterior(X())


def _gp_cpu_data():
    gp = G.ExactGP(torch.rand(4, 2), torch.rand(4), G.PeriodicKernel(), G.GaussianLikelihood()).to(D)
    return gp.posterior(X())


def _bernoulli():
    return G.BernoulliLikelihood().to(D).marginal(R(3), R(3))


def _lazy(name, *args):
    lazy = G.LazyEvaluated(X(), X(), G.RBFKernel().to(D))
    lazy.x2 = lazy.x1
    return getattr(lazy, name)(*args)


CALLS = {
    "greater": lambda: G.GreaterThan(1e-4).to(D).transform(R(3)),
    "sq_dist": lambda: G.sq_dist(X(), X()),
    "rbf": lambda: G.RBFKernel(ard_num_dims=2).to(D)(X(), X()),
    "rbf_active": lambda: G.RBFKernel(active_dims=(0,)).to(D)(X(), diag=True),
    "spectral": lambda: G.SpectralMixtureKernel(3, 2).to(D)(X()),
    "spectral_initialized": _spectral,
    "rff": lambda: G.RFFKernel(3).to(D)(X()),
    "rff_sized": lambda: G.RFFKernel(3, 2).to(D)(X()),
    "periodic": lambda: G.PeriodicKernel().to(D)(X()),
    "scale": lambda: G.ScaleKernel(G.RBFKernel()).to(D)(X()),
    "add": lambda: (G.RBFKernel() + G.PeriodicKernel()).to(D)(X()),
    "mul": lambda: (G.RBFKernel() * G.PeriodicKernel()).to(D)(X()),
    "cholesky": lambda: G.psd_safe_cholesky(PD()),
    "cholesky_bad": lambda: G.psd_safe_cholesky(torch.ones(3, 3, device=D) - 1e-6 * torch.eye(3, device=D)),
    "jitter": lambda: G.add_jitter(PD()),
    "pivoted": lambda: G.pivoted_cholesky(PD(), 3),
    "lanczos": lambda: G.lanczos_tridiag(PD().mv, 3, 4, init_vec=R(4)),
    "log_det": lambda: G.log_det_estimate(PD()),
    "lazy_root": lambda: _lazy("root"),
    "lazy_sample": lambda: _lazy("sample", 3),
    "gaussian": lambda: G.GaussianLikelihood().to(D)(R(4), PD()),
    "fixed": lambda: G.FixedNoiseLikelihood(torch.full((4,), 0.1)).to(D)(R(4), PD()),
    "fixed_given": lambda: G.FixedNoiseLikelihood(R(4), True).to(D)(R(4), PD()),
    "fixed_more": lambda: G.FixedNoiseLikelihood(torch.full((4,), 0.1), True).to(D)(R(4), PD()),
    "bernoulli": _bernoulli,
    "gp": _gp,
    "gp_cpu_data": _gp_cpu_data,
    "variational": _var,
    "variational_covar": lambda: G.VariationalDistribution(4).to(D).covar,
    "grid": lambda: G.GridInterpolation(5, (0.0, 1.0)).to(D).interpolate(R(4, 1)),
}
