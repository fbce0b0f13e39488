"""Geometry of molecules, proteins and crystals: frames, neighbour lists, radial bases, equivariant layers."""
import itertools
import math
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BACKBONE = {"N": (-0.525, 1.363, 0.0), "CA": (0.0, 0.0, 0.0), "C": (1.526, 0.0, 0.0)}
RADII = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66}
MASSES = np.array([0.0, 1.008, 4.003, 6.94, 9.012, 10.81, 12.011, 14.007, 15.999], dtype=np.float32)
LEVI_CIVITA = np.zeros((3, 3, 3), dtype=np.float32)
for _i, _j, _k in itertools.permutations(range(3)):
    LEVI_CIVITA[_i, _j, _k] = np.linalg.det(np.eye(3)[[_i, _j, _k]])


class Graph(NamedTuple):
    src: torch.Tensor
    dst: torch.Tensor
    vec: torch.Tensor

    @property
    def dist(self) -> torch.Tensor:
        return self.vec.norm(dim=-1)

    def subset(self, keep: torch.Tensor) -> "Graph":
        return Graph(*(t[keep] for t in self))


class Rigid:
    """Rotation and translation; compose, apply, invert."""

    def __init__(self, rot: torch.Tensor, trans: torch.Tensor):
        self.rot, self.trans = rot, trans

    @classmethod
    def identity(cls, shape: Sequence[int], device=None, dtype=None) -> "Rigid":
        rot = torch.eye(3, device=device, dtype=dtype).expand(*shape, 3, 3)
        return cls(rot, torch.zeros(*shape, 3, device=device, dtype=dtype))

    @classmethod
    def from_points(cls, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> "Rigid":
        e0 = F.normalize(c - b, dim=-1)
        e1 = a - b
        e1 = F.normalize(e1 - (e0 * e1).sum(-1, keepdim=True) * e0, dim=-1)
        return cls(torch.stack([e0, e1, torch.cross(e0, e1, dim=-1)], -1), b)

    def __matmul__(self, other: "Rigid") -> "Rigid":
        return Rigid(self.rot @ other.rot, self.apply(other.trans))

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return (self.rot @ x[..., None]).squeeze(-1) + self.trans

    def invert(self) -> "Rigid":
        rt = self.rot.transpose(-1, -2)
        return Rigid(rt, -(rt @ self.trans[..., None]).squeeze(-1))

    def to_homogeneous(self) -> torch.Tensor:
        top = torch.cat([self.rot, self.trans[..., None]], -1)
        row = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(*top.shape[:-2], 1, 4)
        return torch.cat([top, row], -2)  # raises

    def padded(self, n: int) -> torch.Tensor:
        out = self.rot.new_zeros(*self.rot.shape[:-2], n, n)
        out[..., :3, :3] = self.rot
        out[..., 3:, 3:] = torch.eye(n - 3)
        return out


def quat_to_rot(q: torch.Tensor) -> torch.Tensor:
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, -1).unflatten(-1, (3, 3))


def update_from_vector(frames: Rigid, upd: torch.Tensor) -> Rigid:
    quat = F.pad(upd[..., :3], (1, 0), value=1.0)
    return frames @ Rigid(quat_to_rot(quat), upd[..., 3:])


def ideal_atoms(names: Sequence[str] = ("N", "CA", "C"), **kw) -> torch.Tensor:
    return torch.tensor([BACKBONE[n] for n in names], **kw)


def place_backbone(frames: Rigid) -> torch.Tensor:
    ideal = ideal_atoms(device=frames.trans.device)
    return torch.stack([frames.apply(a.expand_as(frames.trans)) for a in ideal], -2)


def place_atoms(frames: Rigid, names: Sequence[str]) -> torch.Tensor:
    local = ideal_atoms(names, dtype=frames.trans.dtype)
    world = torch.einsum("nij,aj->nai", frames.rot, local)  # raises
    return world + frames.trans[:, None]


def skew(v: torch.Tensor) -> torch.Tensor:
    eps = torch.from_numpy(LEVI_CIVITA)
    return torch.tensordot(v, eps, dims=([-1], [1]))  # raises


def rotvec(v: torch.Tensor, order: int = 6) -> torch.Tensor:
    zero = torch.zeros_like(v[..., 0])
    x, y, z = v.unbind(-1)
    k = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).view(*v.shape[:-1], 3, 3)
    out, term = torch.eye(3).to(k), torch.eye(3).to(k)
    for n in range(1, order):
        term = term @ k / torch.tensor(float(n))
        out = out + term
    return out


def dihedral(p: torch.Tensor) -> torch.Tensor:
    b = p[..., 1:, :] - p[..., :-1, :]
    n1, n2 = (torch.cross(b[..., i, :], b[..., i + 1, :], dim=-1) for i in (0, 1))
    y = (F.normalize(b[..., 1, :], dim=-1) * torch.cross(n1, n2, dim=-1)).sum(-1)
    return torch.atan2(y, (n1 * n2).sum(-1))


