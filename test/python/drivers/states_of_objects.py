import torch

import states_of_objects as S

D = torch.device("cuda:0")
ROWS = torch.rand(4, 3, device=D)


def begun():
    made = S.SetLater(3)
    made.begin(ROWS)
    return made


CALLS = {
    "set_later": lambda: begun().actions(),
    "set_later_there": lambda: begun().actions_there(),
    "of_the_class": lambda: S.OfTheClass().key(ROWS),
    "of_the_class_behind": lambda: S.OfTheClassBehind(2.0).bins(ROWS),
    "inertia": lambda: S.System(ROWS).inertia(),
    "inertia_there": lambda: S.System(ROWS).inertia_there(),
    "pair": lambda: S.Pair(ROWS, ROWS).weighted(),
    "difference": lambda: S.Pair(ROWS, ROWS).difference(),
    "coder": lambda: S.Coder(3).expectation(ROWS),
    "degrees": lambda: S.degrees(torch.tensor([0, 1], device=D), 2),
    "chosen": lambda: S.chosen(ROWS, torch.tensor([0, 1])),
}
