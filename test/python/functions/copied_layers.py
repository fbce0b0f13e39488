"""Copies of modules, positions in lists of any length, and what is taken apart."""

import copy
import json
import os
import tempfile

import torch
from torch import nn

GPUS = [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())]


def _stack(depth):
    return nn.Sequential(*[nn.Linear(3, 3) for _ in range(depth)])


def case_copy_elsewhere():
    model = _stack(int(torch.randint(2, 4, ()))).to("cuda:0")
    twin = copy.deepcopy(model).to("cuda:1")
    model(torch.zeros(3, device="cuda:0"))
    twin(torch.zeros(3, device="cuda:1"))


def case_copy_left():
    model = _stack(int(torch.randint(2, 4, ())))
    twin = copy.deepcopy(model)
    model.to("cuda")
    twin(torch.zeros(3, device="cuda"))  # raises


def case_list_copied():
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(int(torch.randint(2, 4, ())))]).to("cuda:0")
    others = copy.deepcopy(layers).to("cuda:1")
    layers[0](torch.zeros(3, device="cuda:0"))
    others[0](torch.zeros(3, device="cuda:0"))  # raises


def case_first_two():
    first, second = GPUS[:2]
    return torch.zeros(3, device=first) + torch.zeros(3, device=second)  # raises


def case_first_and_others():
    first, *others = GPUS
    total = torch.zeros(3, device=first)
    for each in others:
        total = total + torch.zeros(3, device=each)  # raises


def case_ends():
    first, *between, last = [torch.zeros(3), torch.zeros(3).cuda(), torch.zeros(3).cuda(), torch.zeros(3)]
    total = first + last
    for each in between:
        total = total + each.cpu()
    for each in between:
        total = total + each  # raises


def case_by_number():
    parts = [torch.zeros(3).cuda(i) for i in range(torch.cuda.device_count())]
    return parts[0] + parts[1]  # raises


def case_columns():
    pairs = [(torch.zeros(3), torch.zeros(3, device="cuda")) for _ in range(int(torch.randint(2, 4, ())))]
    here, there = zip(*pairs)
    torch.stack(there) + torch.stack(here).cuda()
    return torch.cat(here) + torch.cat(there)  # raises


def case_one_and_others():
    depth = int(torch.randint(2, 4, ()))
    model = nn.Sequential(nn.Flatten(), *(nn.Linear(3, 3) for _ in range(depth))).to("cuda")
    return model(torch.zeros(2, 3, device="cuda")) + torch.zeros(2, 3)  # raises


def case_written_in_a_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "options.json")
        with open(path, "w") as stream:
            json.dump({"train": {"device": "cuda", "centred": True}}, stream)
        with open(path) as stream:
            options = json.load(stream)
    x = torch.zeros(3).to(options["train"]["device"])
    if options["train"]["centred"]:
        x = x - torch.ones(3)  # raises


def case_written_out():
    x, y, out = torch.rand(3, device="cuda"), torch.rand(3, device="cuda"), torch.empty(3, device="cuda")
    torch.add(x, y, out=out)
    torch.maximum(x, out, out=torch.empty(3))  # raises


def case_loaded_on_the_host():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.pt")
        torch.save({"weight": torch.zeros(3, 3)}, path)
        state = torch.load(path, map_location="cpu")
    return state["weight"] @ torch.zeros(3, device="cuda")  # raises


def case_nearest():
    x, centres = torch.rand(4, 2, device="cuda"), torch.rand(3, 2, device="cuda")
    nearest = torch.cdist(x, centres).argmin(dim=1)
    return torch.rand(3, 3)[nearest]  # raises
