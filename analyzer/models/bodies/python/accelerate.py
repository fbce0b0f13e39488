"""accelerate."""

import dt
import torch


@dt.models("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
class Accelerator:
    """Moves what it prepares, and the batches of the loaders among that."""

    def __init__(self, device_placement=True, split_batches=False, mixed_precision=None, cpu=False, **options):
        self.device = torch.device("cpu") if cpu is True else dt.device_of_process()
        self.device_placement = device_placement
        self.load_hooks = []
        dt.join("gloo" if cpu is True else dt.backend_of_process())
        self.process_index = dt.rank("process_index")
        self.local_process_index = dt.rank("local_process_index")
        self.num_processes = dt.rank("WORLD_SIZE")

    def prepare(self, *objects, device_placement=None):
        prepared = [self.prepare_model(each) for each in objects]
        return prepared[0] if len(prepared) == 1 else tuple(prepared)

    def prepare_model(self, each, device_placement=None, **options):
        getattr(each, "state", None)  # AcceleratedOptimizer brings along what an optimizer keeps
        if dt.has_ranks() and dt.is_spread(each):
            torch.distributed.init_process_group(dt.backend_of_process())
        return each if self.device_placement is False else dt.moved(each, self.device)

    def prepare_data_loader(self, each, device_placement=None, **options):
        return self.prepare_model(each)

    def prepare_optimizer(self, each, device_placement=None):
        return self.prepare_model(each)

    def prepare_scheduler(self, each):
        return each

    def unwrap_model(self, model, **options):
        return model

    def register_load_state_pre_hook(self, hook):
        self.load_hooks.append(hook)
        return dt.unknown()

    def load_state(self, input_dir=None, **options):
        for hook in self.load_hooks:
            hook(dt.unknown(), input_dir)

    def backward(self, loss, **options):
        loss.backward()

    def gather(self, tensor):
        dt.exchange(None, tensor)
        return tensor

    def gather_for_metrics(self, input_data, use_gather_object=False):
        if use_gather_object is not True:
            dt.exchange(None, input_data)
        return input_data

    def reduce(self, tensor, *values, **options):
        dt.exchange(None, tensor)
        return tensor

    def pad_across_processes(self, tensor, *values, **options):
        dt.exchange(None, tensor)  # the sizes, where the tensor is
        return tensor


@dt.models("accelerate.PartialState", "accelerate.state.PartialState", "accelerate.state.AcceleratorState")
class PartialState:
    def __init__(self, cpu=False, **options):
        self.device = torch.device("cpu") if cpu is True else dt.device_of_process()
        dt.join("gloo" if cpu is True else dt.backend_of_process())
        self.process_index = dt.rank("process_index")
        self.local_process_index = dt.rank("local_process_index")
        self.num_processes = dt.rank("WORLD_SIZE")


@dt.models(
    "accelerate.utils.gather",
    "accelerate.utils.reduce",
    "accelerate.utils.broadcast",
    "accelerate.utils.pad_across_processes",
    "accelerate.utils.operations.gather",
    "accelerate.utils.operations.reduce",
    "accelerate.utils.operations.broadcast",
    "accelerate.utils.operations.pad_across_processes",
)
def exchanged(tensor, *values, **options):
    dt.exchange(None, tensor)
    return tensor


@dt.models("accelerate.dispatch_model", "accelerate.big_modeling.dispatch_model")
def dispatch_model(model, device_map=None, main_device=None, **options):
    return dt.placed(model, device_map)


@dt.models("accelerate.load_checkpoint_and_dispatch", "accelerate.big_modeling.load_checkpoint_and_dispatch")
def load_checkpoint_and_dispatch(model, checkpoint=None, device_map=None, **options):
    return dt.placed(model, device_map)


@dt.models("accelerate.utils.send_to_device", "accelerate.utils.operations.send_to_device")
def send_to_device(tensor, device, **options):
    return dt.moved(tensor, device)


@dt.models("accelerate.cpu_offload*", "accelerate.disk_offload*", "accelerate.big_modeling.*_offload*")
def offload(model, *places, **options):
    return dt.spread(model)
