"""What is given on the command line, drawn, dispatched on or switched off, and what optimizers keep of modules that are made anew."""

import argparse
import random
from collections import deque
from functools import singledispatch

import torch
import torch.nn as nn


def _options(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=0)
    parser.add_argument("--kind", choices=["plain", "shifted"])
    parser.add_argument("--cpu", action="store_true")
    return parser.parse_args(argv)


def case_given_number():
    options = _options(["--times", "2"])
    value = torch.zeros(3, device="cuda:0")
    if options.times:
        if options.times > 1:
            value = value + torch.ones(3)  # raises
    return value


def case_given_choice():
    options = _options(["--kind", "shifted"])
    value = torch.zeros(3, device="cuda:0")
    if options.kind:
        shift = {"plain": lambda: torch.zeros(3, device="cuda:0"), "shifted": lambda: torch.ones(3)}[options.kind]
        value = value + shift()  # raises
    return value


def case_not_given():
    options = _options([])
    device = torch.device("cpu") if options.cpu else torch.device("cuda:0")
    value = torch.zeros(3, device=device)
    if not options.cpu:
        value = value + torch.ones(3, device="cuda:0")
    return value


@singledispatch
def _moved(x, device):
    return x


@_moved.register
def _(x: torch.Tensor, device):
    return x.to(device)


@_moved.register(dict)
def _(x, device):
    return {key: _moved(value, device) for key, value in x.items()}


@_moved.register(list)
@_moved.register(deque)
def _(x, device):
    return type(x)(_moved(each, device) for each in x)


def case_dispatched():
    sample = _moved({"x": torch.ones(2), "more": [torch.ones(2)], "n": 2}, "cuda:1")
    return sample["x"] + sample["more"][0] * sample["n"]


def case_dispatched_to_no_case():
    sample = _moved({"x": torch.ones(2), "pair": (torch.ones(2), 1)}, "cuda:1")
    return sample["x"] + sample["pair"][0]  # raises


class _Step:
    def __init__(self, state, action):
        self.state, self.action = state, action


class _Memory:
    def __init__(self, device):
        self.steps = deque(maxlen=64)
        self.device = device

    def seed(self, steps):
        self.steps.extend(steps)

    def add(self, state, action):
        self.steps.append(_Step(state, action))

    def sample(self, count):
        drawn = random.sample(self.steps, count)
        states, actions = zip(*((each.state, each.action) for each in drawn))
        return torch.stack(states).to(self.device), torch.stack(actions)  # raises


def _seen(count):
    for _ in range(count):
        yield torch.randn(3), torch.randn(1)


def case_drawn_of_both():
    memory = _Memory("cuda:0")
    memory.seed(_Step(*each) for each in _seen(20))
    for state, _ in _seen(20):
        memory.add(state, torch.randn(1, device="cuda:0"))
    return memory.sample(36)


def case_drawn_of_one():
    values = [torch.randn(2, device="cuda:1") for _ in range(9)]
    return torch.stack(random.sample(values, 4)) + torch.ones(2, device="cuda:1")


class _Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        if self.training:
            x = x + torch.randn(2)  # raises
        return self.layer(x)


class _Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = _Noisy()

    def forward(self, x):
        return self.inner(x)


def case_switched_off():
    model = _Around().to("cuda:0").eval()
    return model(torch.ones(2, device="cuda:0"))


def case_switched_off_by_train():
    model = _Around().to("cuda:0")
    model.train(False)
    return model(torch.ones(2, device="cuda:0"))


def case_switched_on_again():
    model = _Around().to("cuda:0").eval()
    model.train()
    return model(torch.ones(2, device="cuda:0"))


def _trained(model, optimizer, device):
    model(torch.ones(2, device=device)).sum().backward()
    optimizer.step()  # raises
    return model, optimizer


def _made():
    return nn.Linear(2, 2)


def _anew(model, optimizer):
    fresh = _made()
    kept = torch.optim.SGD(fresh.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    kept.load_state_dict(optimizer.state_dict())
    fresh.load_state_dict(model.state_dict())
    fresh.to("cuda:0")
    return fresh, kept


def case_made_anew_and_moved():
    model = _made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = _trained(model, optimizer, "cpu")
    model, optimizer = _anew(model, optimizer)
    _trained(model, optimizer, "cuda:0")


def case_keeps_nothing():
    model = _made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    model.to("cuda:0")
    model(torch.ones(2, device="cuda:0")).sum().backward()
    optimizer.step()


class _Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.low = nn.Parameter(torch.zeros(2, base.in_features))

    def forward(self, x):
        return self.base(x) + x @ self.low.t()  # raises


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.third(self.second(self.first(x)))


def _adapted(model):
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name == "second" and isinstance(child, nn.Linear):
                setattr(parent, name, _Adapted(child))
    return model


def case_adapted_before():
    model = _adapted(nn.Sequential(*[_Block() for _ in range(4)])).to("cuda:0")
    return model(torch.ones(2, device="cuda:0"))


def case_adapted_after():
    model = _adapted(nn.Sequential(*[_Block() for _ in range(4)]).to("cuda:0"))
    return model(torch.ones(2, device="cuda:0"))


def case_pairs_of_objects():
    found = []
    for _ in range(3):
        found.append({"box": torch.ones(2, device="cuda:0")})
    wanted = [{"box": torch.ones(2)} for _ in range(3)]
    kept = torch.zeros(2, device="cuda:0")
    for one, other in zip(found, [_moved(each, "cuda:0") for each in wanted]):
        kept = kept + one["box"] * other["box"]
    for one, other in zip(found, wanted):
        kept = kept + one["box"] * other["box"]  # raises
    return kept
