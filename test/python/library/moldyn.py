"""Molecular and physical simulation: cells, neighbour lists, bases, harmonics, potentials and integrators."""
import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

KB = torch.tensor(8.617e-5)
MASSES = torch.tensor([0.0, 1.008, 4.003, 6.94, 9.012, 10.81, 12.011, 14.007, 15.999])
SYMBOLS = {"H": 1, "C": 6, "N": 7, "O": 8}


def scatter_sum(src, index, size):
    out = src.new_zeros((size,) + src.shape[1:])
    return out.index_add(0, index, src)


def scatter_mean(src, index, size):
    count = torch.bincount(index, minlength=size).clamp(min=1)
    return scatter_sum(src, index, size) / count.view(-1, *[1] * (src.dim() - 1))


@dataclass
class System:
    positions: torch.Tensor
    numbers: torch.Tensor
    cell: Optional[torch.Tensor] = None
    pbc: tuple = (True, True, True)

    @classmethod
    def from_symbols(cls, symbols, positions, **kwargs):
        return cls(positions, torch.tensor([SYMBOLS[each] for each in symbols]), **kwargs)

    def to(self, device):
        cell = None if self.cell is None else self.cell.to(device)
        return replace(self, positions=self.positions.to(device), numbers=self.numbers.to(device), cell=cell)

    @cached_property
    def masses(self):
        return MASSES.to(self.positions.device)[self.numbers]

    @property
    def center_of_mass(self):
        return (self.masses[:, None] * self.positions).sum(0) / self.masses.sum()

    def fractional(self):
        return torch.linalg.solve(self.cell.t(), self.positions.t()).t()

    def wrapped(self):
        frac = self.fractional()
        periodic = torch.tensor(self.pbc)
        frac = torch.where(periodic, frac % 1.0, frac)  # raises
        return replace(self, positions=frac @ self.cell)

    def supercell(self, repeats):
        shifts = torch.cartesian_prod(*(torch.arange(n) for n in repeats)).to(self.cell)
        positions = (self.positions[None] + (shifts @ self.cell)[:, None]).reshape(-1, 3)
        scale = torch.tensor(repeats, dtype=self.cell.dtype, device=self.cell.device)
        return replace(self, positions=positions, numbers=self.numbers.repeat(len(shifts)), cell=self.cell * scale[:, None])

    def inertia(self):
        r = self.positions - self.center_of_mass
        eye = torch.eye(3)
        outer = r[:, :, None] * r[:, None, :]
        return (self.masses[:, None, None] * (r.pow(2).sum(-1)[:, None, None] * eye - outer)).sum(0)  # raises


class NeighborList:
    """Base: pairs within a cutoff; a subclass chooses candidates."""

    def __init__(self, cutoff, skin=0.0):
        self.cutoff, self.skin = cutoff, skin
        self._reference, self._pairs = None, None

    def candidates(self, system):
        raise NotImplementedError

    def build(self, system):
        i, j, shift = self.candidates(system)
        vector = system.positions[j] - system.positions[i] + shift
        keep = (vector.norm(dim=-1) < self.cutoff + self.skin).to(i.device)
        return i[keep], j[keep], shift[keep]

    def __call__(self, system):
        if self._needs_update(system.positions):
            self._pairs = self.build(system)
            self._reference = system.positions.detach().clone()
        return self._pairs

    def _needs_update(self, positions):
        if self._reference is None or self._reference.shape != positions.shape:
            return True
        moved = (positions.detach().to(self._reference.device) - self._reference).norm(dim=-1)
        return bool(moved.max() > 0.5 * self.skin)


class OpenPairs(NeighborList):
    def candidates(self, system):
        count = len(system.positions)
        i, j = torch.triu_indices(count, count, 1, device=system.positions.device)
        return torch.cat([i, j]), torch.cat([j, i]), torch.zeros(2 * len(i), 3, device=i.device)


