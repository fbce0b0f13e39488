import torch

import kernels as k


def X(n=4):
    return torch.rand(n, 2, device="cuda:0")


def spd(n=4):
    a = torch.rand(n, n).cuda(0)
    return a @ a.t() + 0.1 * torch.eye(n).cuda(0)


CALLS = {
    "rbf": lambda: k.RBFKernel().cuda(0)(X(), X(3)),
    "rbf_diag": lambda: k.RBFKernel().cuda(0)(X(), X(), diag=True),
    "rbf_grad": lambda: k.RBFKernelGrad().cuda(0)(X(), X(3)),
    "linear": lambda: k.LinearKernel(2).cuda(0)(X(), X(3)),
    "periodic": lambda: k.PeriodicKernel(0.5).cuda(0)(X(), X(3)),
    "spectral_forward": lambda: k.SpectralMixtureKernel(2, 2).cuda(0)(X(), X(3)),
    "spectral_init": lambda: k.SpectralMixtureKernel(2, 2).cuda(0).initialize_from_data(X()),
    "sum": lambda: (k.RBFKernel() + k.LinearKernel(2)).cuda(0)(X(), X()),
    "index": lambda: k.IndexKernel(3).cuda(0)(torch.tensor([0, 2]).cuda(0), torch.tensor([1]).cuda(0)),
    "hadamard": lambda: k.HadamardNoise(3).cuda(0)(torch.tensor([0, 2, 1]).cuda(0)),
    "cholesky": lambda: k.psd_safe_cholesky(spd()),
    "marginal": lambda: k.exact_marginal(spd(), torch.rand(4).cuda(0), 0.1),
    "predictive": lambda: k.predictive(k.RBFKernel().cuda(0), X(), torch.rand(4).cuda(0), X(3)),
    "pivoted": lambda: k.pivoted_cholesky(spd(), 2),
    "lanczos": lambda: k.lanczos_tridiag(lambda v, A=spd(): A @ v, torch.rand(4).cuda(0), 3),
}
