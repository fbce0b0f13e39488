import os

import torch
import torch.distributed as dist


def init(args):
    os.environ.setdefault('MASTER_ADDR', '127.0.0.1')
    os.environ.setdefault('MASTER_PORT', '29511')
    dist.init_process_group('gloo', rank=int(os.environ.get('RANK', 0)), world_size=int(os.environ.get('WORLD_SIZE', 1)))


def local_rank():
    return int(os.environ.get('LOCAL_RANK', 0))


def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0


def reduce_mean(value):
    if not dist.is_initialized():
        return value
    t = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()


def finish():
    dist.destroy_process_group()


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)
