"""Scientific machine learning: ODE solvers, PDE residuals, spectral layers, Gaussian processes, Bayesian layers."""
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import MultivariateNormal, Normal, kl_divergence

SOLVERS = {}

def solver(name):
    def wrap(cls):
        SOLVERS[name] = cls
        return cls
    return wrap

@dataclass
class Tableau:
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor

    @classmethod
    def rk4(cls):
        a = torch.tensor([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1.0, 0]])
        return cls(a, torch.tensor([1, 2, 2, 1]) / 6.0, torch.tensor([0, 0.5, 0.5, 1]))

    def to(self, *args, **kwargs):
        return Tableau(*(getattr(self, name).to(*args, **kwargs) for name in ("a", "b", "c")))

class FixedGridSolver:
    def __init__(self, func, y0, max_step=0.5):
        self.func, self.y0, self.max_step = func, y0, max_step
        self.setup()

    def setup(self):
        pass

    def step(self, t, dt, y):
        raise NotImplementedError

    def integrate(self, times):
        solution, y = [self.y0], self.y0
        for t0, t1 in zip(times[:-1], times[1:]):
            y = self.step(t0, t1 - t0, y)
            solution.append(y)
        return torch.stack(solution)  # raises

@solver("euler")
class Euler(FixedGridSolver):
    def step(self, t, dt, y):
        return y + dt * self.func(t, y)

@solver("rk4")
class RungeKutta(FixedGridSolver):
    """Stages are multiplied by single entries of the tableau."""
    def setup(self):
        self.tableau = Tableau.rk4()

    def step(self, t, dt, y):
        stages = []
        for row, c in zip(self.tableau.a, self.tableau.c):
            inner = sum((w * k for w, k in zip(row, stages)), torch.zeros_like(y))
            stages.append(self.func(t + c * dt, y + dt * inner))
        return y + dt * self.combine(stages)

    def combine(self, stages):
        return sum(w * k for w, k in zip(self.tableau.b, stages))

@solver("rk4_stacked")
class StackedRungeKutta(RungeKutta):
    def combine(self, stages):
        return torch.tensordot(self.tableau.b, torch.stack(stages), dims=1)  # raises

@solver("rk4_moved")
class MovedRungeKutta(StackedRungeKutta):
    def setup(self):
        self.tableau = Tableau.rk4().to(self.y0)

def odeint(func, y0, times, method="rk4"):
    return SOLVERS[method](func, y0).integrate(times)

class VectorField(nn.Module):
    def __init__(self, dim=4, time="scalar"):
        super().__init__()
        self.net, self.time, self.calls = nn.Linear(dim + 1, dim), time, 0

    def stamp(self, t, y):
        if self.time == "scalar":
            return torch.ones_like(y[..., :1]) * t
        return t.expand(*y.shape[:-1], 1)

    def forward(self, t, y):
        self.calls += 1
        return torch.tanh(self.net(torch.cat([y, self.stamp(t, y)], dim=-1)))  # raises

class EventLocator:
    """Bisection over brackets held as vectors."""
    def __init__(self, func, steps=5):
        self.func, self.steps = func, steps

    def bracket(self, y):
        return torch.zeros(y.shape[0]), torch.ones(y.shape[0])

    def find(self, y):
        low, high = self.bracket(y)
        for _ in range(self.steps):
            mid = (low + high) / 2
            inside = self.func(mid.to(y.device), y) > 0
            low, high = torch.where(inside, low, mid), torch.where(inside, mid, high)  # raises
        return mid

class PlacedLocator(EventLocator):
    def bracket(self, y):
        return tuple(bound.type_as(y) for bound in super().bracket(y))

class Domain:
    def __init__(self, low, high, device="cpu"):
        self.low, self.high = torch.tensor(low, device=device), torch.tensor(high, device=device)

    def interior(self, count, device=None):
        unit = torch.rand(count, len(self.low), device=device)
        return self.low + (self.high - self.low) * unit  # raises

    def boundary(self, count):
        points = self.interior(count)
        points[::2, 0] = self.low[0]
        return points

class Pinn(nn.Module):
    def __init__(self, dim=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 8), nn.Tanh(), nn.Linear(8, 1))
        self.viscosity = nn.Parameter(torch.tensor(0.1))

    def forward(self, points):
        return self.net(points)

def derivative(u, x, order=1):
    for _ in range(order):
        u = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    return u

class BurgersResidual:
    def __init__(self, source=None):
        self.source = source

    def __call__(self, model, points):
        points = points.requires_grad_()
        u = model(points)
        first = derivative(u, points)
        second = derivative(first[:, 0], points)[:, :1]
        residual = first[:, 1:] + u * first[:, :1] - model.viscosity * second
        return residual if self.source is None else residual - self.source(points)  # raises

