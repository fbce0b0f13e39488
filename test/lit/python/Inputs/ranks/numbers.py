"""Which number of a rank is that of a GPU."""
import os

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn


class State:
    def __init__(self):
        self.process_index = 0
        self.local_process_index = 0
        if dist.is_initialized():
            self.process_index = dist.get_rank()
            self.local_process_index = int(os.environ.get("LOCAL_RANK", -1))

    def wait(self):
        dist.barrier(device_ids=[self.process_index])

    def wait_on_machine(self):
        dist.barrier(device_ids=[self.local_process_index])


def scale_on(values):
    index = Accelerator().process_index
    return values * torch.ones(3).to(index if torch.cuda.is_available() else "cpu")


def head():
    return nn.Linear(2, 2).to(Accelerator().local_process_index)


def whole():
    torch.cuda.set_device(int(os.environ["RANK"]))


def part():
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
