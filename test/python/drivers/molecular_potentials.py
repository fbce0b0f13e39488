from molecular_potentials import *

dev = torch.device("cuda:0")
CELL = [[6.0, 0, 0], [0, 6.0, 0], [0, 0.5, 6.0]]
mols = Molecules(torch.tensor([8, 1, 1, 6, 8]), torch.rand(5, 3) * 3, torch.tensor([0, 0, 0, 1, 1])).to(dev)


def model(basis=BesselBasis, **kwargs):
    return Potential(basis(), **kwargs).to(dev)


def offloaded(runs):
    potential = model()
    potential.neighbours = OffloadedNeighbourList(5.0)
    return [potential(mols) for _ in range(runs)]


def ensemble():
    return Ensemble([model(), model()]).distribute(["cuda:0", "cuda:1"])


def meter(kind):
    metric = kind()
    for _ in range(2):
        metric.update(model()(mols).detach(), torch.zeros(2, device=dev))
    return (metric.total / metric.count).item()


CALLS = {
    "wrap": lambda: Cell(CELL).wrap(mols.pos),
    "minimum_image": lambda: Cell(CELL).minimum_image(mols.pos[1:] - mols.pos[:-1]),
    "density": lambda: Cell(CELL).density(VelocityVerlet(model()).masses(mols.z)),
    "bessel": lambda: model()(mols),
    "gauss": lambda: model(GaussianBasis)(mols),
    "gauss_trainable": lambda: model(lambda: GaussianBasis(trainable=True), mean=-3.0, std=2.0)(mols),
    "refs": lambda: model(atomrefs={1: -0.5, 8: -75.0})(mols),
    "twice": lambda: (lambda m: [m(mols), m(mols)])(model()),
    "offloaded": lambda: offloaded(1),
    "offloaded_twice": lambda: offloaded(2),
    "lattice": lambda: LennardJones().to(dev).pair_energy(mols.pos, lattice_pairs(mols.pos, 2.0)),
    "lj": lambda: LennardJones().to(dev)(mols.pos),
    "lj_per_atom": lambda: LennardJones().to(dev).per_atom(mols.pos),
    "ensemble": lambda: ensemble()(mols),
    "disagreement": lambda: ensemble().disagreement(mols),
    "verlet": lambda: VelocityVerlet(model()).run(mols, 2),
    "langevin": lambda: Langevin(model()).run(mols, 2),
    "mae": lambda: meter(RunningMAE),
    "rmse": lambda: meter(RunningRMSE),
}