class AdaptiveCollocation:
    """Keeps the points with the worst residuals."""
    def __init__(self, domain, count, device):
        self.device, self.points = device, domain.interior(count).to(device)
        self.weights = torch.ones(count)

    def refine(self, residual):
        worst = residual.detach().abs().flatten().topk(len(self.points) // 2).indices
        self.weights[worst.cpu()] *= 2
        return self.points[worst].detach()

    def loss(self, residual, weighted=True):
        return F.mse_loss(residual.flatten() * self.weights if weighted else residual, torch.zeros_like(residual))  # raises

def numpy_source(points):
    values = np.sin(points.detach().cpu().numpy()[:, :1])
    return torch.from_numpy(values)

class SpectralConv(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)

    def blank(self, spectrum):
        return torch.zeros(spectrum.shape, dtype=spectrum.dtype)

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        out = self.blank(spectrum)
        out[..., :self.modes] = torch.einsum("bim,iom->bom", spectrum[..., :self.modes], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1])

class FourierBlock(nn.Module):
    def __init__(self, width=4, modes=3, conv=SpectralConv, positions=16):
        super().__init__()
        self.conv = conv(width, modes)
        self.skip = nn.Conv1d(width + 1, width, 1)
        self.register_buffer("grid", torch.linspace(0, 1, positions)[None, None])

    def forward(self, x):
        grid = self.grid[..., :x.shape[-1]].expand(x.shape[0], -1, -1)
        return F.gelu(self.conv(x) + self.skip(torch.cat([x, grid], 1)))  # raises

class LikeSpectralConv(SpectralConv):
    def blank(self, spectrum):
        return spectrum.new_zeros(spectrum.shape)

class Kernel(nn.Module):
    def __init__(self, scale=0.5):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))

    def forward(self, first, second):
        return torch.exp(-0.5 * (torch.cdist(first, second) / self.log_scale.exp()) ** 2)

class PeriodicKernel(Kernel):
    def __init__(self, periods):
        super().__init__()
        self.periods = torch.as_tensor(periods)

    def forward(self, first, second):
        return super().forward(first / self.periods, second / self.periods)  # raises

class ExactGP(nn.Module):
    def __init__(self, x, y, kernel, noise=0.1):
        super().__init__()
        self.x, self.y, self.kernel = x, y, kernel
        self.noise = torch.tensor(noise)

    def jitter(self, gram):
        return self.noise * torch.eye(len(gram), device=gram.device)

    @cached_property
    def factor(self):
        gram = self.kernel(self.x, self.x)
        return torch.linalg.cholesky(gram + self.jitter(gram))  # raises

    def predict(self, query):
        cross = self.kernel(query, self.x)
        alpha = torch.cholesky_solve(self.y[:, None], self.factor)  # raises
        half = torch.linalg.solve_triangular(self.factor, cross.t(), upper=False)
        return (cross @ alpha)[:, 0], 1 - (half ** 2).sum(0)

    def migrate(self, device, data=True):
        self.to(device)
        if data:
            self.x, self.y = self.x.to(device), self.y.to(device)
        return self

class JitteredGP(ExactGP):
    def jitter(self, gram):
        return torch.diag(torch.full((gram.shape[0],), float(self.noise)))

class ResettingGP(ExactGP):
    def migrate(self, device, data=True):
        self.__dict__.pop("factor", None)
        return super().migrate(device, data)

def thompson(gp, query, draws=2):
    mean, var = gp.predict(query)
    sample = MultivariateNormal(mean, torch.diag(var.clamp(min=1e-3))).sample((draws,))
    return query[sample.argmax(1)]

def conjugate_gradient(matvec, rhs, start=None, steps=4):
    x = torch.zeros(rhs.shape) if start is None else start
    residual = rhs - matvec(x)  # raises
    direction, energy = residual.clone(), residual @ residual
    for _ in range(steps):
        image = matvec(direction)
        alpha = energy / (direction @ image)
        x, residual = x + alpha * direction, residual - alpha * image
        energy, old = residual @ residual, energy
        direction = residual + energy / old * direction
    return x

def laplacian(v, spacing=0.1):
    return (2 * v - v.roll(1) - v.roll(-1)) / spacing ** 2 + v

class BayesLinear(nn.Module):
    def __init__(self, inputs, outputs, prior_scale=1.0):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(outputs, inputs))
        self.rho = nn.Parameter(torch.full((outputs, inputs), -3.0))
        self.prior = self.make_prior(prior_scale)

    def make_prior(self, scale):
        return Normal(torch.tensor(0.0), torch.tensor(scale))

    @property
    def posterior(self):
        return Normal(self.mean, F.softplus(self.rho))

    def kl(self):
        return kl_divergence(self.posterior, self.prior).sum()  # raises

    def forward(self, x):
        return F.linear(x, self.posterior.rsample())

