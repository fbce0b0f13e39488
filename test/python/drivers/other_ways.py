import torch
from other_ways import *

D = "cuda"


def boxes():
    return Boxes(torch.rand(3, 4), torch.rand(3), torch.arange(3)).to(D)


def sample():
    return Sample(torch.rand(4, 3), torch.zeros(2), torch.tensor([0, 0, 1, 1])).to(D)


CALLS = {
    "framed": lambda: framed(torch.rand(8, device=D), 4),
    "framed on the host": lambda: framed(torch.rand(8), 4),
    "framed there": lambda: Framed(4).to(D)(torch.rand(8, device=D)),
    "loops": lambda: with_loops(torch.zeros(2, 3, dtype=torch.long, device=D), torch.rand(3, device=D)),
    "looped": lambda: Looped()(torch.rand(4, 2, device=D), torch.zeros(2, 3, dtype=torch.long, device=D)),
    "normalised": lambda: normalised(torch.rand(3, device=D), torch.rand(3), True),
    "weighted": lambda: boxes().weighted(),
    "of": lambda: boxes().of(1),
    "offsets": lambda: offsets(boxes()),
    "areas": lambda: areas(boxes()),
    "pooled": lambda: Pooled(3).to(D)(sample()),
    "whole": lambda: Whole(torch.rand(3), torch.rand(3)).to(D).product(),
}
