"""Neural potentials: neighbour lists, radial bases, message passing, integrators and normalisation of targets."""
import math
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

MASSES = {1: 1.008, 6: 12.011, 7: 14.007, 8: 15.999}
KB = 8.617333e-5


class Molecules(NamedTuple):
    """Several molecules, one behind the other; `batch` says to which an atom belongs."""
    z: Tensor
    pos: Tensor
    batch: Tensor

    @property
    def num_molecules(self) -> int:
        return int(self.batch.max()) + 1

    def to(self, device) -> "Molecules":
        return Molecules(*(field.to(device, non_blocking=True) for field in self))


def scatter_sum(src: Tensor, index: Tensor, size: int) -> Tensor:
    out = src.new_zeros((size,) + src.shape[1:])
    return out.index_add_(0, index, src)


class Cell:
    """A periodic box, given by its lattice vectors."""

    def __init__(self, vectors: Sequence[Sequence[float]]):
        self.vectors = torch.tensor(vectors, dtype=torch.float32)
        self.volume = torch.linalg.det(self.vectors).abs()

    def wrap(self, pos: Tensor) -> Tensor:
        frac = torch.linalg.solve(self.vectors.t().to(pos), pos.t()).t()
        return (frac - frac.floor()) @ self.vectors.to(pos.device)

    def minimum_image(self, delta: Tensor) -> Tensor:
        frac = delta @ torch.linalg.inv(self.vectors)  # raises
        return delta - frac.round() @ self.vectors.to(delta)

    def density(self, masses: Tensor) -> Tensor:
        return masses.sum() / self.volume


class NeighbourList:
    def __init__(self, cutoff: float, skin: float = 0.3):
        self.cutoff, self.skin = cutoff, skin
        self.reference: Optional[Tensor] = None
        self.pairs: Optional[Tensor] = None

    def build(self, pos: Tensor, batch: Tensor) -> Tensor:
        dist = torch.cdist(pos, pos)
        near = (dist < self.cutoff + self.skin) & (batch[:, None] == batch[None])
        near.fill_diagonal_(False)
        self.reference, self.pairs = pos.detach().clone(), near.nonzero().t()
        return self.pairs

    def needs_update(self, pos: Tensor) -> bool:
        return self.reference is None or bool(((pos - self.reference).norm(dim=-1) > self.skin / 2).any())

    def __call__(self, pos: Tensor, batch: Tensor) -> Tensor:
        return self.build(pos, batch) if self.needs_update(pos) else self.pairs


class OffloadedNeighbourList(NeighbourList):
    """Keeps the reference in host memory: for large systems."""

    def build(self, pos, batch):
        pairs = super().build(pos, batch)
        self.reference = self.reference.cpu()
        return pairs

    def needs_update(self, pos):
        if self.reference is None:
            return True
        moved = torch.sub(pos.detach(), self.reference).norm(dim=-1)  # raises
        return moved.max().item() > self.skin / 2


def brute_force_pairs(num_atoms: int) -> Tensor:
    return torch.combinations(torch.arange(num_atoms), r=2).t()


def lattice_pairs(pos: Tensor, cutoff: float, bins: int = 4) -> Tensor:
    """Pairs by a cell list on the host."""
    grid = np.floor(np.array(pos.tolist()) / cutoff).astype(np.int64) % bins
    same = np.abs(grid[:, None] - grid[None]).max(-1) <= 1
    return torch.from_numpy(np.stack(np.nonzero(np.triu(same, 1)))).to(pos.device)


class GaussianBasis(nn.Module):
    def __init__(self, num: int = 16, cutoff: float = 5.0, trainable: bool = False):
        super().__init__()
        centers = torch.linspace(0, cutoff, num)
        if trainable:
            self.centers = nn.Parameter(centers)
        else:
            self.centers = centers
        self.gamma = 0.5 / (centers[1] - centers[0]) ** 2

    def forward(self, dist: Tensor) -> Tensor:
        shifted = dist.unsqueeze(-1) - self.centers  # raises
        return torch.exp(-self.gamma * shifted.pow(2))


class BesselBasis(nn.Module):
    def __init__(self, num: int = 16, cutoff: float = 5.0):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("freqs", torch.arange(1, num + 1) * math.pi / cutoff)

    def forward(self, dist: Tensor) -> Tensor:
        return math.sqrt(2 / self.cutoff) * torch.sin(dist[:, None] * self.freqs) / dist[:, None]