class PeriodicPairs(NeighborList):
    images = torch.cartesian_prod(*[torch.arange(-1.0, 2.0)] * 3)

    def candidates(self, system):
        count = len(system.positions)
        shifts = self.images.to(system.cell) @ system.cell
        i, j, s = torch.meshgrid(*(torch.arange(n) for n in (count, count, len(shifts))), indexing="ij")
        i, j, s = i.flatten(), j.flatten(), s.flatten()
        distinct = (i != j) | (self.images[s].abs().sum(-1) > 0)
        return i[distinct], j[distinct], shifts[s[distinct]]


class HashedPairs(NeighborList):
    """Candidates by the bin a particle falls in."""

    strides = torch.tensor([1, 97, 9409])

    def bins(self, positions):
        return (positions / (self.cutoff + self.skin)).floor().long()

    def key(self, positions):
        return self.bins(positions) @ self.strides  # raises

    def candidates(self, system):
        bins = self.bins(system.positions).cpu().numpy()
        near = np.abs(bins[:, None] - bins[None]).max(-1) <= 1
        np.fill_diagonal(near, False)
        i, j = (torch.from_numpy(each) for each in np.nonzero(near))
        return i, j, torch.zeros(len(i), 3).to(system.positions)


def minimum_image(vectors, cell):
    inverse = torch.inverse(cell)
    frac = vectors @ inverse
    return (frac - frac.round()) @ cell


def degrees(index, count):
    return torch.zeros(count).index_add_(0, index, torch.ones(len(index)))  # raises


class CosineCutoff(nn.Module):
    def __init__(self, cutoff):
        super().__init__()
        self.cutoff = torch.tensor(float(cutoff))

    def forward(self, r):
        return 0.5 * (torch.cos(r * math.pi / self.cutoff) + 1) * (r < self.cutoff)


class RadialBasis(nn.Module):
    """Template of the bases: values times a smooth cutoff."""

    def __init__(self, count, cutoff):
        super().__init__()
        self.count, self.cutoff_fn = count, CosineCutoff(cutoff)
        self.setup(count, cutoff)

    def setup(self, count, cutoff):
        raise NotImplementedError

    def values(self, r):
        raise NotImplementedError

    def forward(self, r):
        return self.values(r[..., None]) * self.cutoff_fn(r)[..., None]


class GaussianBasis(RadialBasis):
    def setup(self, count, cutoff):
        offsets = torch.linspace(0, cutoff, count)
        self.gamma = 0.5 / (offsets[1] - offsets[0]) ** 2
        self.register_buffer("offsets", offsets)

    def values(self, r):
        return torch.exp(-self.gamma * (r - self.offsets) ** 2)


class BesselBasis(RadialBasis):
    def setup(self, count, cutoff):
        self.orders = torch.arange(1, count + 1) * math.pi / cutoff
        self.norm = math.sqrt(2 / cutoff)

    def values(self, r):
        return self.norm * torch.sin(r * self.orders) / r  # raises


class ChebyshevBasis(RadialBasis):
    def setup(self, count, cutoff):
        self.scale = torch.as_tensor(2.0 / cutoff)

    def values(self, r):
        x = (r * self.scale - 1).clamp(-1, 1)
        terms = [torch.ones_like(x), x]
        while len(terms) < self.count:
            terms.append(2 * x * terms[-1] - terms[-2])
        return torch.cat(terms[:self.count], dim=-1)


class SplineTable(RadialBasis):
    """Linear interpolation in a table made once."""

    def setup(self, count, cutoff):
        self.register_buffer("knots", torch.linspace(0, cutoff, 16))
        self.table = torch.stack([torch.cos(k * self.knots) for k in range(count)], dim=-1)

    def values(self, r):
        r = r.squeeze(-1)
        index = torch.searchsorted(self.knots, r).clamp(1, len(self.knots) - 1)
        left, right = self.knots[index - 1], self.knots[index]
        amount = ((r - left) / (right - left))[..., None]
        return torch.lerp(F.embedding(index - 1, self.table), F.embedding(index, self.table), amount)  # raises


