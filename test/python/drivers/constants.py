import torch

import constants


def x(*shape):
    return torch.ones(*shape, device="cuda:0")


CALLS = {
    "centre": lambda: constants.centre(x(2, 3), x(2).long()),
    "fractions": lambda: constants.fractions(x(2).long()),
    "shifted": lambda: constants.shifted(x(2, 3)),
    "scaled": lambda: constants.scaled(x(2, 3)),
    "scaled_there": lambda: constants.scaled_there(x(2, 3)),
    "scaled_by_one": lambda: constants.scaled_by_one(x(2, 3)),
    "weighted": lambda: constants.weighted(x(3), [1.0, 2.0, 3.0]),
}
