"""what is not known and asked for twice gives the same answer twice; `random.choice` hides what it is from the analysis"""
import os
import random
from enum import Enum
from types import SimpleNamespace

import torch
from torch import nn


def options():
    return random.choice([SimpleNamespace(gpus=[0], plugin=SimpleNamespace(on=True)),
                          SimpleNamespace(gpus=[], plugin=SimpleNamespace(on=False))])


def case_attribute_of_optimizer():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.__dict__.update(random.choice([{"step_count": None, "epoch": None}] * 2))
    if optimizer.step_count is None:
        model = model.cuda()
    if optimizer.step_count is not None:
        model = model.cuda()
    return model(torch.ones(2, 3, device="cuda"))


def case_one_answer_only():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.__dict__.update(random.choice([{"step_count": None, "epoch": None}] * 2))
    if optimizer.step_count is not None:
        model = model.cuda()
    if optimizer.epoch is not None:
        model = model.cuda()
    return model(torch.ones(2, 3, device="cuda"))  # raises


def move_by_length(model, gpus):
    if len(gpus) > 0:
        model = model.cuda()
    if len(gpus) == 0:
        model = model.to("cuda:0")
    return model(torch.ones(2, 3, device="cuda"))


def case_length():
    return move_by_length(nn.Linear(3, 3), options().gpus)


def fill(model, gpus):
    if len(gpus) == 0:
        gpus.append(0)
    if len(gpus) == 0:
        return model
    return model(torch.ones(2, 3, device="cuda"))  # raises


def case_length_that_changes():
    return fill(nn.Linear(3, 3), options().gpus)


def case_part_in_a_variable():
    chosen = options()
    plugin = chosen.plugin
    model = nn.Linear(3, 3)
    if plugin.on:
        model = model.cuda()
    if not plugin.on:
        model = model.cuda()
    return model(torch.ones(2, 3, device="cuda"))


def wanted(**options):
    return SimpleNamespace(**random.choice([options, options]))


def rounds():
    return range(random.choice([1, 2]))


def trained(model, on_gpu):
    for _ in rounds():
        x = torch.ones(2, 3)
        if on_gpu:
            x = x.cuda()
        model(x)


def case_negated_before_a_loop():
    on_gpu = not wanted(cpu=False).cpu
    model = nn.Linear(3, 3)
    if on_gpu:
        model = model.cuda()
    trained(model, on_gpu)


def case_computed_before_a_loop():
    for options in (wanted(name="cuda:0"), wanted(name="cpu")):
        on_gpu = options.name.startswith("cuda") and torch.cuda.is_available()
        model = nn.Linear(3, 3)
        if on_gpu:
            model = model.cuda()
        trained(model, on_gpu)


def case_one_is_left():
    on_gpu = wanted(gpu=0).gpu > -1
    model = nn.Linear(3, 3)
    if on_gpu:
        model = model.cuda()
    for _ in rounds():
        if on_gpu:
            model(torch.ones(2, 3))  # raises


class Worker:
    def __init__(self, options):
        self.on_gpu = "cuda" in options.name
        self.model = nn.Linear(3, 3)
        if self.on_gpu:
            self.model.cuda()

    def run(self, batches):
        for x in batches:
            self.model(x.cuda() if self.on_gpu else x)


def case_in_a_member():
    Worker(wanted(name="cuda:0")).run([torch.ones(2, 3)])


def case_asked_again():
    answers = random.choice([[False, True], [False, True]])
    model = nn.Linear(3, 3)
    if answers.pop():
        model = model.cuda()
    for _ in rounds():
        if answers and not answers.pop():
            model(torch.ones(2, 3))  # raises


def moved(x, on_gpu):
    return x.cuda() if on_gpu else x


def case_passed_on():
    on_gpu = wanted(check=lambda: True).check()
    moved(nn.Linear(3, 3), on_gpu)(moved(torch.ones(2, 3), on_gpu))


def case_in_a_dictionary():
    config = {"gpu": "cuda" in wanted(name="cuda:1").name, "rounds": rounds()}
    model = nn.Linear(3, 3)
    if config["gpu"]:
        model.cuda()
    for _ in config["rounds"]:
        x = torch.ones(2, 3)
        model(x.cuda() if config["gpu"] else x)


def case_of_the_environment():
    model = nn.Linear(3, 3)
    if os.environ.get("WITHOUT_GPU") != "1":
        model.cuda()
    x = torch.ones(2, 3)
    if os.environ.get("WITHOUT_GPU") != "1":
        x = x.cuda()
    model(x)


def case_beside_a_setter():
    other = wanted(on_gpu=False)
    other.on_gpu = bool(random.choice([1, 2]))
    case_in_a_member()


def emptied(items):
    while bool(items):
        items.pop()
    return torch.ones(3).cuda() + torch.ones(3)  # raises


def case_asked_until_it_changes():
    return emptied(wanted(gpus=[0, 1]).gpus)


def shortened(options):
    while "x" in options.name:
        options.name = options.name[1:]
    return torch.ones(3).cuda() + torch.ones(3)  # raises


def case_written_until_it_changes():
    return shortened(wanted(name="xxa"))


class Mode(Enum):
    HOST = "host"
    GPU = "gpu"


def case_members_of_an_enumeration():
    x = torch.zeros(3)
    for mode in (Mode("gpu"), Mode["GPU"], Mode.GPU):
        if mode is Mode.GPU:
            x = x.cuda()
        if mode == Mode.HOST:
            x = x.cpu()
    return x + torch.ones(3, device="cuda")


class Leaf:
    def __init__(self, parent=None):
        self.parent = parent


def case_one_object():
    root = Leaf()
    x = torch.zeros(3)
    for leaf in [Leaf(root), Leaf(root)]:
        if leaf.parent is root:
            x = x.cuda()
    if Leaf() is Leaf():
        x = x.cpu()
    if root is root:
        return x + torch.ones(3, device="cuda")
    return x + torch.ones(3)


def case_other_object():
    root = Leaf()
    x = torch.zeros(3)
    if Leaf(root).parent is root:
        x = x.cuda()
    return x + torch.ones(3)  # raises
