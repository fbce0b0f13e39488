import torch

from pack.ops import keep


def test_keep():
    assert keep(torch.zeros(5), torch.zeros(5)).size(0) == 5


def test_sum():
    assert (torch.zeros(5) + torch.ones(5, device="cuda")).size(0) == 5
