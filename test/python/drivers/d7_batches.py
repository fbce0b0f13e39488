import types

import torch
import l7_batches as m

D = "cuda:0"
X = lambda *s: torch.rand(*s, device=D)
EDGES = lambda: torch.tensor([[0, 1, 1], [2, 2, 0]], device=D)
RECORD = lambda: types.SimpleNamespace(position=X(4, 3))
CALLS = {
    "degrees": lambda: m.degrees(EDGES(), 3),
    "degrees_there": lambda: m.degrees_there(EDGES(), 3),
    "centred": lambda: m.centred({"points": X(4, 3)}),
    "centred_there": lambda: m.centred_there({"points": X(4, 3)}),
    "Turn": lambda: m.Turn()(RECORD()),
    "TurnThere": lambda: m.TurnThere()(RECORD()),
    "replaced": lambda: m.replaced({"mask": X(3)}),
    "tasks_of": lambda: m.tasks_of(torch.tensor([0, 1], device=D)),
    "first_of_each": lambda: m.first_of_each(torch.tensor([[0, 1], [0, 1], [2, 3]], device=D)),
    "joined": lambda: m.joined([X(2), X(3)]),
    "spaced": lambda: m.spaced(X(4, 2), 2),
    "pair_of": lambda: m.pair_of(X(3)),
    "scaled": lambda: (m.scaled(X(3, 4, 4), X(3)), m.scaled(X(3, 4, 4), torch.tensor(0.5))),
    "scaled_by_length": lambda: (m.scaled_by_length(X(3, 4, 4), torch.rand(3)), m.scaled_by_length(X(3, 4, 4), torch.tensor(0.5))),
    "weighted": lambda: (m.weighted(X(3)), m.weighted(X(3), X(3))),
    "between": lambda: m.between(X(3), X(3)),
    "like_the_other": lambda: m.like_the_other(X(3), X(3)),
    "Lookup": lambda: m.Lookup().to(D)(torch.tensor([1, 2], device=D)),
    "Steps": lambda: m.Steps().to(D)(torch.tensor([1, 2], device=D)),
    "variance_of": lambda: m.variance_of(types.SimpleNamespace(table=torch.rand(5)), torch.tensor([1], device=D), X(1)),
    "earlier_of": lambda: m.earlier_of(types.SimpleNamespace(table=torch.rand(5), width=2), torch.tensor([1], device=D), X(1)),
    "Offsets": lambda: m.Offsets([[0, 1], [1, 0]]).to(D)(X(2, 3)),
}
