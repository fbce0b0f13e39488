"""parameters that are put into a ParameterDict or a ParameterList one by one are the module's, and move with it"""
import torch
from torch import nn


class Skips(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.skip = nn.ParameterDict()
        for name in names:
            self.skip[name] = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return {name: each * self.skip[name] for name, each in x.items()}


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.skip = nn.ParameterDict()
        self.skip["a"] = nn.Parameter(torch.ones(3))
        self.kept = {}
        self.kept["a"] = nn.Parameter(torch.ones(3))


class Several(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.parts = nn.ParameterList()
        for _ in range(count):
            self.parts.append(nn.Parameter(torch.ones(3)))

    def forward(self, x):
        for part in self.parts:
            x = x + part
        return x * self.parts[0]


class Extended(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ParameterList()
        self.parts.extend([nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))])

    def forward(self, x):
        return x * self.parts[1]


def case_dict_moved():
    return Skips(["a", "b"]).cuda()({"a": torch.ones(2, 3, device="cuda")})


def case_dict_left():
    skips = Skips(["a", "b"])
    x = torch.ones(2, 3, device="cuda")
    return x * skips.skip["a"]  # raises


def case_named_moved():
    named = Named().cuda()
    return torch.ones(2, 3, device="cuda") * named.skip["a"]


def case_plain_dict_does_not_move():
    named = Named().cuda()
    return torch.ones(2, 3, device="cuda") * named.kept["a"]  # raises


def case_list_moved():
    return Several(3).cuda()(torch.ones(2, 3, device="cuda"))


def case_list_left():
    several = Several(3)
    x = torch.ones(2, 3, device="cuda")
    return x + several.parts[2]  # raises


def case_input_left():
    several = Several(3).cuda()
    x = torch.ones(2, 3)
    return x + several.parts[0]  # raises


def case_extended_moved():
    return Extended().cuda()(torch.ones(2, 3, device="cuda"))


def case_extended_elsewhere():
    extended = Extended().cuda()
    x = torch.ones(2, 3)
    return x * extended.parts[0]  # raises