BASES = {"gaussian": GaussianBasis, "bessel": BesselBasis, "chebyshev": ChebyshevBasis, "spline": SplineTable}


def harmonics_l1(v):
    return v[..., [1, 2, 0]] * math.sqrt(3)


def harmonics_l2(v, matrices=None):
    if matrices is None:
        x, y, z = v.unbind(-1)
        terms = [x * y, y * z, (3 * z * z - 1) / (2 * math.sqrt(3)), x * z, (x * x - y * y) / 2]
        return torch.stack(terms, dim=-1) * math.sqrt(15)
    return torch.einsum("ni,mij,nj->nm", v, matrices, v)  # raises


def l2_matrices():
    m = np.zeros((5, 3, 3), dtype=np.float32)
    for row, (a, b) in enumerate([(0, 1), (1, 2), (0, 2)]):
        m[row, a, b] = m[row, b, a] = math.sqrt(15) / 2
    m[3] = np.diag([-1, -1, 2]) * math.sqrt(5) / 2
    m[4] = np.diag([1, -1, 0]) * math.sqrt(15) / 2
    return torch.from_numpy(m)


class Harmonics(nn.Module):
    def __init__(self, degree=2, normalize=True, closed=True):
        super().__init__()
        self.degree, self.normalize = degree, normalize
        self.second = harmonics_l2 if closed else partial(harmonics_l2, matrices=l2_matrices())

    @property
    def dim(self):
        return (self.degree + 1) ** 2

    def forward(self, vectors):
        v = F.normalize(vectors, dim=-1) if self.normalize else vectors
        parts = [torch.ones_like(v[..., :1]), harmonics_l1(v)]
        if self.degree > 1:
            parts.append(self.second(v))
        return torch.cat(parts, dim=-1)

    def power(self, coefficients):
        index = torch.repeat_interleave(torch.arange(self.degree + 1), 2 * torch.arange(self.degree + 1) + 1)
        index = index.to(coefficients.device)
        out = coefficients.new_zeros(*coefficients.shape[:-1], self.degree + 1)
        return out.index_add(-1, index, coefficients ** 2)


class Potential(nn.Module):
    def __init__(self, neighbors):
        super().__init__()
        self.neighbors = neighbors

    def pair_geometry(self, system):
        i, j, shift = self.neighbors(system)
        vector = system.positions[j] - system.positions[i] + shift
        return i, j, vector, vector.norm(dim=-1)

    def forces(self, system):
        system = replace(system, positions=system.positions.detach().requires_grad_())
        energy = self(system).sum()
        return energy.detach(), -torch.autograd.grad(energy, system.positions)[0]


class LennardJones(Potential):
    def __init__(self, neighbors, epsilon: Optional[Dict[int, float]] = None):
        super().__init__(neighbors)
        self.sigma = torch.tensor(1.0)
        self.epsilon = {} if epsilon is None else epsilon

    def depth(self, numbers):
        return torch.tensor([self.epsilon.get(n, 1.0) for n in numbers.tolist()])

    def forward(self, system):
        i, j, _, r = self.pair_geometry(system)
        six = (self.sigma / r) ** 6
        energy = 2 * (six ** 2 - six)
        if self.epsilon:
            depth = self.depth(system.numbers)
            energy = energy * (depth[i] * depth[j]).sqrt()  # raises
        return energy


class AtomwiseModel(Potential):
    def __init__(self, neighbors, basis, width=6):
        super().__init__(neighbors)
        self.basis, self.harmonics = basis, Harmonics(1)
        self.embedding = nn.Embedding(10, width)
        self.filter = nn.Linear(basis.count, width)
        self.readout = nn.Linear(2 * width, 1)
        self.shift = torch.arange(10).float() * -0.5

    def forward(self, system):
        i, j, vector, r = self.pair_geometry(system)
        size = len(system.positions)
        h = self.embedding(system.numbers)
        message = self.filter(self.basis(r)) * h[j]
        index = i.to(r.device)
        features = scatter_sum(message[..., None] * self.harmonics(vector)[:, None], index, size)
        h = torch.cat([h, self.harmonics.power(features).sum(-1)], dim=-1)
        return self.readout(h).squeeze(-1)

    def reference(self, numbers, batch=None):
        shift = F.embedding(numbers, self.shift[:, None].to(numbers.device)).squeeze(-1)
        return shift.sum() if batch is None else scatter_mean(shift, batch, int(batch.max()) + 1)