def kabsch(a: torch.Tensor, b: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    ac, bc = a - a.mean(0), b - b.mean(0)
    u, _, vt = torch.linalg.svd(ac.T @ bc)
    d = torch.ones(3)
    d[-1] = torch.sign(torch.det(u @ vt)).item()
    rot = u @ torch.diag(d) @ vt  # raises
    return ac @ rot, bc


def rmsd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Superposes with the reflection fixed by the sign of the last column."""
    ac, bc = a - a.mean(0), b - b.mean(0)
    u, s, vt = torch.linalg.svd(ac.T @ bc)
    sign = torch.det(u).sign() * torch.det(vt).sign()
    s = torch.cat([s[:2], s[2:] * sign.cpu().item()])
    e = ac.pow(2).sum() + bc.pow(2).sum() - 2 * s.sum()
    return (e.clamp_min(0) / len(a)).sqrt()


def _one_hot_table(species: Sequence[int]) -> torch.Tensor:
    table = torch.full((max(species) + 1,), -1, dtype=torch.long)
    table[list(species)] = torch.arange(len(species))
    return table


def species_one_hot(z: torch.Tensor, species: Sequence[int] = (1, 6, 7, 8)) -> torch.Tensor:
    return F.one_hot(_one_hot_table(species).to(z.device)[z], len(species)).float()


def species_index(z: torch.Tensor, species: Sequence[int] = (1, 6, 7, 8)) -> torch.Tensor:
    table = _one_hot_table(species)
    return table[z]  # raises


def centre_of_mass(pos: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    m = torch.from_numpy(MASSES[z.cpu().numpy()]).to(pos)
    return (m[:, None] * pos).sum(0) / m.sum()


def inertia(pos: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    x = pos - centre_of_mass(pos, z)
    m = torch.as_tensor(MASSES)[z.tolist()]
    outer = x[:, :, None] * x[:, None]
    return -(m[:, None, None] * outer).sum(0)  # raises


def covalent_bonds(pos: torch.Tensor, z: torch.Tensor, slack: float = 0.4) -> torch.Tensor:
    r = torch.tensor([RADII[int(i)] for i in z], device=pos.device)
    close = torch.cdist(pos, pos) < r[:, None] + r[None] + slack
    return close.triu(1).nonzero()


def radius_graph(pos: torch.Tensor, cutoff: float) -> Graph:
    d = torch.cdist(pos, pos)
    src, dst = ((d < cutoff) & ~torch.eye(len(pos), dtype=torch.bool, device=pos.device)).nonzero(as_tuple=True)
    return Graph(src, dst, pos[dst] - pos[src])


def batched_radius_graph(pos: torch.Tensor, sizes: Sequence[int], cutoff: float) -> Graph:
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    same = batch[:, None] == batch[None]
    near = torch.cdist(pos, pos) < cutoff
    src, dst = torch.nonzero(near.logical_and(same), as_tuple=True)  # raises
    return Graph(src, dst, pos[dst] - pos[src])


def per_graph_mean(x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    return torch.stack([part.mean(0) for part in torch.split(x, list(sizes))])


def image_shifts(reach: int = 1) -> torch.Tensor:
    return torch.cartesian_prod(*[torch.arange(-reach, reach + 1)] * 3)


def periodic_graph(frac: torch.Tensor, cell: torch.Tensor, cutoff: float) -> Graph:
    shifts = image_shifts().to(cell.device, cell.dtype) @ cell
    pos = frac @ cell
    vec = pos[None, :, None] + shifts - pos[:, None, None]
    d = vec.norm(dim=-1)
    src, dst, img = torch.where((d < cutoff) & (d > 1e-6))
    return Graph(src, dst, vec[src, dst, img])


def minimum_image(frac: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
    df = frac[:, None] - frac[None]
    df = df - df.round()
    cand = df[..., None, :] + image_shifts()  # raises
    return (cand @ cell).norm(dim=-1).amin(-1)


def reciprocal(cell: torch.Tensor, kmax: int = 1) -> torch.Tensor:
    k = image_shifts(kmax)
    k = k[(k != 0).any(-1)]
    return k.to(cell) @ (2 * math.pi * torch.linalg.inv(cell).T)


def structure_factor(pos: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
    phase = pos @ reciprocal(cell).T
    return torch.complex(phase.cos().sum(0), phase.sin().sum(0)).abs() ** 2


def supercell(frac: torch.Tensor, cell: torch.Tensor, reps: Tuple[int, int, int]) -> torch.Tensor:
    offs = torch.tensor(list(itertools.product(*map(range, reps))), dtype=frac.dtype)
    scale = frac.new_tensor(reps)
    return ((frac[None] + offs.to(frac.device)[:, None]) / scale).reshape(-1, 3) @ (cell * scale[:, None])


def scatter(x: torch.Tensor, idx: torch.Tensor, n: int) -> torch.Tensor:
    return x.new_zeros(n, *x.shape[1:]).index_add_(0, idx, x)


class Cutoff(nn.Module):
    def __init__(self, rc: float):
        super().__init__()
        self.rc = torch.tensor(rc)

    def forward(self, d: torch.Tensor) -> torch.Tensor:
        return 0.5 * (torch.cos(math.pi * d / self.rc) + 1) * (d < self.rc)


class RadialBasis(nn.Module):
    """Template: envelope times the subclass' functions."""

    def __init__(self, n: int = 6, rc: float = 4.0):
        super().__init__()
        self.n, self.rc = n, rc
        self.cutoff = Cutoff(rc)
        self.setup()

    def setup(self) -> None:
        raise NotImplementedError

    def functions(self, d: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, d: torch.Tensor) -> torch.Tensor:
        return self.functions(d) * self.cutoff(d)[:, None]


class GaussianBasis(RadialBasis):
    def setup(self) -> None:
        mu = torch.linspace(0, self.rc, self.n)
        self.register_buffer("mu", mu)
        self.gamma = 1 / (mu[1] - mu[0]) ** 2

    def functions(self, d: torch.Tensor) -> torch.Tensor:
        return torch.exp(-self.gamma * (d[:, None] - self.mu) ** 2)


class BesselBasis(RadialBasis):
    def setup(self) -> None:
        self.freq = torch.arange(1, self.n + 1) * math.pi / self.rc

    def functions(self, d: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.outer(d, self.freq)) / d[:, None].clamp_min(1e-6)  # raises


class LaguerreBasis(RadialBasis):
    def setup(self) -> None:
        self.scales: List[nn.Parameter] = [nn.Parameter(torch.tensor([1.0 + i])) for i in range(self.n)]

    def functions(self, d: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.exp(-d[:, None] * s) for s in self.scales], -1)  # raises


