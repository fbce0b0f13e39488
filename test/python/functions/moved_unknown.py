"""What is moved or loaded is there, whatever it is; what an object keeps that was moved may be anywhere."""
import os
import pickle
import tempfile
from functools import wraps

import torch
import torch.nn as nn


def _through(value):
    return pickle.loads(pickle.dumps(value))


class Session:
    def __init__(self):
        self.weights, self.steps = torch.ones(3), torch.arange(3)

    def to(self, device):
        self.weights = self.weights.to(device)
        return self


def on_device(function):
    @wraps(function)
    def inner(self, *args):
        return function(self, *(each.to(self.device) for each in args))

    return inner


class Scaler:
    def __init__(self, device):
        self.device = torch.device(device)
        self.scale = torch.ones(3, device=self.device)

    @on_device
    def plain(self, x):
        return x * self.scale

    @on_device
    @torch.no_grad()
    def quiet(self, x):
        return x * self.scale

    @torch.no_grad()
    def alone(self, x):
        return x * self.scale  # raises


def case_moved():
    return _through(torch.ones(3)).to("cuda") + torch.ones(3)  # raises


def case_entry():
    batch = _through({"x": torch.ones(3), "y": torch.ones(3)})
    x, y = batch["x"].cuda(), batch["y"]
    return x.exp() * torch.ones(3), y  # raises


def case_both():
    x, y = _through([torch.ones(3), torch.ones(3)])
    return x.cuda() + y.to("cuda")


def case_model():
    return _through(nn.Linear(3, 3)).to("cuda")(torch.ones(3, device="cuda"))


def case_attribute():
    return _through(Session()).to("cuda").steps + torch.ones(3)


def case_loaded():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save({"x": torch.ones(3)}, path)
        state = torch.load(_through(path), map_location="cuda")
        return state["x"].exp() + torch.ones(3)  # raises


def case_gpu_by_number():
    last = torch.cuda.device_count() - 1
    return torch.ones(3).to(f"cuda:{last}") + torch.ones(3)  # raises


def case_decorated():
    return Scaler("cuda:1").plain(torch.ones(3))


def case_decorated_twice():
    return Scaler("cuda:1").quiet(torch.ones(3))


def case_undecorated():
    return Scaler("cuda:1").alone(torch.ones(3))


def case_hung_on_parameters():
    net, total = nn.Linear(3, 3).cuda(), 0
    for parameter in net.parameters():
        parameter.seen, parameter.anchor = torch.zeros_like(parameter), torch.ones(3)
    for parameter in net.parameters():
        total = total + (parameter * parameter.seen).sum()
    for parameter in net.parameters():
        total = total + (parameter - parameter.anchor).sum()  # raises
    return total


def case_eager_state():
    net = nn.Linear(3, 3)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.1)
    net.cuda()
    net(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()  # raises


def case_later_state():
    net = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net.cuda()
    net(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()


def _parts():
    return {"z": torch.ones(3, device="cuda"), "a": torch.ones(3)}


def _plus(on_gpu, on_cpu):
    return on_gpu + torch.ones(3, device="cuda"), on_cpu + torch.ones(3)


def case_order_of_a_dictionary():
    first = next(iter(_parts().values()))
    x, y = _parts().values()
    late = dict(on_gpu=x)
    late["before"] = y
    return first + x, tuple(_parts().values())[1] + y, _plus(*_parts().values()), _plus(*late.values())


def case_other_order_of_a_dictionary():
    x, y, z = {**_parts(), "b": torch.ones(3)}.values()
    return y + torch.ones(3, device="cuda")  # raises
