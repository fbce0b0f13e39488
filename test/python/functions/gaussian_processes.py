from abc import ABC, abstractmethod
import math
from typing import Callable, Optional, Tuple

import torch
from torch import Tensor


def psd_safe_cholesky(A: Tensor, jitter: float = 1e-4, max_tries: int = 3) -> Tensor:
    for i in range(max_tries):
        try:
            return torch.linalg.cholesky(A + jitter * (10 ** i) * torch.eye(A.size(-1), dtype=A.dtype, device=A.device))
        except torch._C._LinAlgError:
            continue
    raise ValueError("not p.d.")


class Interval:
    def __init__(self, lower, upper):
        self.lower_bound, self.upper_bound = torch.as_tensor(lower).float(), torch.as_tensor(upper).float()

    def transform(self, t: Tensor) -> Tensor:
        return torch.sigmoid(t) * (self.upper_bound - self.lower_bound) + self.lower_bound  # raises


class Kernel(torch.nn.Module, ABC):
    has_lengthscale = False

    def __init__(self, ard_num_dims: Optional[int] = None, constraint: Callable = torch.nn.functional.softplus):
        super().__init__()
        self._constraint = constraint
        if self.has_lengthscale:
            self.register_parameter("raw_lengthscale", torch.nn.Parameter(torch.zeros(1, ard_num_dims or 1)))

    @property
    def lengthscale(self) -> Tensor:
        return self._constraint(self.raw_lengthscale)

    @abstractmethod
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        ...

    def __add__(self, other):
        return AdditiveKernel(self, other)


class AdditiveKernel(Kernel):
    def __init__(self, *kernels):
        super().__init__()
        self.kernels = torch.nn.ModuleList(kernels)

    def forward(self, x1, x2):
        res = 0.0
        for k in self.kernels:
            res = res + k(x1, x2)
        return res


class RBF(Kernel):
    has_lengthscale = True

    def forward(self, x1, x2):
        return torch.cdist(x1 / self.lengthscale, x2 / self.lengthscale).pow(2).mul(-.5).exp()


class RBFGrad(RBF):
    """kernel matrix extended by derivatives, one input dimension"""

    def forward(self, x1, x2):
        n1, n2 = x1.size(0), x2.size(0)
        K = torch.zeros(2 * n1, 2 * n2)
        diff = (x1.unsqueeze(1) - x2.unsqueeze(0)).squeeze(-1) / self.lengthscale
        base = super().forward(x1, x2)
        K[:n1, :n2] = base
        K[:n1, n2:] = base * diff
        K[n1:, :n2] = -base * diff
        K[n1:, n2:] = base * (1 - diff.pow(2))
        return K


class LinearKernel(Kernel):
    def __init__(self, offset=1.0):
        super().__init__()
        self.register_buffer("offset", torch.full((1, 1), offset))
        self.variance = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, x1, x2):
        return self.variance * (x1 + self.offset) @ (x2 + self.offset).mT  # raises


class ExactGP(torch.nn.Module):
    def __init__(self, kernel: Kernel):
        super().__init__()
        self.kernel, self.raw_noise = kernel, torch.nn.Parameter(torch.tensor(-2.0))
        self._cache = {}

    @property
    def noise(self):
        return torch.nn.functional.softplus(self.raw_noise)

    def fit(self, X, y):
        K = self.kernel(X, X)
        L = psd_safe_cholesky(K + self.noise * torch.eye(len(K)).type_as(K))
        self._cache.update(L=L, alpha=torch.cholesky_solve(y.unsqueeze(-1), L), X=X)
        n = torch.tensor(len(y) * math.log(2 * math.pi))
        return .5 * (y @ self._cache["alpha"].squeeze(-1) + n) + L.diagonal().log().sum()

    def predict(self, Xs) -> Tuple[Tensor, Tensor]:
        Ks = self.kernel(Xs, self._cache["X"])
        mean = (Ks @ self._cache["alpha"]).squeeze(-1)
        v = torch.linalg.solve_triangular(self._cache["L"], Ks.mT, upper=False)
        return mean, self.kernel(Xs, Xs).diagonal() - v.pow(2).sum(0)


