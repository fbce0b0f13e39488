import torch
from moldyn import *  # noqa: F401,F403

D = torch.device("cuda:0")


def system(count=4, cell=True):
    grid = torch.cartesian_prod(*[torch.arange(2.0)] * 3)[:count] * 1.2 + 0.1
    made = System.from_symbols("HCNOHHCO"[:count], grid, cell=torch.eye(3) * 3 if cell else None)
    return made.to(D)


def vectors(n=5):
    return torch.randn(n, 3, device=D)


def basis(name):
    return BASES[name](5, 3.0).to(D)(torch.rand(6, device=D) + 0.1)


def model(pairs, name="gaussian"):
    return AtomwiseModel(pairs(2.5), BASES[name](5, 2.5)).to(D)


def run(hook=None, epsilon=None):
    s = system(cell=False)
    potential = LennardJones(OpenPairs(3.0, 0.5), epsilon).to(D)
    return Integrator(potential, hooks=[hook] if hook else None).run(s, torch.zeros_like(s.positions))


def recorded(rdf):
    r = Recorder()
    run(r)
    return r.rdf(torch.ones(8, device=D)) if rdf else (r.msd(), r.rdf(torch.tensor(4.0, device=D).cpu()))


def references():
    m = model(OpenPairs)
    n = system().numbers
    return m.reference(n), m.reference(n, torch.tensor([0, 0, 1, 1], device=D))


CALLS = {
    "geometry": lambda: (system().center_of_mass, system().fractional(), system().supercell((2, 1, 1)).masses),
    "wrapped": lambda: system().wrapped(),
    "inertia": lambda: system().inertia(),
    "minimum_image": lambda: minimum_image(vectors() * 3, system().cell),
    "open": lambda: OpenPairs(2.0)(system()),
    "periodic": lambda: PeriodicPairs(2.0)(system()),
    "hashed": lambda: HashedPairs(2.0)(system()),
    "hash_key": lambda: HashedPairs(2.0).key(system().positions),
    "degrees": lambda: degrees(OpenPairs(2.0)(system())[0], 4),
    "gaussian": lambda: basis("gaussian"),
    "bessel": lambda: basis("bessel"),
    "chebyshev": lambda: basis("chebyshev"),
    "spline": lambda: basis("spline"),
    "harmonics": lambda: (lambda h: h.power(h(vectors())))(Harmonics().to(D)),
    "harmonics_table": lambda: Harmonics(closed=False).to(D)(vectors()),
    "harmonics_low": lambda: Harmonics(1, closed=False).to(D)(vectors()),
    "atomwise": lambda: model(OpenPairs).forces(system(cell=False)),
    "atomwise_hashed": lambda: model(HashedPairs, "chebyshev").forces(system()),
    "reference": references,
    "ewald": lambda: EwaldSum().energy(system(), vectors(4)[:, 0]),
    "ewald_host": lambda: EwaldSum().energy(system(), vectors(4)[:, 0], on_host=True),
    "verlet": run,
    "verlet_depth": lambda: run(epsilon={6: 0.5}),
    "langevin": lambda: run(Langevin(300.0)),
    "langevin_seed": lambda: run(Langevin(300.0, seed=1)),
    "nose_hoover": lambda: run(NoseHoover(300.0)),
    "msd": lambda: recorded(False),
    "rdf": lambda: recorded(True),
}
