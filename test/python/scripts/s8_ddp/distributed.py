import os

import torch
import torch.distributed as dist


def setup():
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if use_cuda else "gloo")
    return torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")


def cleanup():
    dist.destroy_process_group()


def reduce_mean(value, device):
    t = torch.tensor([float(value)], device=device)
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def is_main():
    return dist.get_rank() == 0
