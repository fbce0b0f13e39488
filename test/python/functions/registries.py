"""Models and functions under names, made and moved in one expression."""
from dataclasses import dataclass
from typing import Dict

import torch
from torch import nn

MODELS: Dict[str, type] = {}
STEPS = {"double": lambda x: x * 2, "shift": lambda x: x + torch.ones(3)}  # raises


def model_of(name):
    def wrap(cls):
        MODELS[name] = cls
        return cls
    return wrap


@dataclass
class Config:
    model: str = "plain"
    device: str = "cuda"


class Base(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.build(config)

    def build(self, config):
        pass

    def forward(self, x):
        return self.fc(x)  # raises


@model_of("plain")
class Plain(Base):
    pass


@model_of("scaled")
class Scaled(Base):
    def build(self, config):
        self.scale = torch.full((3,), 0.5)

    def forward(self, x):
        return super().forward(x) * self.scale  # raises


class Runner:
    def __init__(self, **overrides):
        self.config = Config(**overrides)
        self.device = torch.device(self.config.device)
        self.model = MODELS[self.config.model](self.config).to(self.device)

    def run(self, n=2):
        return self.model(torch.rand(n, 3).to(self.device))


def case_plain():
    return Runner().run()


def case_plain_on_second_gpu():
    return Runner(device="cuda:1").run()


def case_scaled():
    return Runner(model="scaled").run()


def case_scaled_on_host():
    return Runner(model="scaled", device="cpu").run()


def case_inputs_left_behind():
    model = MODELS["plain"](Config()).to("cuda")
    return model(torch.rand(2, 3)).sum()


def case_labels_left_behind():
    model = MODELS["plain"](Config()).to("cuda")
    return nn.functional.mse_loss(model(torch.rand(2, 3).to("cuda")), torch.zeros(2, 3))  # raises


def case_step_by_name():
    return STEPS["shift"](torch.rand(3, device="cuda"))


def case_other_step_by_name():
    return STEPS["double"](torch.rand(3, device="cuda"))


def case_methods_as_functions():
    parts = list(map(torch.Tensor.cpu, [torch.rand(3, device="cuda"), torch.rand(3, device="cuda")]))
    return torch.rand(3, device="cuda") + torch.Tensor.add(parts[0], parts[1])  # raises


def case_methods_as_functions_in_one_place():
    parts = list(map(torch.Tensor.cuda, [torch.rand(3), torch.rand(3)]))
    return torch.rand(3, device="cuda") + torch.Tensor.add(parts[0], parts[1])