class PolynomialBasis(RadialBasis):
    def setup(self) -> None:
        self.powers = torch.arange(self.n)

    def functions(self, d: torch.Tensor) -> torch.Tensor:
        return torch.stack([(d / self.rc) ** p for p in self.powers], -1)


class PaiNNLayer(nn.Module):
    def __init__(self, dim: int, basis: RadialBasis):
        super().__init__()
        self.basis = basis
        self.phi = nn.Linear(dim, 2 * dim)
        self.filt = nn.Linear(basis.n, 2 * dim)

    def forward(self, s: torch.Tensor, v: Optional[torch.Tensor], g: Graph) -> Tuple[torch.Tensor, torch.Tensor]:
        a, b = (self.phi(s)[g.src] * self.filt(self.basis(g.dist))).chunk(2, -1)
        msg = b[:, :, None] * F.normalize(g.vec, dim=-1)[:, None]
        base = 0 if v is None else v
        return s + scatter(a, g.dst, len(s)), base + scatter(msg, g.dst, len(s))


class Readout(nn.Module):
    ATOM_REF: Dict[int, float] = {1: -0.5, 6: -37.8, 7: -54.5, 8: -75.0}

    def __init__(self, dim: int):
        super().__init__()
        self.out = nn.Linear(dim, 1)
        ref = torch.zeros(max(self.ATOM_REF) + 1, 1)
        for k, e in self.ATOM_REF.items():
            ref[k] = e
        self.ref = nn.Embedding.from_pretrained(ref)
        self.mean_std = {"mean": torch.zeros(1), "std": torch.ones(1)}

    def forward(self, s: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return (self.out(s) + self.ref(z)).sum()

    def standardized(self, s: torch.Tensor) -> torch.Tensor:
        return self.out(s) * self.mean_std["std"] + self.mean_std["mean"]  # raises


class Potential(nn.Module):
    def __init__(self, dim: int = 8, basis: Callable[..., RadialBasis] = GaussianBasis, depth: int = 2):
        super().__init__()
        self.embed = nn.Embedding(10, dim)
        self.layers = nn.ModuleList(PaiNNLayer(dim, basis()) for _ in range(depth))
        self.readout = Readout(dim)

    def features(self, pos: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        g, s, v = radius_graph(pos, 4.0), self.embed(z), None
        for layer in self.layers:
            s, v = layer(s, v, g)
        return s

    def energy(self, pos: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return self.readout(self.features(pos, z), z)

    def forces(self, pos: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        pos = pos.detach().requires_grad_()
        return -torch.autograd.grad(self.energy(pos, z), pos)[0]


def langevin(model: Potential, pos: torch.Tensor, z: torch.Tensor, steps: int = 2, dt: float = 1e-3,
             generator: Optional[torch.Generator] = None) -> torch.Tensor:
    gen = generator or torch.Generator().manual_seed(0)
    for _ in range(steps):
        kick = torch.randn(pos.shape, generator=gen).to(pos)
        pos = pos + dt * model.forces(pos, z) + math.sqrt(2 * dt) * kick
    return pos
