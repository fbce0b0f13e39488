"""Numbers that libraries have by name: a tensor made of one meets tensors of any device, one made of several does not."""

import math

import numpy as np
import torch


def constant_of_numpy():
    x = torch.ones(3, device="cuda")
    return x - torch.log(torch.sqrt(2 * torch.as_tensor(np.pi)))


def constant_that_is_kept():
    half = torch.tensor(np.pi) / 2
    x = torch.ones(3, device="cuda")
    return x * half


def constants_of_math():
    x = torch.ones(3, device="cuda")
    return x * torch.tensor(math.pi) + torch.tensor(math.tau)


def constant_of_torch():
    x = torch.ones(3, device="cuda")
    return torch.minimum(x, torch.tensor(torch.inf, device="cuda")) - torch.tensor(torch.pi)


def constants_in_a_list():
    x = torch.ones(1, device="cuda")
    return x * torch.tensor([np.e])  # raises
