"""Current devices, match, decorators, special methods, named tuples, reflection."""
import collections
import contextlib
import dataclasses
import functools
from typing import NamedTuple

import torch
from torch import nn


def _on(index):
    with torch.cuda.device(index):
        return torch.ones(3, device="cuda")


def current_device_ends_with_return():
    x = _on(1)
    return x.to("cuda") + torch.ones(3, device="cuda:0")


def current_device_of_a_block():
    with torch.cuda.device(1):
        x = torch.ones(3).cuda()
    return x + torch.ones(3, device="cuda:1")


def current_device_of_another_block():
    with torch.cuda.device(1):
        x = torch.ones(3).cuda()
    return x + torch.ones(3).cuda()  # raises


def current_device_in_a_loop():
    parts = []
    for index in range(2):
        with torch.cuda.device(index):
            if index == 0:
                continue
            parts.append(torch.ones(3, device="cuda"))
    return parts[0] + torch.ones(3, device="cuda:1")


def default_type():
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        return torch.ones(3, device="cuda") + torch.ones(3)
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")


def default_type_and_host_data():
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
    layer = nn.Linear(3, 2)
    data = torch.ones(2, 3, device="cpu")
    return layer(data)  # raises


def _place(kind):
    match kind:
        case "gpu" | "cuda":
            return torch.device("cuda")
        case ("device", index):
            return torch.device("cuda", index)
        case {"type": name}:
            return torch.device(name)
        case None:
            return torch.device("cpu")
        case str() as name if name.startswith("cuda:"):
            return torch.device(name)
        case _:
            return torch.device("cpu")


def matched_alternative():
    return torch.ones(3, device=_place("gpu")) + torch.ones(3, device="cuda")


def matched_tuple():
    return torch.ones(3, device=_place(("device", 1))) + torch.ones(3, device="cuda:1")


def matched_tuple_of_another():
    return torch.ones(3, device=_place(("device", 1))) + torch.ones(3, device="cuda:0")  # raises


def matched_mapping():
    return torch.ones(3, device=_place({"type": "cpu"})) + torch.ones(3, device="cuda")  # raises


def matched_guard():
    return torch.ones(3, device=_place("cuda:1")) + torch.ones(3, device="cuda:1")


def matched_nothing():
    return torch.ones(3, device=_place(None)) + torch.ones(3)


def _on_device_of_first(function):
    @functools.wraps(function)
    def inner(first, *others):
        return function(first, *[other.to(first.device) for other in others])

    return inner


def _as_it_is(function):
    @functools.wraps(function)
    def inner(*values):
        return function(*values)

    return inner


@_on_device_of_first
def _added(a, b):
    return a + b


@_as_it_is
def _subtracted(a, b):
    return a - b  # raises


def decorator_moves():
    return _added(torch.ones(3, device="cuda"), torch.ones(3))


def decorator_passes_on():
    return _subtracted(torch.ones(3, device="cuda"), torch.ones(3))


class _Vector:
    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return _Vector(self.data + other.data)  # raises

    def __getitem__(self, index):
        return self.data[index]

    def __iter__(self):
        yield self.data
        yield self.data.cpu()

    @property
    def moved(self):
        return type(self)(self.data.cuda())


def operator_of_a_class():
    return _Vector(torch.ones(3)).moved + _Vector(torch.ones(3))


def operator_of_a_class_on_one_device():
    return (_Vector(torch.ones(3)).moved + _Vector(torch.ones(3)).moved)[0]


def iteration_of_a_class():
    on_gpu, on_host = _Vector(torch.ones(3, device="cuda"))
    return on_host + torch.ones(3), on_gpu + torch.ones(3, device="cuda")


def iteration_of_a_class_mixed():
    on_gpu, on_host = _Vector(torch.ones(3, device="cuda"))
    return on_gpu + on_host  # raises


class _Bag:
    def __init__(self, **tensors):
        self.__dict__.update(tensors)

    def to(self, device):
        for name, value in vars(self).items():
            if hasattr(value, "to"):
                setattr(self, name, value.to(device))
        return self


def attributes_are_moved():
    bag = _Bag(x=torch.ones(3), n=3)
    bag.to("cuda")
    return bag.x + torch.ones(bag.n, device="cuda")


