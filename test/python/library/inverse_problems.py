"""Linear measurement operators, priors, solvers and unrolled networks for imaging."""
import functools
import math
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class SolverConfig:
    max_iter: int = 4
    tol: float = 1e-6
    step: Optional[float] = None
    weight: float = 0.05
    history: int = 3
    beta: float = 1.0
    warm_start: bool = False

class NoiseModel(nn.Module):
    def forward(self, y):
        return y

class GaussianNoise(NoiseModel):
    """Reproducible noise, drawn by a generator of its own."""

    def __init__(self, sigma=0.1, seed=0):
        super().__init__()
        self.sigma = torch.tensor(sigma)
        self.rng = torch.Generator().manual_seed(seed)

    def forward(self, y):
        draw = torch.randn(y.shape, generator=self.rng, dtype=torch.float32)
        return y + self.sigma * draw.to(y.device)

class MultiLevelNoise(NoiseModel):
    def __init__(self, low=0.01, high=0.2, levels=6):
        super().__init__()
        self.levels = torch.from_numpy(np.geomspace(low, high, levels).astype(np.float32))

    def at_level(self, y, level: int):
        return y + self.levels[level] * torch.randn_like(y)

    def forward(self, y):
        pick = torch.randint_like(y[:, 0, 0, 0], len(self.levels)).long()
        sigma = self.levels[pick]  # raises
        return y + sigma.view(-1, 1, 1, 1) * torch.randn_like(y)

class Physics(nn.Module):
    def __init__(self, noise: Optional[NoiseModel] = None):
        super().__init__()
        self.noise = noise or NoiseModel()

    def A(self, x):
        raise NotImplementedError

    def A_adjoint(self, y):
        raise NotImplementedError

    def forward(self, x):
        return self.noise(self.A(x))

    def normal(self, x):
        return self.A_adjoint(self.A(x))

    @torch.no_grad()
    def spectral_norm(self, x, iterations=5):
        v = torch.randn_like(x)
        value = torch.tensor(1.0)
        for _ in range(iterations):
            v = v / v.norm()
            w = self.normal(v)
            value = (v * w).sum()
            v = w
        return value

    def adjointness(self, x):
        y = torch.randn_like(self.A(x))
        return ((self.A(x) * y).sum() - (x * self.A_adjoint(y)).sum()).abs().item()

class Inpainting(Physics):
    def __init__(self, size, keep=0.5, seed=0, noise=None):
        super().__init__(noise)
        mask = np.random.RandomState(seed).rand(1, 1, *size) < keep
        self.mask = nn.Parameter(torch.from_numpy(mask).float(), requires_grad=False)

    def A(self, x):
        return x * self.mask

    def A_adjoint(self, y):
        return self.A(y)

