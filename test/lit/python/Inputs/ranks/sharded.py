"""fully_shard puts the parameters onto the GPU of the rank, but where its policy says otherwise."""
import torch
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard


def sharded():
    net = nn.Linear(4, 4)
    fully_shard(net)
    return net(torch.ones(2, 4, device="cuda"))


def offloaded():
    net = nn.Linear(4, 4)
    fully_shard(net, offload_policy=CPUOffloadPolicy())
    return net(torch.ones(2, 4, device="cuda"))


def plain():
    net = nn.Linear(4, 4)
    return net(torch.ones(2, 4, device="cuda"))