class _Lazy:
    def __init__(self, fields):
        super().__setattr__("fields", fields)

    def __getattr__(self, name):
        return self.fields[name]

    def __setattr__(self, name, value):
        self.fields[name] = value


def attributes_from_a_dictionary():
    lazy = _Lazy({"x": torch.ones(3)})
    lazy.y = torch.ones(3, device="cuda")
    return lazy.x + lazy.y  # raises


_Pair = collections.namedtuple("_Pair", "left right")


class _Batch(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor

    def to(self, device):
        return _Batch(*(each.to(device) for each in self))


@dataclasses.dataclass
class _Item:
    x: torch.Tensor
    y: torch.Tensor

    def to(self, device):
        return dataclasses.replace(self, **{each.name: getattr(self, each.name).to(device) for each in dataclasses.fields(self)})


def named_tuple():
    pair = _Pair(torch.ones(3), right=torch.ones(3, device="cuda"))
    return pair.left + pair.right  # raises


def named_tuple_moved():
    batch = _Batch(torch.ones(3), torch.ones(3)).to("cuda")
    return batch.x + batch[1] + torch.ones(3, device="cuda")


def named_tuple_move_discarded():
    batch = _Batch(torch.ones(3), torch.ones(3))
    batch.to("cuda")
    return batch.x + torch.ones(3, device="cuda")  # raises


def dataclass_moved():
    item = _Item(torch.ones(3), torch.ones(3)).to("cuda")
    return item.x + item.y + torch.ones(3, device="cuda")


def dataclass_moved_in_part():
    item = dataclasses.replace(_Item(torch.ones(3), torch.ones(3)), x=torch.ones(3, device="cuda"))
    return item.x + item.y  # raises


def hooks_of_layers():
    kept = {}

    def keep(name, module, inputs, output):
        kept[name] = output.detach().cpu()

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).cuda()
    net[1].register_forward_hook(functools.partial(keep, "relu"))
    out = net(torch.ones(2, 3, device="cuda"))
    return out * kept["relu"]  # raises


def hooks_before_layers():
    net = nn.Sequential(nn.Linear(3, 3).cuda(0), nn.Linear(3, 3).cuda(1))
    for index, layer in enumerate(net):
        layer.register_forward_pre_hook(lambda module, inputs, index=index: (inputs[0].to(f"cuda:{index}"),))
    return net(torch.ones(2, 3)) + torch.ones(3, device="cuda:1")


def hooks_that_are_removed():
    net = nn.Linear(3, 3).cuda()
    handle = net.register_forward_pre_hook(lambda module, inputs: (inputs[0].cuda(),))
    net(torch.ones(2, 3))
    handle.remove()
    return net(torch.ones(2, 3))  # raises


def parameters_in_a_list():
    class Scales(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])

        def forward(self, x):
            for scale in self.scales:
                x = x * scale
            return x * self.scales[0]

    return Scales().cuda()(torch.ones(3, device="cuda"))


def module_moved_to_a_tensor():
    x = torch.ones(2, 3, device="cuda")
    return nn.Linear(3, 3).to(x)(x)


def state_of_a_module_to_numpy():
    net = nn.Linear(3, 3).cuda()
    return {name: value.numpy() for name, value in net.state_dict().items()}  # raises


class _Momentum(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {"velocity": torch.zeros_like(p)}

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["velocity"].mul_(0.9).add_(p.grad)  # raises


def optimizer_before_the_move():
    net = nn.Linear(3, 3)
    optimizer = _Momentum(net.parameters())
    net.cuda()
    net(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()


def optimizer_behind_the_move():
    net = nn.Linear(3, 3).cuda()
    optimizer = _Momentum(net.parameters())
    net(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()


@contextlib.contextmanager
def _nothing():
    yield


def manager_of_the_project():
    with _nothing():
        x = torch.ones(3, device="cuda")
    return x + torch.ones(3)  # raises


class Lazy:
    """finds every attribute, but a call asks the class"""

    def __getattr__(self, name):
        return Lazy()


def called_with_all_attributes():
    with contextlib.suppress(TypeError):
        Lazy()(torch.ones(2))
    return torch.ones(2).cuda() + torch.ones(2)  # raises
