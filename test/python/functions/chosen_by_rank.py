"""A device that the rank chooses, where later code knows more of the rank."""
import os

import torch
import torch.nn as nn


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.place = nn.Parameter(torch.zeros(4))

    def forward(self, ids):
        return self.table(ids) + self.place


def rank_and_device():
    rank = int(os.environ.get("RANK", "0"))
    return rank, rank % torch.cuda.device_count()


def case_progress_of_the_first_rank():
    rank, device = rank_and_device()
    model = Embedding().to(device)
    steps = range(3)
    steps = list(steps) if rank == 0 else steps
    for _ in steps:
        model(torch.randint(0, 10, (3,), device=device))


def case_what_is_added_is_left_on_the_host():
    rank, device = rank_and_device()
    model = Embedding().to(device)
    steps = range(3)
    steps = list(steps) if rank == 0 else steps
    for _ in steps:
        model.place + torch.zeros(4)  # raises
