"""what is not known and asked for twice gives the same answer twice; `random.choice` hides what it is from the analysis"""
import random
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
