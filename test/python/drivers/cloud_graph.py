import torch
from cloud_graph import *

D = "cuda"
P = lambda n=6: torch.rand(n, 3, device=D)
E = lambda: torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]], device=D)
X = lambda: torch.rand(5, 4, device=D)
B = lambda: torch.tensor([0, 0, 1, 1, 1], device=D)


def layer(cls=Layer, *a, train=True, **o):
    return cls(4, *a, **o).to(D).train(train)(X(), E())


def code(name):
    m = Codebook(5, 4).to(D)
    m.follow(X())
    m.restart()
    m.perplexity(m(X())[1])
    if name:
        getattr(m, name)(X())


def lap():
    g = Laplacian(E(), 5)
    return g.smoothness(X()), g.smoothness(X()), g.with_positions(X())


R = lambda: Readout(4).to(D)
CALLS = {
    "edges": lambda: edges_of(neighbours(P(), 2)),
    "edges loops": lambda: edges_with_loops(neighbours(P(), 2)),
    "thinned": lambda: thinned(P(), 3),
    "thinned features": lambda: thinned(P(), 3, P()),
    "grouped": lambda: grouped(P(), P(2), 0.5, 3),
    "keys": lambda: voxel_keys(P(), 0.3),
    "mean": lambda: voxel_mean(P(), 0.3),
    "first": lambda: voxel_first(P(), 0.3),
    "sum": layer,
    "mean layer": lambda: layer(aggregate="mean"),
    "softmax": lambda: layer(aggregate="softmax"),
    "scaled": lambda: layer(aggregate="scaled"),
    "drop": lambda: layer(DropLayer),
    "drop eval": lambda: layer(DropLayer, train=False),
    "drop edges": lambda: layer(DropEdges),
    "relational": lambda: layer(Relational, 2),
    "relational scaled": lambda: Relational(4, 2).to(D).scaled(X(), 1),
    "laplacian": lap,
    "powers": lambda: list(Laplacian(E(), 5).powers(X(), 2)),
    "readout": lambda: (R()(X(), B()), R().largest(X(), B()), R().split(X(), B()), R().spread(X(), B()), R().bands(X())),
    "average": lambda: R().average(X(), B()),
    "turned": lambda: turned(P(), 0.3, "x"),
    "turned each": lambda: turned_each(torch.rand(2, 6, 3, device=D), torch.rand(2, device=D)),
    "corners": lambda: box_corners(P(2), P(2)),
    "inside": lambda: inside(P(), P(1), P(1)),
    "jitter": lambda: Compose(Jitter(), Jitter().shuffled)(P()),
    "jitter there": lambda: Jitter(generator=torch.Generator(D))(P()),
    "code": lambda: code(None),
    "revive": lambda: code("revive"),
    "packed": lambda: packed([P(), P()]),
    "joined": lambda: joined([P(), P()]),
    "chamfer": lambda: truncated_chamfer(P(), P(4)),
}
