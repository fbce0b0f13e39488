"""What an unknown call gives is made of what it was given: it may be where that is."""
import torch
from accelerate import Accelerator
from torch import nn

from elsewhere import Sparse, index_of


def edges_of(adjacency):
    if isinstance(adjacency, Sparse):
        row, col = adjacency.parts()
        return torch.stack([row, col]), torch.ones(row.size(0), device=row.device)
    row = index_of(adjacency.crow_indices())
    col = adjacency.col_indices()
    return torch.stack([row, col]), adjacency.values()


class Graphs:
    def process(self):
        return edges_of(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))


def prepare_once(x):
    """What the object of a library has is there each time it is asked."""
    accelerator = Accelerator()
    model = nn.Linear(3, 3)
    if getattr(accelerator.state, "fsdp_plugin", None) is not None:
        model = accelerator.prepare(model)
    if getattr(accelerator.state, "fsdp_plugin", None) is None:
        model, x = accelerator.prepare(model, x)
    return model(torch.ones(3, device=accelerator.device)), x


def move_by_length(options):
    model = nn.Linear(3, 3)
    if len(options.gpus) > 0:
        model = model.cuda()
    if len(options.gpus) == 0:
        model = model.to("cuda:0")
    return model(torch.ones(3, device="cuda"))