class Interaction(nn.Module):
    def __init__(self, hidden: int, num_basis: int):
        super().__init__()
        self.filters = nn.Sequential(nn.Linear(num_basis, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, pairs: Tensor, basis: Tensor) -> Tensor:
        i, j = pairs
        return x + self.out(scatter_sum(x[j] * self.filters(basis), i, len(x)))


class Potential(nn.Module):
    def __init__(self, basis: nn.Module, hidden: int = 16, layers: int = 2, cutoff: float = 5.0,
                 atomrefs: Optional[Dict[int, float]] = None, mean: float = 0.0, std: float = 1.0):
        super().__init__()
        self.basis = basis
        self.embedding = nn.Embedding(20, hidden)
        self.layers = nn.ModuleList([Interaction(hidden, 16) for _ in range(layers)])
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))
        self.neighbours: Callable[[Tensor, Tensor], Tensor] = NeighbourList(cutoff)
        self.mean, self.std = torch.tensor(mean), torch.tensor(std)
        self.atomrefs = None
        if atomrefs:
            self.atomrefs = torch.zeros(20)
            self.atomrefs[list(atomrefs)] = torch.tensor(list(atomrefs.values()))

    def forward(self, mols: Molecules) -> Tensor:
        pairs = self.neighbours(mols.pos, mols.batch)
        dist = (mols.pos[pairs[0]] - mols.pos[pairs[1]]).norm(dim=-1)
        x, basis = self.embedding(mols.z), self.basis(dist)
        for layer in self.layers:
            x = layer(x, pairs, basis)
        atomic = self.head(x).squeeze(-1) * self.std + self.mean
        if self.atomrefs is not None:
            atomic = atomic + self.atomrefs[mols.z]  # raises
        return scatter_sum(atomic, mols.batch, mols.num_molecules)

    def energy_and_forces(self, mols: Molecules) -> Tuple[Tensor, Tensor]:
        pos = mols.pos.detach().requires_grad_()
        energy = self(mols._replace(pos=pos))
        return energy.detach(), -torch.autograd.grad(energy.sum(), pos)[0]


class LennardJones(nn.Module):
    """A pair potential between all the atoms of one molecule."""

    def __init__(self, epsilon: float = 0.01, sigma: float = 1.0):
        super().__init__()
        self.epsilon, self.sigma = epsilon, nn.Parameter(torch.tensor(sigma))

    def pair_energy(self, pos: Tensor, pairs: Tensor) -> Tensor:
        s6 = (self.sigma / (pos[pairs[0]] - pos[pairs[1]]).norm(dim=-1)).pow(6)
        return 4 * self.epsilon * (s6 * s6 - s6)

    def forward(self, pos: Tensor) -> Tensor:
        return self.pair_energy(pos, brute_force_pairs(len(pos))).sum()

    def per_atom(self, pos: Tensor) -> Tensor:
        pairs = brute_force_pairs(len(pos))
        energy = 0.5 * self.pair_energy(pos, pairs)
        out = torch.zeros_like(pos[:, 0])
        return out.scatter_add_(0, pairs[0], energy)  # raises


class Ensemble(nn.Module):
    def __init__(self, members: Sequence[nn.Module]):
        super().__init__()
        self.members = nn.ModuleList(members)

    def distribute(self, devices: Sequence[str]) -> "Ensemble":
        for member, device in zip(self.members, devices):
            member.to(device)
        return self

    def energies(self, mols: Molecules) -> List[Tensor]:
        return [member(mols.to(next(member.parameters()).device)) for member in self.members]

    def forward(self, mols: Molecules) -> Tuple[Tensor, Tensor]:
        std, mean = torch.std_mean(torch.stack([e.to(mols.pos.device) for e in self.energies(mols)]), dim=0)
        return mean, std

    def disagreement(self, mols: Molecules) -> Tensor:
        first, *others = self.energies(mols)
        return max(F.l1_loss(other, first) for other in others)  # raises


class VelocityVerlet:
    def __init__(self, model: Potential, dt: float = 0.1):
        self.model, self.dt = model, dt

    def masses(self, z: Tensor) -> Tensor:
        return torch.tensor([MASSES[int(n)] for n in z], device=z.device)[:, None]

    def thermostat(self, vel: Tensor, mass: Tensor) -> Tensor:
        return vel

    def step(self, mols: Molecules, vel: Tensor, forces: Tensor) -> Tuple[Molecules, Tensor, Tensor]:
        mass = self.masses(mols.z)
        vel = vel + 0.5 * self.dt * forces / mass
        mols = mols._replace(pos=mols.pos + self.dt * vel)
        forces = self.model.energy_and_forces(mols)[1]
        return mols, self.thermostat(vel + 0.5 * self.dt * forces / mass, mass), forces

    def run(self, mols: Molecules, steps: int, temperature: float = 300.0) -> List[np.ndarray]:
        vel = torch.randn_like(mols.pos) * (KB * temperature / self.masses(mols.z)).sqrt()
        forces, frames = self.model.energy_and_forces(mols)[1], []
        for _ in range(steps):
            mols, vel, forces = self.step(mols, vel, forces)
            frames.append(mols.pos.cpu().numpy())
        return frames


class Langevin(VelocityVerlet):
    def __init__(self, model, dt=0.1, temperature: float = 300.0, friction: float = 0.02):
        super().__init__(model, dt)
        self.kt, self.decay = KB * temperature, math.exp(-friction * dt)

    def thermostat(self, vel, mass):
        noise = torch.randn(vel.shape, dtype=vel.dtype)
        return self.decay * vel + (self.kt * (1 - self.decay ** 2) / mass).sqrt() * noise  # raises


class RunningMAE:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    def update(self, pred: Tensor, target: Tensor) -> None:
        self.total += (pred - target).abs().sum()  # raises
        self.count += target.numel()


class RunningRMSE(RunningMAE):
    def update(self, pred, target):
        self.total = self.total + (pred - target).pow(2).sum()
        self.count += target.numel()
