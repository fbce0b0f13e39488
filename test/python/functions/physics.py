"""PINNs, neural ODEs, molecular dynamics and a 2D wave solver."""
import functools
import math
from typing import Callable, List, NamedTuple, Sequence

import numpy as np
import torch
from torch import nn
from torch.autograd import grad


class State(NamedTuple):
    pos: torch.Tensor
    vel: torch.Tensor
    cell: torch.Tensor


def rk4(f: Callable, y0: torch.Tensor, ts: torch.Tensor) -> torch.Tensor:
    out = [y0]
    for t0, t1 in zip(ts[:-1], ts[1:]):
        h, y = t1 - t0, out[-1]
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h / 2 * k1)
        k3 = f(t0 + h / 2, y + h / 2 * k2)
        k4 = f(t1, y + h * k3)
        out.append(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return torch.stack(out)


class ODEFunc(nn.Module):
    def __init__(self, dim=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 6), nn.Tanh(), nn.Linear(6, dim))
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y ** 3) * torch.cos(t)


class PINN(nn.Module):
    def __init__(self, layers: Sequence[int], lb, ub):
        super().__init__()
        self.ws = nn.ParameterList()
        self.bs = nn.ParameterList()
        for i, o in zip(layers, layers[1:]):
            self.ws.append(nn.Parameter(torch.randn(i, o) * math.sqrt(2 / (i + o))))
            self.bs.append(nn.Parameter(torch.zeros(1, o)))
        self.lb, self.ub = torch.as_tensor(lb), torch.as_tensor(ub)
        self.lambda_1 = nn.Parameter(torch.tensor([0.0]))

    def bounds(self):
        return self.lb, self.ub

    def forward(self, x, t):
        lb, ub = self.bounds()
        h = 2 * (torch.cat([x, t], 1) - lb) / (ub - lb) - 1  # raises
        for w, b in zip(self.ws[:-1], self.bs[:-1]):
            h = torch.tanh(h @ w + b)
        return h @ self.ws[-1] + self.bs[-1]

    def residual(self, x, t):
        u = self(x, t)
        d = functools.partial(grad, create_graph=True)
        one = torch.ones_like(u)
        u_t, = d(u, t, one)
        u_x, = d(u, x, one)
        u_xx, = d(u_x, x, torch.ones_like(u_x))
        return u_t + self.lambda_1 * u * u_x - .01 * u_xx


class PlacedPINN(PINN):
    def bounds(self):
        dev = self.lambda_1.device
        return tuple(b.to(dev) for b in super().bounds())


class LennardJones:
    def __init__(self, n, species: List[str], device="cpu"):
        self.device = torch.device(device)
        table = {"Ar": (1., 1.), "Ne": (.8, .6)}
        self.sigma = torch.tensor([table[s][0] for s in species], device=self.device)
        self.eps = torch.tensor([table[s][1] for s in species])
        self.pairs = torch.combinations(torch.arange(n), 2)

    def min_image(self, dx, cell):
        return dx - cell * torch.round(dx / cell)

    def energy(self, st: State, with_eps=True):
        i, j = self.pairs.unbind(1)
        r2 = self.min_image(st.pos[i] - st.pos[j], st.cell).pow(2).sum(-1)
        s6 = ((self.sigma[i] * self.sigma[j]) / r2) ** 3
        pref = 4. if not with_eps else 4. * (self.eps[i] * self.eps[j]).sqrt()
        return (pref * (s6 ** 2 - s6)).sum()  # raises

    def forces(self, st: State, **kw):
        pos = st.pos.detach().requires_grad_()
        return -grad(self.energy(st._replace(pos=pos), **kw), pos)[0]


def verlet(ff, st: State, dt: float, steps: int, **kw):
    f = ff.forces(st, **kw)
    for _ in range(steps):
        v = st.vel + .5 * dt * f
        st = st._replace(pos=(st.pos + dt * v) % st.cell)
        f = ff.forces(st, **kw)
        st = st._replace(vel=v + .5 * dt * f)
        yield st


