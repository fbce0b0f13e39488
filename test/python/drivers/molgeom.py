import torch
import molgeom as M

D = torch.device("cuda:0")


def pos(n=5):
    return torch.rand(n, 3, device=D) * 3


def z():
    return torch.tensor([1, 6, 7, 8, 1], device=D)


def frames(n=4):
    return M.Rigid.from_points(pos(n), pos(n), pos(n))


def cell():
    return torch.eye(3, device=D) * 4


def energy(basis):
    return M.Potential(basis=basis).to(D).energy(pos(), z())


CALLS = {
    "invert": lambda: (frames() @ frames().invert()).apply(pos(4)),
    "identity": lambda: (M.Rigid.identity((4,), D) @ frames()).trans,
    "homogeneous": lambda: frames().to_homogeneous(),
    "padded": lambda: frames().padded(5),
    "vector": lambda: M.update_from_vector(frames(), torch.rand(4, 6, device=D)),
    "backbone": lambda: M.place_backbone(frames()),
    "atoms": lambda: M.place_atoms(frames(), ["CA", "C"]),
    "skew": lambda: M.skew(pos()),
    "rotvec": lambda: M.rotvec(pos()),
    "dihedral": lambda: M.dihedral(torch.rand(2, 4, 3, device=D)),
    "kabsch": lambda: M.kabsch(pos(), pos()),
    "rmsd": lambda: M.rmsd(pos(), pos()),
    "one_hot": lambda: M.species_one_hot(z()),
    "index": lambda: M.species_index(z()),
    "inertia": lambda: M.inertia(pos(), z()),
    "bonds": lambda: M.covalent_bonds(pos(), z()),
    "batched": lambda: M.batched_radius_graph(pos(), [2, 3], 4.0),
    "mean": lambda: M.per_graph_mean(pos(), [2, 3]),
    "periodic": lambda: M.periodic_graph(torch.rand(4, 3, device=D), cell(), 3.0).subset(slice(0, 2)).dist,
    "minimum": lambda: M.minimum_image(torch.rand(4, 3, device=D), cell()),
    "structure": lambda: M.structure_factor(pos(), cell()),
    "supercell": lambda: M.supercell(torch.rand(4, 3, device=D), cell(), (2, 1, 1)),
    "gaussian": lambda: energy(M.GaussianBasis),
    "bessel": lambda: energy(M.BesselBasis),
    "laguerre": lambda: energy(M.LaguerreBasis),
    "poly": lambda: energy(M.PolynomialBasis),
    "standardized": lambda: (lambda m: m.readout.standardized(m.features(pos(), z())))(M.Potential().to(D)),
    "langevin": lambda: M.langevin(M.Potential().to(D), pos(), z()),
}
