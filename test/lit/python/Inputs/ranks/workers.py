"""Functions that mp.spawn() starts with the number of the process."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def meets_too_early(local_rank, address):
    dist.init_process_group("NCCL", init_method=address)
    dist.barrier()
    torch.cuda.set_device(local_rank)


def meets_there(local_rank, address):
    dist.init_process_group("NCCL", init_method=address)
    dist.barrier(device_ids=[local_rank])
    torch.cuda.set_device(local_rank)
    dist.barrier()


def moves_too_early(local_rank, address):
    dist.init_process_group("nccl", init_method=address)
    net = nn.Linear(2, 2).cuda()
    torch.cuda.set_device(local_rank)
    return DistributedDataParallel(net, device_ids=[local_rank])


def moves_there(local_rank, address):
    dist.init_process_group("nccl", init_method=address)
    net = nn.Linear(2, 2).to(local_rank)
    torch.cuda.set_device(local_rank)
    return DistributedDataParallel(net.cuda(), device_ids=[local_rank])


def for_a_block(local_rank, address):
    dist.init_process_group("nccl", init_method=address)
    net = nn.Linear(2, 2).cuda()
    with torch.cuda.device(local_rank):
        return net, torch.zeros(2).cuda()


def on_the_cpu(rank, address):
    dist.init_process_group("gloo", init_method=address)
    dist.barrier()
    torch.cuda.set_device(rank)


def on_one_for_all(local_rank, address):
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", init_method=address)
    return nn.Linear(2, 2).to("cuda:0")


def on_one_for_the_first(local_rank, address):
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", init_method=address)
    return nn.Linear(2, 2).to("cuda:0") if dist.get_rank() == 0 else None
