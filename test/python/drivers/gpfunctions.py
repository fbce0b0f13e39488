import torch

import gpfunctions as G

D = torch.device("cuda:0")
X = lambda n=5, d=2: torch.rand(n, d, device=D)


def _prior():
    k = G.RBFKernel(ard_num_dims=2, prior=G.NormalPrior(0.0, 2.0)).to(D)
    k.lengthscale = 0.7
    k.lengthscale = torch.tensor([[0.3, 0.4]], device=D)
    return k.prior_log_prob()


def _spectral():
    k = G.SpectralMixtureKernel(3).to(D)
    k.initialize_from_data(X(6, 1), X(6, 1))
    return k(X(6, 1))


def _spd(n=4):
    a = X(n, n)
    return a @ a.t() + n * torch.eye(n, device=D)


CALLS = {
    "rbf": lambda: G.RBFKernel(ard_num_dims=2).to(D)(X(), X(3)),
    "rbf_prior": _prior,
    "rbf_interval": lambda: G.RBFKernel(constraint=G.Interval(0.1, 2.0)).to(D)(X()),
    "rbf_interval_vector": lambda: G.RBFKernel(ard_num_dims=2, constraint=G.Interval([0.1, 0.2], [2.0, 3.0])).to(D)(X()),
    "active_dims": lambda: G.RBFKernel(active_dims=[1]).to(D)(X()),
    "matern": lambda: G.MaternKernel(nu=1.5).to(D)(X(), diag=True),
    "sum": lambda: (G.RBFKernel() + G.LinearKernel()).to(D)(X()),
    "product": lambda: (G.MaternKernel() * G.LinearKernel()).to(D)(X()),
    "periodic": lambda: G.PeriodicKernel().to(D)(X()),
    "index": lambda: G.IndexKernel(3).to(D)(torch.tensor([[0], [2]], device=D)),
    "spectral": _spectral,
    "rff": lambda: G.RFFKernel(4, num_dims=2).to(D)(X()),
    "rff_lazy": lambda: G.RFFKernel(4).to(D)(X()),
    "grid": lambda: G.GridInterpolationKernel(G.RBFKernel(), 6, (0.0, 1.0)).to(D)(X(4, 1)),
    "cholesky": lambda: G.psd_safe_cholesky(_spd()),
    "cholesky_jitter": lambda: G.psd_safe_cholesky(torch.stack([_spd(), torch.ones(4, 4, device=D) - 1e-7 * torch.eye(4, device=D)]), 1e-4),
    "pivoted": lambda: G.pivoted_cholesky(_spd(), 3),
    "lanczos_given": lambda: G.lanczos(lambda v, a=_spd(): a @ v, 4, 2, init=torch.ones(4, device=D)),
    "marginal": lambda: G.log_marginal(torch.zeros(4, device=D), _spd(), torch.ones(4, device=D), 0.1),
    "sample_given": lambda: G.conditional_sample(torch.zeros(4, device=D), _spd(), 2, torch.randn(2, 4, device=D)),
    "sample": lambda: G.conditional_sample(torch.zeros(4, device=D), _spd(), 2),
    "hermite": lambda: G.GaussHermite().to(D)(torch.tanh, torch.zeros(3, device=D), torch.ones(3, device=D)),
    "dirichlet": lambda: G.Dirichlet(torch.tensor([0, 1, 2], device=D)).to_model(),
}
