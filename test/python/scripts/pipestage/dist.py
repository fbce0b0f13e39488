"""Ranks from the environment; one process here, so that collectives do nothing."""
import os
from dataclasses import dataclass

import torch


@dataclass
class Context:
    rank: int
    world: int
    local_rank: int

    @classmethod
    def from_env(cls):
        rank = int(os.environ.get('RANK', 0))
        return cls(rank, int(os.environ.get('WORLD_SIZE', 1)), int(os.environ.get('LOCAL_RANK', rank)))

    @property
    def is_main(self):
        return self.rank == 0

    def device(self, stage=0, stages=1):
        """The device of a stage of this rank."""
        if not torch.cuda.is_available():
            return torch.device('cpu')
        return torch.device(f'cuda:{self.local_rank * stages + stage}')


def all_reduce_mean(value, ctx):
    if ctx.world == 1:
        return value
    torch.distributed.all_reduce(value)
    return value / ctx.world
