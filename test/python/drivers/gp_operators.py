import torch

import gp_operators as G

DEVICE = "cuda:0"


def points(n=9, dims=3):
    return torch.rand(n, dims, device=DEVICE)


def gram(n=9):
    root = torch.randn(n, n, device=DEVICE)
    return G.DenseOperator(root @ root.t() / n + torch.eye(n, device=DEVICE))


def posterior(n=6):
    return G.Posterior(torch.randn(n, device=DEVICE), gram(n).to_dense())


def model(kernel, mean=None):
    x = points()
    return G.ExactGP(kernel, mean).to(DEVICE).condition(x, x.sum(-1))


def vector(n=9):
    return torch.randn(n, device=DEVICE)


def standardized():
    transform = G.Standardize()
    transform(torch.randn(6, 1, device=DEVICE))
    return transform.untransform(G.Posterior(torch.randn(6, 1, device=DEVICE), gram(6).to_dense()))


CALLS = {
    "cg": lambda: G.conjugate_gradients(gram(), vector()),
    "cg_guess": lambda: G.conjugate_gradients(gram(), vector(), guess=vector()),
    "cg_diagonal": lambda: G.conjugate_gradients(gram() + G.ConstantDiagonal(0.5, 9), vector(), guess=vector()),
    "woodbury": lambda: G.LowRank(torch.randn(9, 2, device=DEVICE)).woodbury_solve(torch.tensor(0.1, device=DEVICE), vector()),
    "low_rank_dense": lambda: G.LowRank(torch.randn(9, 2, device=DEVICE)).to_dense() @ vector(),
    "toeplitz": lambda: G.Toeplitz(vector()).matmul(vector()),
    "kronecker": lambda: G.Kronecker(gram(2), gram(3)).diagonal() + vector(6),
    "sum_identity": lambda: (gram() + G.Identity(9)).to_dense(),
    "sum_identity_matmul": lambda: (gram() + G.Identity(9)).matmul(vector()),
    "sum_diagonal": lambda: (gram() + gram()).diagonal(),
    "sum_constant": lambda: (gram() + G.ConstantDiagonal(0.3, 9)).diagonal(),
    "sum_constant_moved": lambda: (gram() + G.ConstantDiagonal(torch.tensor(0.3, device=DEVICE), 9)).diagonal(),
    "lanczos_root": lambda: G.lanczos_root(gram(), vector()),
    "lanczos_logdet": lambda: G.lanczos_logdet(gram(), vector()),
    "pivoted": lambda: G.pivoted_cholesky(gram(), 3),
    "trace": lambda: G.hutchinson_trace(gram()),
    "rbf": lambda: model(G.RBF()).predict(points(4)),
    "product": lambda: model(G.RBF([0, 2]) * G.Matern()).log_marginal(),
    "linear": lambda: model(G.RBF() + G.Linear(3)).predict(points(4)),
    "wendland": lambda: G.Wendland([0, 1]).to(DEVICE)(points()),
    "fourier": lambda: model(G.RandomFourier(3)).predict(points(4)),
    "fourier_path": lambda: G.RandomFourier(3).to(DEVICE).sample_path(points()),
    "tasks": lambda: G.TaskKernel(3).to(DEVICE)([0, 1, 2], [0, 0]),
    "zero_mean": lambda: model(G.RBF(), G.ZeroMean()).log_marginal(),
    "quadrature": lambda: G.QuadratureLikelihood().expected(torch.sigmoid, posterior()),
    "quadrature_unit": lambda: G.QuadratureLikelihood().unit_expected(torch.sigmoid, posterior()),
    "standardize": standardized,
    "improvement": lambda: G.expected_improvement(posterior(), 0.5),
    "quasi": lambda: G.quasi_improvement(posterior(), 0.5),
    "thompson": lambda: G.thompson(posterior()),
}
