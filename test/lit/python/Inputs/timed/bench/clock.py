import torch

from layers.attending import Attending


def time_attending(timer):
    attending = Attending()
    x = torch.rand(2, 3)

    def once(x):
        return attending(x)

    return timer("once(x)", {"x": x, "once": once})
