"""torch.distributed: what ranks exchange. init_process_group() is no model: it is asked for by its name."""

import dt


class Group:
    def __init__(self, backend):
        self.backend = backend


class Work:
    """What an asynchronous exchange gives."""

    def wait(self, *timeout):
        return dt.unknown()

    def is_completed(self):
        return dt.unknown()


@dt.models("torch.distributed.new_group", "torch.distributed.distributed_c10d.new_group")
def new_group(ranks=None, timeout=None, backend=None, *values, **options):
    return Group(dt.backend() if backend is None else backend)


@dt.models("torch.distributed.get_backend")
def get_backend(group=None):
    return group.backend if isinstance(group, Group) else dt.backend()


@dt.models("torch.distributed.get_rank", "deepspeed.comm.get_rank")
def get_rank(group=None):
    return dt.rank("RANK") if group is None else dt.unknown()


@dt.models("torch.distributed.get_world_size", "deepspeed.comm.get_world_size")
def get_world_size(group=None):
    return dt.rank("WORLD_SIZE") if group is None else dt.unknown()


@dt.models("torch.distributed.is_initialized", "deepspeed.comm.is_initialized")
def is_initialized():
    return dt.joined()


@dt.models("torch.distributed.destroy_process_group")
def destroy_process_group(group=None):
    if group is None:
        dt.leave()


@dt.models("torch.distributed.all_reduce", "deepspeed.comm.all_reduce")
def all_reduce(tensor, op=None, group=None, async_op=False, **options):
    dt.exchange(group, tensor)
    return Work()


@dt.models("torch.distributed.broadcast", "deepspeed.comm.broadcast")
def broadcast(tensor, src=None, group=None, async_op=False, **options):
    dt.exchange(group, tensor)
    return Work()


@dt.models("torch.distributed.reduce", "deepspeed.comm.reduce")
def reduce(tensor, dst=None, op=None, group=None, async_op=False, **options):
    dt.exchange(group, tensor)
    return Work()


@dt.models(
    "torch.distributed.all_gather",
    "torch.distributed.all_to_all",
    "deepspeed.comm.all_gather",
    "deepspeed.comm.all_to_all",
)
def all_gather(tensor_list, tensor, group=None, async_op=False, **options):
    dt.exchange(group, tensor_list, tensor)
    return Work()


@dt.models(
    "torch.distributed.all_gather_into_tensor",
    "torch.distributed._all_gather_base",
    "deepspeed.comm.all_gather_into_tensor",
)
def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False, **options):
    dt.exchange(group, output_tensor, input_tensor)
    return Work()


@dt.models("torch.distributed.all_to_all_single", "deepspeed.comm.all_to_all_single")
def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False, **options):
    dt.exchange(group, output, input)
    return Work()


@dt.models("torch.distributed.gather", "deepspeed.comm.gather")
def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, **options):
    dt.exchange(group, tensor, gather_list)
    return Work()


@dt.models("torch.distributed.scatter", "deepspeed.comm.scatter")
def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, **options):
    dt.exchange(group, tensor, scatter_list)
    return Work()


@dt.models(
    "torch.distributed.reduce_scatter",
    "torch.distributed.reduce_scatter_tensor",
    "torch.distributed._reduce_scatter_base",
    "deepspeed.comm.reduce_scatter",
)
def reduce_scatter(output, input, op=None, group=None, async_op=False, **options):
    dt.exchange(group, output, input)
    return Work()


@dt.models("torch.distributed.send", "torch.distributed.isend", "torch.distributed.recv", "torch.distributed.irecv")
def send(tensor, other=None, group=None, *tag, **options):
    dt.exchange(group, tensor)
    return Work()


@dt.models("torch.distributed.barrier", "deepspeed.comm.barrier")
def barrier(group=None, async_op=False, device_ids=None, *values, **options):
    dt.on_gpus(device_ids)
    return Work()


@dt.models("torch.distributed.nn.*all_reduce", "torch.distributed.nn.*broadcast")
def exchanged(tensor, *values, group=None, **options):
    dt.exchange(group, tensor)
    return tensor


@dt.models("torch.distributed.nn.*all_gather")
def gathered(tensor, group=None):
    dt.exchange(group, tensor)
    return [tensor, tensor]
