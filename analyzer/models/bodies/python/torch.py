"""Wrappers of torch.nn around other modules."""

import dt
import torch


@dt.models(
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "apex.parallel.DistributedDataParallel",
)
class Wrapper(torch.nn.Module):
    """The inputs are brought to the device of each copy."""

    def __init__(self, module, device_ids=None, *values, **options):
        super().__init__()
        self.module = module

    def forward(self, *inputs, **named):
        return self.module(*dt.moved(inputs, self.device), **dt.moved(named, self.device))
