import torch

import own_moves as M

GPU = "cuda:1"


def x():
    return torch.ones(3, device=GPU)


def cached():
    cache = M.Cache()
    cache(torch.ones(3, device="cuda:0"))
    return cache(x())


CALLS = {
    "to": lambda: M.ByTo(3).to(GPU)(x()),
    "to_forgotten": lambda: M.ByTo(3).to(GPU).forgotten(x()),
    "apply": lambda: M.ByApply(3).to(GPU)(x()),
    "apply_forgotten": lambda: M.ByApply(3).to(GPU).forgotten(x()),
    "place": lambda: M.ByPlace(3).place(GPU)(x()),
    "teacher": lambda: M.Teacher(3).to(GPU)(x()),
    "cached": cached,
    "weighted": lambda: M.weighted({"a": torch.ones(2, device=GPU)}),
}