def lattice(n=2, device=None):
    g = torch.stack(torch.meshgrid(*[torch.arange(n, dtype=torch.float32)] * 3, indexing="ij"), -1).view(-1, 3) * 1.2
    return State(g.to(device), torch.zeros(n ** 3, 3, device=device), torch.full((3,), 1.2 * n, device=device))


# clean
def case_burgers():
    net = PlacedPINN([2, 6, 1], [-1., 0.], [1., 1.])
    net.cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    x = (torch.rand(10, 1, device="cuda") * 2 - 1).requires_grad_()
    t = torch.rand(10, 1, device="cuda", requires_grad=True)
    u0 = -torch.sin(math.pi * x.detach())
    for _ in range(2):
        opt.zero_grad()
        loss = (net(x, torch.zeros_like(t)) - u0).square().mean() + net.residual(x, t).square().mean()
        loss.backward()
        opt.step()
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 3), np.linspace(0, 1, 3)), -1).reshape(-1, 2).astype(np.float32)
    g = torch.from_numpy(grid).to(net.lambda_1.device)
    return net(g[:, :1], g[:, 1:]).detach().cpu().numpy().reshape(3, 3)


# broken
def case_bounds_not_placed():
    net = PINN([2, 6, 1], [-1., 0.], [1., 1.]).cuda()
    x = torch.rand(4, 1).cuda().requires_grad_()
    t = torch.rand(4, 1).cuda().requires_grad_()
    return net.residual(x, t).norm()


# clean
def case_ode_times_on_host():
    f = ODEFunc().cuda()
    true_A = torch.tensor([[-.1, 2.], [-2., -.1]])
    ts = torch.linspace(0, 1, 5)                      # iterating gives 0-dim host tensors
    truth = rk4(lambda t, y: y ** 3 @ true_A, torch.tensor([[2., 0.]]), ts)
    opt = torch.optim.RMSprop(f.parameters())
    y0 = truth[0].cuda()
    pred = rk4(f, y0, ts)
    loss = (pred - truth.to(pred)).abs().mean()
    loss.backward()
    opt.step()
    return f.nfe, loss.item()


# broken
def case_mixed_species():
    st = lattice(device="cuda")
    ff = LennardJones(8, ["Ar", "Ne"] * 4, device="cuda")
    warm = list(verlet(ff, st, 1e-3, 2, with_eps=False))[-1]
    temps = [s.vel.pow(2).sum().item() / 3 for s in verlet(ff, warm, 1e-3, 2)]
    return np.mean(temps)


# clean
def case_two_replicas_on_two_gpus():
    out = {}
    for k in range(torch.cuda.device_count()):
        st = lattice(device=f"cuda:{k}")
        ff = LennardJones(8, ["Ar"] * 8, device=st.pos.device)
        *_, last = verlet(ff, st, 1e-3, 2, with_eps=False)
        out[k] = last
    host = [torch.cat([s.pos, s.vel], -1).cpu() for s in out.values()]
    swap = State(*(a.to("cuda:1") for a in out[0]))
    gap = (swap.pos - out[1].pos).abs().max()
    return torch.stack(host).std(0).sum().item(), float(gap)


# broken
def case_spectral_wave_solver():
    n, dt = 8, .05
    dev = torch.device("cuda", 0)
    u = torch.exp(-10 * (torch.linspace(-1, 1, n, device=dev)[:, None] ** 2 + torch.linspace(-1, 1, n, device=dev) ** 2))
    prev = u.clone()
    k = torch.fft.fftfreq(n, d=2 / n) * 2 * math.pi
    k2 = k[:, None] ** 2 + k[None] ** 2

    def laplacian(field):
        return torch.fft.ifft2(-k2 * torch.fft.fft2(field)).real  # raises

    damp = u.new_ones(n, n)
    damp[[0, -1]] = torch.tensor(.5)
    for _ in range(3):
        u, prev = damp * (2 * u - prev + dt ** 2 * laplacian(u)), u
    return u.pow(2).sum().sqrt().item()
