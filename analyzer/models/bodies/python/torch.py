"""Wrappers of torch.nn around other modules, what is saved, and gradients."""

import copy

import dt
import torch

dt.numbers("torch.pi", "torch.e", "torch.inf", "torch.nan")


@dt.models(
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
        if device_ids is not None:
            dt.on_gpus(device_ids)

    def forward(self, *inputs, **named):
        return self.module(*dt.moved(inputs, self.device), **dt.moved(named, self.device))


@dt.models("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
class DataParallel(Wrapper):
    """The outputs are gathered where that of the module is, or where it is told to."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__(module, device_ids)
        self.output_device = output_device

    def forward(self, *inputs, **named):
        output = super().forward(*inputs, **named)
        return output if self.output_device is None else dt.moved(output, self.output_device)


@dt.models("torch.optim.swa_utils.AveragedModel")
class AveragedModel(torch.nn.Module):
    """A copy, which stays where the model was."""

    def __init__(self, model, device=None, *values, **options):
        super().__init__()
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def update_parameters(self, model):
        return None


@dt.models("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
def fully_shard(module, *values, offload_policy=None, **options):
    """Shards are on the GPU of the rank, or where the policy says."""
    return module.to(dt.device_of_process() if offload_policy is None else torch.device(dt.unknown()))


@dt.models("torch.nn.utils.parameters_to_vector", "torch.nn.utils.convert_parameters.parameters_to_vector")
def parameters_to_vector(parameters):
    return torch.cat([parameter.view(-1) for parameter in parameters])


@dt.models("torch.save")
def save(obj, f, *values, **options):
    dt.save(file_of(f), copy.deepcopy(obj))


@dt.models("torch.load")
def load(f, map_location=None, *values, **options):
    """What was saved, on its devices or where it is mapped to."""
    saved = dt.saved(file_of(f))
    if saved is None:
        if map_location is None:
            dt.unmapped()
            return dt.unknown()
        return dt.unknown() if callable(map_location) else dt.moved(dt.unknown(), map_location)
    if map_location is None:
        return copy.deepcopy(saved)
    if callable(map_location):
        return dt.moved(saved, map_location(torch.zeros(1), dt.unknown()).device)
    return dt.moved(saved, map_location)


def file_of(f):
    """A file is known by its name, where it has one."""
    return f.name if hasattr(f, "name") else f


@dt.models(
    "torch.onnx.is_in_onnx_export",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.compiler.is_compiling",
    "torch._dynamo.is_compiling",
)
def exporting():
    """What is done for an export alone is no way of the program itself."""
    return False


@dt.models(
    "torch.no_grad",
    "torch.enable_grad",
    "torch.inference_mode",
    "torch.set_grad_enabled",
    "torch.autocast",
    "torch.amp.autocast",
    "torch.cuda.amp.autocast",
)
class Mode:
    """A context that also decorates: the function stays what it is."""

    def __init__(self, *values, **options):
        pass

    def __call__(self, function):
        return function


@dt.models("torch.broadcast_tensors", "torch.functional.broadcast_tensors")
def broadcast_tensors(*tensors):
    return tuple([each.reshape(-1) for each in tensors])


@dt.models("torch.autograd.functional.jacobian", "torch.autograd.functional.hessian")
def jacobian(func, inputs, *values, **options):
    """Tensors beside the inputs, with more dimensions."""
    if isinstance(inputs, tuple):
        func(*inputs)
        return tuple([each.reshape(1, -1) for each in inputs])
    func(inputs)
    return inputs.reshape(1, -1)


@dt.models(
    "torch.autograd.functional.vjp",
    "torch.autograd.functional.jvp",
    "torch.autograd.functional.hvp",
    "torch.autograd.functional.vhp",
)
def product(func, inputs, v=None, *values, **options):
    """What the function gives, and its derivative along v, which is beside the inputs."""
    if isinstance(inputs, tuple):
        return func(*inputs), tuple([each.clone() for each in inputs])
    return func(inputs), inputs.clone()


@dt.models("torch.atleast_1d", "torch.atleast_2d", "torch.atleast_3d")
def with_dimensions(*tensors):
    return tensors[0].reshape(1, -1) if len(tensors) == 1 else tuple([each.reshape(1, -1) for each in tensors])


@dt.models("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
def embedding(embeddings, *values, **options):
    return torch.nn.Embedding(1, 1, device=embeddings.device)


@dt.models("torch.sparse.mm")
def sparse_product(sparse, dense, *values):
    return torch.mm(sparse, dense)


@dt.models("torch.sparse.addmm")
def sparse_sum_of_product(mat, mat1, mat2, *values, **options):
    return torch.addmm(mat, mat1, mat2)


@dt.models("torch.nn.init.*")
def initialised(tensor, *values, **options):
    return tensor


@dt.models("torch.quasirandom.SobolEngine")
class SobolEngine:
    def __init__(self, dimension, *values, **options):
        self.dimension = dimension

    def draw(self, n=1, *values, **options):
        return torch.zeros(n, self.dimension, device="cpu")

    def draw_base2(self, m, *values, **options):
        return self.draw(2)

    def fast_forward(self, n):
        return self


@dt.models("torch.autograd.grad")
def grad(outputs, inputs, grad_outputs=None, *values, **options):
    if torch.is_tensor(outputs) and torch.is_tensor(grad_outputs):
        dt.together(outputs, grad_outputs)
    return (inputs.grad,) if torch.is_tensor(inputs) else tuple([each.grad.detach() for each in inputs])
