import contextlib
from contextlib import contextmanager

import torch
import torch.nn as nn

PLACE = {"device": "cpu"}


@contextmanager
def placed(device):
    before = PLACE["device"]
    PLACE["device"] = device
    try:
        yield torch.device(device)
    finally:
        PLACE["device"] = before


@contextlib.contextmanager
def lent(module, device):
    home = next(module.parameters()).device
    module.to(device)
    yield module
    module.to(home)


@contextmanager
def current(index):
    with torch.cuda.device(index):
        yield


@contextmanager
def quiet():
    with torch.no_grad():
        try:
            yield
        except ValueError:
            print("no value")


class Bank:
    def __init__(self, net):
        self.net, self.spare = net, None

    @contextmanager
    def swapped(self, other):
        self.spare, self.net = self.net, other
        yield self
        self.net, self.spare = self.spare, None


def ones(*shape):
    return torch.ones(*shape, device=PLACE["device"])


def case_made_inside():
    with placed("cuda:1"):
        x = ones(2)
    return x + torch.ones(2, device="cuda:1")


def case_made_behind():
    with placed("cuda:1"):
        pass
    return ones(2) + torch.ones(2, device="cuda:1")  # raises


def case_device_that_is_given():
    with placed("cuda:0") as device:
        net = nn.Linear(2, 2).to(device)
    return net(ones(1, 2))  # raises


def case_lent_and_used_there():
    net = nn.Linear(2, 2)
    with lent(net, "cuda:0") as there:
        y = there(torch.ones(1, 2, device="cuda:0"))
    return y, net(torch.ones(1, 2))


def case_lent_and_used_behind():
    net = nn.Linear(2, 2)
    with lent(net, "cuda:0"):
        pass
    return net(torch.ones(1, 2, device="cuda:0"))  # raises


def case_current_device_inside():
    with current(1):
        x = torch.ones(2).cuda()
    return x + torch.ones(2, device="cuda:1")


def case_current_device_behind():
    with current(1):
        pass
    return torch.ones(2).cuda() + torch.ones(2, device="cuda:1")  # raises


def inside(bank, x):
    with bank.swapped(nn.Linear(2, 2).cuda()) as other, quiet():
        return other.net(x)


def case_swapped_and_left():
    bank = Bank(nn.Linear(2, 2))
    inside(bank, torch.ones(1, 2, device="cuda"))
    return bank.net(torch.ones(1, 2))


def case_swapped_and_left_elsewhere():
    bank = Bank(nn.Linear(2, 2))
    inside(bank, torch.ones(1, 2, device="cuda"))
    return bank.net(torch.ones(1, 2, device="cuda"))  # raises
