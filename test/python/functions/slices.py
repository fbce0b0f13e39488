import torch
import torch.nn.functional as F


def parts():
    return [torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1"), torch.ones(2), torch.ones(2, device="cuda:0")]


def last(xs, n):
    return xs[-n:]


def case_first_and_last():
    a, b = parts()[::3]
    return a + b


def case_first_two():
    a, b = parts()[:2]
    return a + b  # raises


def case_turned_around():
    return parts()[::-1][0] + torch.zeros(2, device="cuda:0")


def case_turned_around_and_cut():
    return parts()[2:0:-1][1] + torch.zeros(2, device="cuda:0")  # raises


def case_from_behind():
    return last(parts(), 2)[0] + torch.zeros(2, device="cuda:0")  # raises


def case_all_but_those_elsewhere():
    rest = parts()[3:] + parts()[:1]
    return torch.stack(rest)


def case_more_than_there_is():
    rest = parts()[2:99]
    return rest[1] + torch.zeros(2, device="cuda:0")


def case_nothing_left():
    total = torch.zeros(2)
    for part in parts()[4:]:
        total = total + part
    return total


def case_tuple():
    same, other = (torch.ones(2), torch.ones(2, device="cuda:2"), torch.ones(2))[:-1]
    return F.mse_loss(same, other)  # raises


def case_grid():
    ys, xs = torch.meshgrid(torch.arange(3.), torch.arange(2.), indexing="ij")[::-1]
    return torch.ones(3, 2, device="cuda:0") * xs + ys  # raises
