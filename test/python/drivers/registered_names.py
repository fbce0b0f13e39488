import torch

import registered_names as r


def lookup():
    return r.Lookup().to("cuda:0")


def features():
    return [torch.ones(1, 4, device="cuda:0") for _ in range(2)]


CALLS = {
    "forward": lambda: lookup()(features()),
    "shifted": lambda: lookup().shifted(features()),
    "weighted": lambda: lookup().weighted(torch.ones(2, 4, device="cuda:0")),
    "biased": lambda: lookup().biased(torch.ones(2, 4, device="cuda:0")),
}
