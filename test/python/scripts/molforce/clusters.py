"""Clusters of two kinds of atoms that feel a Morse potential; a batch is one graph of many pieces."""
import torch
from torch.utils.data import Dataset

DEPTH = torch.tensor([[0.4, 0.7], [0.7, 1.0]])
ATOM_ENERGY = torch.tensor([-1.2, -3.4])


def morse(positions, kinds, alpha=1.4, rest=1.1):
    i, j = torch.triu_indices(len(kinds), len(kinds), offset=1)
    gap = (positions[i] - positions[j]).norm(dim=1)
    depth = DEPTH[kinds[i], kinds[j]]
    return (depth * ((1 - torch.exp(-alpha * (gap - rest))) ** 2 - 1)).sum() + ATOM_ENERGY[kinds].sum()


class Clusters(Dataset):
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            atoms = int(torch.randint(3, 6, (1,), generator=g))
            kinds = torch.randint(2, (atoms,), generator=g)
            positions = (torch.rand(atoms, 3, generator=g) * 2.2).requires_grad_()
            energy = morse(positions, kinds)
            force, = torch.autograd.grad(-energy, positions)
            self.items.append((positions.detach(), kinds, energy.detach(), force))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Graph:
    FIELDS = ('positions', 'kinds', 'owner', 'edges', 'energy', 'force')

    def __init__(self, positions, kinds, owner, edges, energy, force):
        self.positions, self.kinds, self.owner = positions, kinds, owner
        self.edges, self.energy, self.force = edges, energy, force

    def to(self, device):
        return Graph(*(getattr(self, name).to(device) for name in self.FIELDS))

    @property
    def count(self):
        return len(self.energy)


def all_pairs(owner):
    same = owner[:, None] == owner[None]
    same.fill_diagonal_(False)
    return same.nonzero().t()


def collate(items):
    positions, kinds, energy, force = zip(*items)
    owner = torch.repeat_interleave(torch.arange(len(items)), torch.tensor([len(k) for k in kinds]))
    return Graph(torch.cat(positions), torch.cat(kinds), owner, all_pairs(owner), torch.stack(energy),
                 torch.cat(force))
