import os
from datetime import timedelta

import torch
import torch.distributed as dist


def setup():
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl", timeout=timedelta(seconds=60))
    return rank, local_rank, dist.get_world_size()


def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0


def reduce_mean(tensor):
    if not dist.is_initialized():
        return tensor
    rt = tensor.detach().clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)  # raises
    return rt / dist.get_world_size()


def gather_objects(obj):
    out = [None] * dist.get_world_size()
    dist.all_gather_object(out, obj)
    return out
