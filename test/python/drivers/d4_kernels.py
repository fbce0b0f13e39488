import torch
import l4_kernels as m
D = "cuda:0"
X = lambda *s: torch.randn(*s, device=D)
P = lambda n=5: (lambda a: a @ a.t() + n * torch.eye(n, device=D))(X(n, n))
CALLS = {
    "RBFKernel": lambda: m.RBFKernel().to(D)(X(4, 2)),
    "RBFKernelGrad": lambda: m.RBFKernelGrad().to(D)(X(4, 2)),
    "MaternKernel": lambda: m.MaternKernel(ard_num_dims=2).to(D)(X(4, 2), X(3, 2)),
    "PolynomialKernel": lambda: m.PolynomialKernel(2, 1.0).to(D)(X(4, 2)),
    "IndexKernel": lambda: m.IndexKernel(3).to(D)(torch.tensor([[0], [1]], device=D), torch.tensor([[0], [2]], device=D)),
    "HadamardLikelihood": lambda: m.HadamardLikelihood(3).to(D)(X(4), torch.tensor([[0], [1], [2], [0]], device=D)),
    "MultitaskLikelihood": lambda: m.MultitaskLikelihood(2).to(D)(P(6)),
    "MultitaskLikelihood rank": lambda: m.MultitaskLikelihood(2, rank=1).to(D)(P(6)),
    "psd_safe_cholesky": lambda: m.psd_safe_cholesky(P()),
    "add_jitter": lambda: m.add_jitter(P()),
    "add_diag": lambda: m.add_diag(P(), X(1)),
    "lanczos": lambda: m.lanczos(P(), 3),
    "lanczos_logdet": lambda: m.lanczos_logdet(P()),
    "lanczos_root": lambda: m.lanczos_root(P()),
    "conjugate_gradient": lambda: m.conjugate_gradient(P(), X(5)),
    "GaussHermite": lambda: m.GaussHermite().to(D)(torch.sigmoid, X(4), X(4).exp()),
    "expected_log_prob": lambda: m.expected_log_prob(torch.sigmoid, X(4), X(4).exp()),
    "interpolation_weights": lambda: m.interpolation_weights(torch.rand(4, device=D), torch.linspace(0, 1, 5, device=D)),
    "unique_lengths": lambda: m.unique_lengths(torch.tensor([0, 0, 1, 2], device=D)),
    "chunk_starts": lambda: m.chunk_starts(torch.tensor([2, 1, 1], device=D)),
}