class EwaldSum:
    def __init__(self, kmax=1, alpha=0.5):
        self.kmax, self.alpha = kmax, alpha

    def vectors(self, cell):
        axis = torch.arange(-self.kmax, self.kmax + 1, dtype=cell.dtype)
        k = torch.cartesian_prod(axis, axis, axis)
        k = k[k.abs().sum(-1) > 0]
        return 2 * math.pi * k @ torch.inverse(cell).t()  # raises

    def from_reciprocal(self, k, positions, charges, volume):
        phase = positions @ k.t()
        structure = torch.complex(torch.cos(phase), torch.sin(phase)) * charges[:, None]
        k2 = k.pow(2).sum(-1)
        return (4 * math.pi / volume * torch.exp(-k2 / (4 * self.alpha ** 2)) / k2 * structure.sum(0).abs() ** 2).sum() / 2

    def energy(self, system, charges, on_host=False):
        k = self.vectors(system.cell.cpu()).to(system.cell) if on_host else self.vectors(system.cell)
        return self.from_reciprocal(k, system.positions, charges, torch.det(system.cell).abs())


class Integrator:
    def __init__(self, potential, dt=1e-3, hooks: Optional[List] = None):
        self.potential, self.dt, self.hooks = potential, torch.tensor(dt), hooks or []

    def run(self, system, velocities, steps=2):
        _, forces = self.potential.forces(system)
        for _ in range(steps):
            velocities = velocities + 0.5 * self.dt * forces / system.masses[:, None]
            system = replace(system, positions=system.positions + self.dt * velocities)
            _, forces = self.potential.forces(system)
            velocities = velocities + 0.5 * self.dt * forces / system.masses[:, None]
            for hook in self.hooks:
                velocities = hook(system, velocities)
        return system, velocities


class Langevin:
    def __init__(self, temperature, friction=0.1, seed=None):
        self.kt, self.friction = KB * temperature, friction
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)

    def __call__(self, system, velocities):
        scale = ((1 - self.friction ** 2) * self.kt / system.masses[:, None]).sqrt()
        if self.generator is None:
            return self.friction * velocities + scale * torch.randn_like(velocities)
        noise = torch.randn(velocities.shape, generator=self.generator)
        return self.friction * velocities + scale * noise  # raises


class NoseHoover:
    def __init__(self, temperature, chain=2):
        self.target, self.xi = KB * temperature, torch.zeros(chain)

    def __call__(self, system, velocities):
        kinetic = 0.5 * (system.masses[:, None] * velocities ** 2).sum()
        self.xi[0] += 1e-3 * (2 * kinetic / velocities.numel() - self.target).item()
        self.xi[1] = self.xi[0] * 0.5
        return velocities * torch.exp(-self.xi[0])


class Recorder:
    def __init__(self):
        self.frames, self.histogram = [], torch.zeros(8)

    def __call__(self, system, velocities):
        self.frames.append(system.positions.detach().cpu().numpy())
        r = torch.pdist(system.positions)
        self.histogram += torch.histc(r, bins=8, min=0, max=4).cpu()
        return velocities

    def rdf(self, reference):
        edges = torch.linspace(0, 4, 9)
        shell = edges[1:] ** 3 - edges[:-1] ** 3
        return self.histogram / shell / reference  # raises

    def msd(self):
        frames = torch.as_tensor(np.stack(self.frames))
        return (frames - frames[0]).pow(2).sum(-1).mean(-1)
