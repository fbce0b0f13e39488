import torch
from torch import nn

from hook_functions import *  # noqa: F401,F403


def ran(hook):
    layer = nn.Linear(3, 3).to("cuda")
    hook(layer)
    return layer(torch.ones(2, 3, device="cuda"))


def learnt(freeze):
    embedding = nn.Embedding(4, 3).to("cuda")
    freeze(embedding, [1])
    embedding(torch.tensor([0, 1], device="cuda")).sum().backward()


CALLS = {
    "shift_outputs": lambda: ran(lambda layer: shift_outputs(layer, 3)),
    "shift_outputs_there": lambda: ran(lambda layer: shift_outputs_there(layer, 3)),
    "frozen": lambda: learnt(FrozenRows),
    "frozen_there": lambda: learnt(FrozenRowsThere),
    "recorder": lambda: ran(lambda layer: Recorder({"a": layer}, 3)),
    "scale": lambda: ran(lambda layer: scale(layer, 2.0)),
    "scale_after": lambda: ran(lambda layer: scale_after(layer, 3)),
    "keep_first": lambda: ran(keep_first),
    "module_of": lambda: module_of(nn.Linear(3, 3).to("cuda")),
}
