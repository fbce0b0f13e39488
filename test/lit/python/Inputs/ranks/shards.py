"""Ranks that keep shards of parameters in host memory."""
import os

import torch
import torch.distributed as dist


def join(backend):
    if not dist.is_initialized():
        dist.init_process_group(backend)


class Shards:
    def __init__(self, module, remote):
        for parameter in module.parameters():
            parameter.shard = torch.empty(parameter.numel(), device=remote)

    def gather(self, parameter):
        if dist.is_initialized():
            whole = torch.empty(2 * parameter.numel(), device=parameter.device)
            dist.all_gather_into_tensor(whole, parameter.shard)

    def gather_there(self, parameter):
        whole = torch.empty(2 * parameter.numel(), device=parameter.device)
        dist.all_gather_into_tensor(whole, parameter.shard.to(parameter.device))


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    join("nccl")
    net = torch.nn.Linear(4, 4).cuda()
    shards = Shards(net, "cpu")
    for parameter in net.parameters():
        shards.gather_there(parameter)
        shards.gather(parameter)


main()
