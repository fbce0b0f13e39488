"""Settings under names that are not known, and what the program does know of lists, texts, devices and files."""
import os
import tempfile
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

SETTINGS = "SETTINGS_OF_CASE"  # an environment variable that nobody sets


@dataclass
class Part:
    rate: float = 0.1
    mirrored: bool = False


@dataclass
class Config:
    part: Part = field(default_factory=Part)
    doubled: bool = False


def _chosen(given):
    config = Config()
    for item in os.environ.get(SETTINGS, given).split(","):
        path, value = item.split("=", 1)
        *parents, leaf = path.split(".")
        target = config
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, leaf, type(getattr(target, leaf))(int(value)))
    return config


def case_setting_chosen():
    config = _chosen("doubled=1")
    x = torch.ones(3, device="cuda")
    return (x * torch.ones(3)).sum().item() if config.doubled else x.sum().item()  # raises


def case_setting_of_part_chosen():
    config = _chosen("part.mirrored=1")
    x = torch.ones(3, device="cuda")
    if config.part.mirrored:
        x = x - torch.arange(3)  # raises
    return x.sum().item()


class Sampler:
    def ancestral(self, model, x):
        return model(x)

    def direct(self, model, x):
        return model(torch.ones(2, 3))  # raises


def case_method_chosen():
    model = nn.Linear(3, 3).to("cuda")
    method = getattr(Sampler(), os.environ.get(SETTINGS, "direct"))
    return method(model, torch.ones(2, 3, device="cuda"))


def _scaled(x, method):
    if method == "scale":
        x = x.to("cuda")
    if method == "shift":
        x = x.cpu() + torch.ones(3)
    if method == "scale":
        x = x * torch.ones(3, device="cuda")
    return x


def case_one_text_is_no_other():
    return _scaled(torch.ones(3), os.environ.get(SETTINGS, "scale")).sum().item()


class Aligned:
    def __call__(self, module, inputs):
        device = next(module.parameters()).device
        return tuple(each.to(device) for each in inputs)


def case_hooks_of_starred_layers():
    layers = nn.ModuleList(nn.Linear(3, 3).to(f"cuda:{number}") for number in range(2))
    head = nn.Linear(3, 3).to("cuda:1")
    for module in (*layers, head):
        module.register_forward_pre_hook(Aligned())
    x = torch.ones(2, 3)
    for layer in layers:
        x = layer(x)
    return head(x).sum().item()


Graph = namedtuple("Graph", "x edges train test")


def _graph():
    masks = []
    for part in torch.randperm(6).split([4, 2]):
        mask = torch.zeros(6, dtype=torch.bool)
        mask[part] = True
        masks.append(mask)
    return Graph(torch.ones(6, 3), torch.zeros(2, 5, dtype=torch.long), *masks)


def case_values_before_a_star():
    graph = _graph()
    return torch.ones(6)[graph.edges.to("cuda")[0]].sum().item()  # raises


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"rate": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "slow" not in state:
                    state["slow"] = parameter.detach().clone()
                state["slow"].lerp_(parameter, group["rate"])


def case_state_of_parameters_on_two_gpus():
    layers = nn.ModuleList([nn.Linear(2, 2).to("cuda:0"), nn.Linear(2, 2).to("cuda:1")])
    optimizer = Momentum(layers.parameters())
    optimizer.step()
    optimizer.step()


class Sigmas:
    def __init__(self, count, device=None):
        self.values = torch.from_numpy(np.linspace(0, 1, count).round(2).astype(np.float32)).to(device)

    def at(self, sample):
        return sample * self.values.view(-1, 1)  # raises


def case_moved_to_what_is_left_out():
    return Sigmas(3).at(torch.ones(3, 2, device="cuda"))


def case_steps_are_numbers():
    x = torch.ones(3, device="cuda")
    for step in torch.from_numpy(np.linspace(0, 1, 3).astype(np.float32)):
        if step.ndim == 0:
            step = step[None].to(x.device)
        x = x * step
    return x.sum().item()


def case_device_without_index():
    wanted = torch.device("cuda")
    weight, x = torch.ones(3, device=wanted), torch.arange(3.0)
    if weight.device != wanted:
        x = x.to(wanted)
    return (x * weight).sum().item()


def case_sparse_where_it_is_told_to_be():
    at = torch.arange(3)
    adjacency = torch.sparse_coo_tensor(torch.stack([at, at]), torch.ones(3), (3, 3), device="cuda")
    return torch.sparse.mm(adjacency, torch.ones(3, 2, device="cuda")).sum().item()


def case_rotated():
    rotation = torch.linalg.qr(torch.randn(3, 3)).Q
    return torch.ones(2, 3, device="cuda") @ rotation  # raises


class Head:
    def __init__(self, scale):
        self.scale = scale

    def save(self, path):
        torch.save({"scale": self.scale.cpu()}, path)

    @classmethod
    def load(cls, path):
        return cls(torch.load(path)["scale"])

    def __call__(self, x):
        return x * self.scale  # raises


def case_loaded_from_a_folder():
    x = torch.ones(3, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "head.pt")
        Head(x * 2).save(path)
        return Head.load(path)(x).sum().item()