class RowPriorLinear(BayesLinear):
    def make_prior(self, scale):
        return Normal(torch.zeros(self.mean.shape[1]), scale * torch.ones(self.mean.shape[1]))

def start(device, rows=3, time="scalar"):
    return VectorField(time=time).to(device), torch.rand(rows, 4, device=device)

def case_euler_host_times():
    field, y0 = start("cuda:0")
    odeint(field, y0, torch.linspace(0, 1, 4), "euler").mean().backward()

def case_times_expanded():
    field, y0 = start("cuda:0", time="expanded")
    odeint(field, y0, torch.linspace(0, 1, 4), "euler")

def case_times_expanded_placed():
    field, y0 = start("cuda:1", time="expanded")
    odeint(field, y0, torch.linspace(0, 1, 4).to(y0), "euler").detach().cpu().numpy()

def case_tableau_entries():
    field, y0 = start("cuda:0")
    odeint(field, y0, torch.linspace(0, 1, 3))

def case_tableau_stacked():
    field, y0 = start("cuda:0")
    odeint(field, y0, torch.linspace(0, 1, 3, device=y0.device), "rk4_stacked")

def case_tableau_moved():
    field, y0 = start("cuda:3")
    odeint(field, y0, [0.0, 0.5, 1.0], "rk4_moved")

def case_start_from_host():
    field = VectorField().cuda()
    odeint(lambda t, y: field(t, y.cuda().expand(4)).mean(), torch.tensor(0.5), torch.linspace(0, 1, 3).cuda(), "euler")

def case_events():
    EventLocator(lambda t, y: y[:, 0] - t).find(torch.rand(3, 2, device="cuda:0"))

def case_events_placed():
    PlacedLocator(lambda t, y: y[:, 0] - t).find(torch.rand(3, 2, device="cuda:0")).tolist()

def case_burgers():
    points = Domain([0.0, 0.0], [1.0, 2.0]).boundary(6).cuda()
    BurgersResidual(lambda p: torch.sin(p[:, :1]))(Pinn().cuda(), points).pow(2).mean().backward()

def case_interior_device():
    Pinn().cuda()(Domain([0.0, 0.0], [1.0, 2.0]).interior(6, "cuda"))

def case_source_by_numpy():
    domain = Domain([0.0, 0.0], [1.0, 2.0], device="cuda:0")
    BurgersResidual(numpy_source)(Pinn().cuda(), domain.interior(5, "cuda:0"))

def adaptive(weighted):
    points = AdaptiveCollocation(Domain([0.0, 0.0], [1.0, 2.0]), 6, "cuda:2")
    model = Pinn().to(points.device)
    residual = BurgersResidual()(model, points.points)
    points.refine(residual)
    return points.loss(residual, weighted)

def case_collocation_plain():
    adaptive(False).backward()

def case_collocation_weighted():
    adaptive(True)

def case_fourier_like():
    FourierBlock(conv=LikeSpectralConv).cuda()(torch.rand(2, 4, 12).cuda()).sum().backward()

def case_fourier_blank():
    FourierBlock().cuda()(torch.rand(2, 4, 12).cuda())

def regression(cls, kernel, device="cpu"):
    x = torch.linspace(0, 1, 5, device=device)[:, None]
    return cls(x, torch.sin(6 * x[:, 0]), kernel)

def case_gp_migrated():
    gp = regression(ResettingGP, Kernel())
    gp.predict(torch.rand(3, 1))
    thompson(gp.migrate("cuda:0"), torch.rand(3, 1, device="cuda:0"))

def case_gp_host_scale():
    regression(ExactGP, Kernel(), "cuda:1").predict(torch.rand(3, 1, device="cuda:1"))

def case_gp_jitter():
    regression(JitteredGP, Kernel()).migrate("cuda:0").predict(torch.rand(3, 1).cuda())

def case_gp_stale_factor():
    gp = regression(ExactGP, Kernel())
    gp.predict(torch.rand(3, 1))
    gp.migrate("cuda:0").predict(torch.rand(3, 1, device="cuda:0"))

def case_gp_periods():
    regression(ExactGP, PeriodicKernel([0.7])).migrate("cuda:0").predict(torch.rand(3, 1, device="cuda:0"))

def case_solver_default_start():
    conjugate_gradient(laplacian, torch.rand(8, device="cuda:0"))

def case_solver_warm_start():
    rhs = torch.rand(8, device="cuda:0")
    conjugate_gradient(laplacian, rhs, start=torch.tensor(0.0).expand_as(rhs).to(rhs.device)).cpu().numpy()

def case_bayes_scalar_prior():
    layer = BayesLinear(4, 3).cuda()
    (layer(torch.rand(2, 4).cuda()).sum() + layer.kl()).backward()

def case_bayes_row_prior():
    layer = RowPriorLinear(4, 3).cuda()
    (layer(torch.rand(2, 4).cuda()).sum() + layer.kl()).backward()