class Blur(Physics):
    KERNELS: Dict[str, Callable[[int], np.ndarray]] = {
        "box": lambda n: np.ones((n, n)) / n ** 2,
        "motion": lambda n: np.eye(n) / n,
    }

    def __init__(self, kind="box", size=3, noise=None):
        super().__init__(noise)
        kernel = torch.as_tensor(self.KERNELS[kind](size), dtype=torch.float32)
        self.register_buffer("kernel", kernel[None, None])

    def A(self, x):
        weight = self.kernel.expand(x.shape[1], -1, -1, -1)
        return F.conv2d(x, weight, padding=self.kernel.shape[-1] // 2, groups=x.shape[1])

    def A_adjoint(self, y):
        weight = self.kernel.expand(y.shape[1], -1, -1, -1)
        return F.conv_transpose2d(y, weight, padding=self.kernel.shape[-1] // 2, groups=y.shape[1])

class Tomography(Physics):
    def __init__(self, size, angles=4, noise=None):
        super().__init__(noise)
        self.size = size
        self.views: List[torch.Tensor] = [self._grid(math.pi * i / angles) for i in range(angles)]

    def _grid(self, theta):
        c, s = math.cos(theta), math.sin(theta)
        return F.affine_grid(torch.tensor([[[c, s, 0.0], [-s, c, 0.0]]]), [1, 1, self.size, self.size], align_corners=False)

    def project(self, x, grid):
        return F.grid_sample(x, grid.expand(x.shape[0], -1, -1, -1), align_corners=False).sum(2)

    def A(self, x):
        return torch.stack([self.project(x, grid) for grid in self.views_on(x)], 2)

    def views_on(self, x):
        return [grid.to(x.device) for grid in self.views]

    def A_adjoint(self, y):
        total = y.new_zeros(y.shape[0], y.shape[1], self.size, self.size)
        for i, grid in enumerate(self.views):
            smear = y[:, :, i].unsqueeze(2).expand(-1, -1, self.size, -1)
            back = torch.cat([grid[..., :1], -grid[..., 1:]], -1).expand(len(y), -1, -1, -1)
            total = total + F.grid_sample(smear, back, align_corners=False)  # raises
        return total / self.size

class UndersampledFourier(Physics):
    def __init__(self, size, acceleration=2, device="cpu", noise=None):
        super().__init__(noise)
        lines = (torch.arange(size, device=device) % acceleration == 0).float()
        lines[torch.tensor([0, size - 1])] = 1.0
        self.lines = lines

    def A(self, x):
        return torch.view_as_real(torch.fft.fft2(x, norm="ortho") * self.lines)

    def A_adjoint(self, y):
        return torch.fft.ifft2(torch.view_as_complex(y.contiguous()) * self.lines, norm="ortho").real

class ShardedPhysics(Physics):
    """Several operators that measure the same image."""

    def __init__(self, parts: Sequence[Physics], devices: Sequence[str]):
        super().__init__()
        self.parts = [part.to(device) for part, device in zip(parts, devices)]
        self.devices = list(devices)

    def A(self, x):
        return [part.A(x.to(device)) for part, device in zip(self.parts, self.devices)]

    def A_adjoint(self, y):
        home = y[0].device
        return sum(part.A_adjoint(each).to(home) for part, each in zip(self.parts, y))

    def residual_norm(self, x, y):
        total = 0.0
        for ours, theirs in zip(self.A(x), y):
            total = total + (ours - theirs).pow(2).sum()  # raises
        return total.sqrt()

@functools.lru_cache(maxsize=8)
def dct_matrix(n):
    k = torch.arange(n).float()
    mat = torch.cos(math.pi / n * (k.unsqueeze(0) + 0.5) * k.unsqueeze(1)) * math.sqrt(2.0 / n)
    mat[0] /= math.sqrt(2.0)
    return mat

def soft(x, level):
    return torch.sign(x) * F.relu(x.abs() - level)

class Prior:
    def prox(self, x, level):
        raise NotImplementedError

class HaarPrior(Prior):
    _pair = torch.tensor([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2.0)

    def _transform(self, x):
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        return (pairs @ self._pair.to(x)).reshape(x.shape)

    def prox(self, x, level):
        return self._transform(soft(self._transform(x), level))

class DCTPrior(Prior):
    def prox(self, x, level):
        rows, cols = (dct_matrix(n) for n in x.shape[-2:])
        coefs = rows @ x @ cols.t()  # raises
        return rows.t() @ soft(coefs, level) @ cols

class TVPrior(Prior):
    def __init__(self, iterations=3):
        self.iterations = iterations

    def prox(self, x, level):
        dual = x.new_zeros(2, *x.shape)
        for _ in range(self.iterations):
            image = x + self._div(dual) * level
            dual = dual + 0.25 * self._grad(image) / max(float(level), 1e-6)
            dual = dual / dual.norm(dim=0, keepdim=True).clamp(min=1.0)
        return x + self._div(dual) * level

    @staticmethod
    def _grad(x):
        return torch.stack([F.pad(x[..., 1:, :] - x[..., :-1, :], (0, 0, 0, 1)), F.pad(x[..., 1:] - x[..., :-1], (0, 1))])

    @staticmethod
    def _div(d):
        down, right = d
        return down - F.pad(down, (0, 0, 1, 0))[..., :-1, :] + right - F.pad(right, (1, 0))[..., :-1]

class Solver:
    def __init__(self, physics: Physics, prior: Optional[Prior] = None, cfg: SolverConfig = SolverConfig()):
        self.physics, self.prior, self.cfg = physics, prior, cfg
        self.trace = torch.zeros(cfg.max_iter)

    def solve(self, y):
        return self.run(self.physics.A_adjoint(y), y)

    def run(self, x, y):
        raise NotImplementedError

    def record(self, i, value):
        self.trace[i] = value

class ConjugateGradient(Solver):
    def run(self, x, y):
        r = self.physics.A_adjoint(y) - self.physics.normal(x)
        p, rs = r, (r * r).sum()
        for i in range(self.cfg.max_iter):
            ap = self.physics.normal(p)
            alpha = rs / (p * ap).sum().clamp(min=1e-12)
            x, r = x + alpha * p, r - alpha * ap
            new = (r * r).sum()
            self.record(i, new.sqrt())
            if new < self.cfg.tol:
                break
            p, rs = r + new / rs * p, new
        return x

class FISTA(Solver):
    _step: Optional[torch.Tensor] = None

    def step_for(self, x):
        if self.cfg.step is not None:
            return torch.tensor(self.cfg.step)
        if self._step is None:
            self._step = 1.0 / self.physics.spectral_norm(x)
        return self._step

    def run(self, x, y):
        step, momentum, z = self.step_for(x), torch.tensor(1.0), x
        for i in range(self.cfg.max_iter):
            grad = self.physics.A_adjoint(self.physics.A(z) - y)
            new = self.prior.prox(z - step * grad, float(step) * self.cfg.weight)  # raises
            grown = (1 + (1 + 4 * momentum ** 2).sqrt()) / 2
            z = new + (momentum - 1) / grown * (new - x)
            self.record(i, (new - x).norm())
            x, momentum = new, grown
        return x

class ADMM(Solver):
    state: Optional[Dict[str, torch.Tensor]] = None

    def start(self, x):
        if self.cfg.warm_start and self.state is not None:
            return self.state["z"], self.state["u"]
        return x.clone(), torch.zeros_like(x)

    def run(self, x, y):
        z, u = self.start(x)
        for i in range(self.cfg.max_iter):
            target = z - u
            x = x - 0.3 * (self.physics.normal(x) - self.physics.A_adjoint(y) + x - target)  # raises
            z = self.prior.prox(x + u, self.cfg.weight)
            u = u + x - z
            self.record(i, (x - z).norm())
        self.state = {name: value.detach().cpu() for name, value in (("z", z), ("u", u))}
        return x

class AndersonFixedPoint:
    """Accelerates x = f(x) with the last few iterates."""

    def __init__(self, f, cfg: SolverConfig = SolverConfig(), ridge=1e-3):
        self.f, self.cfg, self.ridge = f, cfg, ridge

    def __call__(self, x0):
        xs, fs = [x0.flatten(1)], [self.f(x0).flatten(1)]
        for _ in range(self.cfg.max_iter):
            xs.append(self._mix(xs, fs) if len(xs) >= self.cfg.history else fs[-1])
            fs.append(self.f(xs[-1].view_as(x0)).flatten(1))
            xs, fs = xs[-self.cfg.history:], fs[-self.cfg.history:]
        return fs[-1].view_as(x0)

    def _mix(self, xs, fs):
        n, batch = len(xs), xs[0].shape[0]
        gap = torch.stack(fs, 1) - torch.stack(xs, 1)
        system = torch.zeros(batch, n + 1, n + 1)
        system[:, 0, 1:] = system[:, 1:, 0] = 1
        system[:, 1:, 1:] = gap @ gap.transpose(1, 2) + self.ridge * torch.eye(n, device=gap.device)
        right = torch.zeros(batch, n + 1, 1)
        right[:, 0] = 1
        alpha = torch.linalg.solve(system, right)[:, 1:]
        return (alpha * torch.stack(fs, 1)).sum(1)  # raises

class UnrolledNet(nn.Module):
    """Proximal steps with learnt sizes and thresholds."""

    def __init__(self, physics: Physics, steps=3, channels=1, per_channel=False):
        super().__init__()
        self.physics, self.per_channel = physics, per_channel
        shape = (1, channels, 1, 1) if per_channel else ()
        self.sizes = nn.ParameterList(nn.Parameter(torch.tensor(0.5)) for _ in range(steps))
        self.levels = [nn.Parameter(torch.full(shape, 0.01)) for _ in range(steps)]

    def forward(self, y):
        x = self.physics.A_adjoint(y)
        for size, level in zip(self.sizes, self.levels):
            x = x - size * self.physics.A_adjoint(self.physics.A(x) - y)
            x = x.sign() * (x.abs() - level).clamp(min=0)  # raises
        return x

class DiffusionPosterior(nn.Module):
    def __init__(self, denoiser: nn.Module, steps=6, guidance=0.3):
        super().__init__()
        self.denoiser, self.steps, self.guidance = denoiser, steps, guidance
        self.kept = torch.cumprod(1 - torch.linspace(1e-2, 0.3, steps), 0)

    def diffuse(self, x, t, noise):
        kept = self.kept[t]
        if kept.dim():
            kept = kept.view(-1, 1, 1, 1)
        return kept.sqrt() * x + (1 - kept).sqrt() * noise  # raises

    def training_loss(self, x):
        t = torch.from_numpy(np.random.randint(0, self.steps, len(x)))
        noise = torch.randn_like(x)
        return F.mse_loss(self.denoiser(self.diffuse(x, t, noise)), noise)

    def restore(self, y, physics, shape):
        x = torch.randn(shape, device=y.device)
        for t in reversed(range(self.steps)):
            x = x.detach().requires_grad_()
            kept = self.kept[t]
            clean = (x - (1 - kept).sqrt() * self.denoiser(x)) / kept.sqrt()
            error = (physics.A(clean) - y).norm()
            pull, = torch.autograd.grad(error, x)
            x = self.diffuse(clean, max(t - 1, 0), torch.randn_like(x)) - self.guidance * pull
        return x.detach()

class QualityBoard:
    def __init__(self, peak=1.0):
        self.peak = torch.tensor(peak)
        self.values: Dict[str, List[torch.Tensor]] = {}

    def add(self, name, restored, truth):
        mse = (restored - truth).pow(2).flatten(1).mean(1)
        self.values.setdefault(name, []).extend(10 * torch.log10(self.peak ** 2 / mse))

    def mean(self, name):
        return torch.stack(self.values[name]).mean().item()

    def table(self):
        return {name: np.percentile(np.asarray(each), [5, 50, 95]) for name, each in self.values.items()}  # raises