def toy(n=8, device=None):
    X = torch.linspace(0, 1, n, device=device).unsqueeze(-1)
    return X, torch.sin(X * 6).squeeze(-1)


# clean
def case_mll_by_lbfgs():
    X, y = toy(device="cuda")
    gp = ExactGP(RBF() + LinearKernel())
    gp.to(X)                    # moves the module to the tensor's device and dtype
    opt = torch.optim.LBFGS(gp.parameters(), lr=.1, max_iter=4)

    def closure():
        opt.zero_grad()
        nll = gp.fit(X, y)
        nll.backward()
        return nll

    opt.step(closure)
    with torch.no_grad():
        gp.fit(X, y)
        mean, var = gp.predict(toy(5)[0].to(X.device))
    return torch.distributions.Normal(mean, var.clamp_min(1e-6).sqrt()).log_prob(torch.tensor(0.)).sum().item()


# broken
def case_test_points_on_host():
    X, y = (t.cuda() for t in toy())
    gp = ExactGP(LinearKernel() + RBF()).cuda()
    gp.fit(X, y)
    Xs = torch.linspace(0, 2, 7).view(-1, 1)
    mu, _ = gp.predict(Xs)
    return mu.detach().cpu().numpy()


# broken
def case_bounded_lengthscale():
    bound = Interval([0.1, .05], [2.0, 3.0])
    k = RBF(ard_num_dims=2, constraint=bound.transform)
    k(torch.rand(3, 2), torch.rand(3, 2)).sum().backward()
    k = k.to("cuda:0")
    return k(torch.rand(4, 2, device="cuda:0"), torch.rand(3, 2, device="cuda:0"))


# clean
def case_scalar_bounds():
    bound = Interval(.1, 2.)
    k = RBF(constraint=bound.transform).cuda()
    X, y = toy(device=torch.device("cuda"))
    gp = ExactGP(k)
    gp.to("cuda")
    gp.fit(X, y)
    return [t.tolist() for t in gp.predict(X[::2])]


# broken
def case_derivative_kernel():
    k = RBFGrad().cuda()
    x = torch.linspace(0, 1, 3, device="cuda").unsqueeze(-1)
    targets = torch.cat([x.sin(), x.cos()]).squeeze(-1)
    with torch.no_grad():
        cov = k(x, x)
    L = psd_safe_cholesky(cov)
    return torch.cholesky_solve(targets.unsqueeze(-1), L)  # raises


# clean
def case_inducing_points_and_quadrature():
    from numpy.polynomial.hermite import hermgauss

    class Quadrature(torch.nn.Module):
        def __init__(self, n=5):
            super().__init__()
            loc, w = hermgauss(n)
            self.register_buffer("locations", torch.tensor(loc).float())
            self.weights = torch.as_tensor(w, dtype=torch.float)

        def forward(self, f, mean, var):
            x = mean + torch.sqrt(2 * var) * self.locations.view(-1, 1)
            w = self.weights.to(x)
            return (f(x) * w[:, None]).sum(0) / math.sqrt(math.pi)

    X, y = toy(10)
    Z = torch.nn.Parameter(X[torch.randperm(10)[:4]].cuda())
    k, quad = RBF().to(Z.device), Quadrature().to(Z.device)
    Xd = X.to(Z)
    L = psd_safe_cholesky(k(Z, Z))
    A = torch.linalg.solve_triangular(L, k(Z, Xd), upper=False)
    q = (A @ y.to(Z).unsqueeze(-1)).squeeze(-1)
    m, v = A.mT @ q, (1 - A.pow(2).sum(0)).clamp_min(1e-5)
    e = quad(lambda f: torch.nn.functional.logsigmoid(f), m, v)
    e.sum().backward()
    return Z.grad.norm().item()
