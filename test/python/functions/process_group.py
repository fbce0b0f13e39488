"""one-process groups, as used in unit tests of distributed code"""
import functools
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def with_group(fn):
    @functools.wraps(fn)
    def run():
        store = "file://" + tempfile.mktemp()
        dist.init_process_group("nccl", init_method=store, rank=0, world_size=1)
        torch.cuda.set_device(0)
        try:
            return fn()
        finally:
            dist.destroy_process_group()
    return run


def all_reduce_mean(values):
    packed = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(packed)  # raises
    return (packed / dist.get_world_size()).tolist()


def all_reduce_mean_on(values, device):
    packed = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(packed)
    return (packed / dist.get_world_size()).tolist()


def case_sync_meter():
    @with_group
    def body():
        net = DDP(nn.Linear(2, 1).cuda(), device_ids=[0])
        loss = net(torch.ones(1, 2).cuda()).sum()
        loss.backward()
        return all_reduce_mean([loss.item(), 1.0])
    return body()


def case_sync_meter_on_card():
    @with_group
    def body():
        net = DDP(nn.Linear(2, 1).cuda(), device_ids=[0])
        loss = net(torch.ones(1, 2).cuda()).sum()
        loss.backward()
        return all_reduce_mean_on([loss.item(), 1.0], loss.device)
    return body()


@torch.no_grad()
def concat_all_gather(tensor):
    parts = [torch.ones_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts, dim=0)


def case_moco_queue_gather():
    @with_group
    def body():
        keys = nn.functional.normalize(torch.randn(4, 3).cuda(), dim=1)
        keys = concat_all_gather(keys)
        queue = torch.randn(3, 8, device="cuda")
        queue[:, :4] = keys.T
        return queue
    return body()


def case_broadcast_of_scores():
    @with_group
    def body():
        scores = torch.rand(3)
        if dist.get_rank() == 0:
            scores = scores.sort()[0]
        dist.broadcast(scores, src=0)  # raises
        return scores.numpy()
    return body()


def case_object_collectives():
    @with_group
    def body():
        gathered = [None] * dist.get_world_size()
        dist.all_gather_object(gathered, {"acc": 0.5, "hist": torch.ones(3)})
        return torch.stack([g["hist"] for g in gathered]).mean(0) + torch.ones(3)
    return body()
