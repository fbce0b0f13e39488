from collections import defaultdict

import torch
import torch.nn as nn


class Table:
    def __init__(self):
        self.rows = {}

    def row(self, name, width):
        try:
            return self.rows[name]
        except KeyError:
            self.rows[name] = torch.zeros(width)
            return self.rows[name]


def device_of(module):
    try:
        return next(module.parameters()).device
    except StopIteration:
        return torch.device("cpu")


def checked(width):
    if width < 1:
        raise ValueError("no width")
    return torch.ones(width, device="cuda:1")


def ones(width):
    try:
        return checked(width)
    except ValueError:
        return torch.ones(1)


def first_gpu(x):
    try:
        x = x.cuda()
    except RuntimeError:
        x = x.cpu()
    return x


def case_row_made_on_the_cpu():
    return torch.ones(4, device="cuda:0") + Table().row("a", 4)  # raises


def case_row_that_was_put_there():
    table = Table()
    table.rows["a"] = torch.zeros(4, device="cuda:0")
    return torch.ones(4, device="cuda:0") + table.row("a", 4)


def case_device_of_a_module():
    net = nn.Linear(4, 2).to("cuda:1")
    return net(torch.zeros(3, 4).to(device_of(net)))


def case_device_of_a_module_without_parameters():
    x = torch.zeros(3, 4, device="cuda:1")
    return x + torch.ones(4, device=device_of(nn.ReLU()))  # raises


def case_width_that_is_refused():
    return torch.zeros(1, device="cuda:1") + ones(0)  # raises


def case_width_that_is_not():
    return torch.zeros(2, device="cuda:1") + ones(2)


def case_moved_if_it_can_be():
    return first_gpu(torch.zeros(2)) + torch.ones(2, device="cuda:0")


def case_moved_though_it_cannot_be():
    try:
        x = torch.zeros(2).to("cuda:99")
    except RuntimeError:
        x = torch.zeros(2)
    return x + torch.ones(2, device="cuda:0")  # raises


def case_parsed_index():
    try:
        index = int("first")
    except ValueError:
        index = -1
    device = "cpu" if index < 0 else f"cuda:{index}"
    return torch.ones(2, device="cuda:0") + torch.zeros(2, device=device)  # raises


def case_entries_that_are_made():
    totals = defaultdict(lambda: torch.zeros(2))
    for name in ("a", "b"):
        totals[name] += torch.ones(2)
    return totals["a"] + torch.ones(2, device="cuda:0")  # raises


def case_entries_that_are_made_where_they_belong():
    totals = defaultdict(lambda: torch.zeros(2, device="cuda:0"))
    for name in ("a", "b"):
        totals[name] += torch.ones(2, device="cuda:0")
    return totals["c"] + torch.ones(2, device="cuda:0")


def case_lists_that_are_made():
    rows = defaultdict(list)
    for name in ("a", "b", "a"):
        rows[name].append(torch.ones(2))
    stacked = torch.stack(rows["a"])
    return stacked.sum(0) + torch.ones(2, device="cuda:2")  # raises
