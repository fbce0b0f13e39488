"""Calls each function of kept_by_device as its users do."""
import kept_by_device as K
import torch

GPU, OTHER = "cuda:0", "cuda:1"


def on_both(function):
    """A caller with a replica on each GPU."""
    for device in (GPU, OTHER):
        function(torch.rand(4, device=device))


def gate(top):
    for device in (GPU, OTHER):
        K.Gate(top).to(device)(torch.rand(4, 4, device=device))


def sorting(order):
    module = K.Sorting()
    module.order = order
    on_both(module)


CALLS = {
    "drawn": lambda: on_both(K.drawn),
    "ranked": lambda: on_both(K.ranked),
    "weighed": lambda: on_both(K.weighed),
    "gate": lambda: gate(1),
    "gate_ranked": lambda: gate(2),
    "weighing": lambda: on_both(K.Weighing()),
    "sorting": lambda: sorting("drawn"),
    "sorting_kept": lambda: sorting("kept"),
}
