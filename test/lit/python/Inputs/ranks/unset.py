"""Ranks are joined, and use their GPUs by an index alone."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def join():
    dist.init_process_group(backend="nccl")


def main():
    join()
    local = int(os.environ["LOCAL_RANK"])
    net = DistributedDataParallel(nn.Linear(2, 2).to(local), device_ids=[local])
    return net(torch.ones(1, 2, device=f"cuda:{local}"))


if __name__ == "__main__":
    main()
