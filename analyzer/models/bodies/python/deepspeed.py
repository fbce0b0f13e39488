"""DeepSpeed."""

import dt
import torch


class Engine(torch.nn.Module):
    """The model on the device of the process; what it is given must be there."""

    def __init__(self, module):
        super().__init__()
        self.device = dt.device_of_process()
        self.module = dt.moved(module, self.device)

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def backward(self, loss, **options):
        loss.backward()

    def step(self, *values, **options):
        pass


@dt.models("deepspeed.initialize")
def initialize(
    args=None,
    model=None,
    optimizer=None,
    model_parameters=None,
    training_data=None,
    lr_scheduler=None,
    config=None,
    **options,
):
    torch.distributed.init_process_group(dt.backend_of_process())
    return (Engine(model), optimizer, dt.unknown(), lr_scheduler)


@dt.models("deepspeed.init_distributed", "deepspeed.comm.init_distributed")
def init_distributed(dist_backend=None, *values, **options):
    torch.distributed.init_process_group(dt.backend_of_process() if dist_backend is None else dist_backend)
