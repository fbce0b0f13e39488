"""Copies between several devices of one process, for nn.DataParallel and torch.cuda.comm, and torch.cuda.nccl."""

import os

import torch


def functions():
    return {
        name: value
        for name, value in globals().items()
        if name.startswith(("_broadcast", "_scatter", "_gather", "_nccl"))
    }


def _device(index):
    return (
        torch.device("cpu")
        if index == -1
        else torch.device("cuda", torch._C._cuda_getDevice() if index is None else index)
    )


def _on_cuda(tensors):
    for tensor in tensors:
        if tensor.is_sparse or not tensor.is_cuda:
            raise RuntimeError(f"expected dense CUDA tensors, but got one on {tensor.device}")


def _broadcast(tensor, devices):
    if not devices:
        raise RuntimeError("Devices sequence must not be empty")
    return [tensor if tensor.device == _device(each) else tensor.to(_device(each)) for each in devices]


def _broadcast_out(tensor, out):
    for each in out:
        each.copy_(tensor)
    return list(out)


def _broadcast_coalesced(tensors, devices, buffer_size):
    if any(tensor.device != _device(devices[0]) for tensor in tensors):
        raise RuntimeError("All tensors must be on devices[0]: " + str(devices[0]))
    return [
        [tensor if tensor.device == _device(each) else tensor.detach().to(_device(each)) for tensor in tensors]
        for each in devices
    ]


def _scatter(tensor, devices, chunk_sizes, dim, streams):
    parts = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(devices), dim)
    return [part.to(_device(each)) for part, each in zip(parts, devices)]


def _scatter_out(tensor, out, dim, streams):
    for part, each in zip(tensor.split([each.size(dim) for each in out], dim), out):
        each.copy_(part)
    return list(out)


def _gather(tensors, dim, destination):
    _on_cuda(tensors)
    target = _device(destination)
    return torch.cat([tensor.to(target) for tensor in tensors], dim)


def _gather_out(tensors, out, dim):
    _on_cuda(tensors)
    return _broadcast_out(torch.cat([tensor.to(out.device) for tensor in tensors], dim), [out])[0]


# torch.cuda.nccl: collectives over the devices of one process. `op` is NCCL's number of the operation.
def _reduced(tensors, op, target):
    functions = [torch.add, torch.mul, torch.maximum, torch.minimum]
    if op >= len(functions):
        raise NotImplementedError(f"torch.cuda.nccl: reduction {op} on virtual GPUs")
    total = tensors[0].to(target, copy=True)
    for tensor in tensors[1:]:
        total = functions[op](total, tensor.to(target))
    return total


def _nccl_version():
    return 2 << 32 | 21 << 16 | 5


def _nccl_version_suffix():
    return b""


def _nccl_unique_id():
    return os.urandom(128)


def _nccl_all_reduce(inputs, outputs, op, streams, comms):
    _on_cuda(inputs)
    total = _reduced(inputs, op, inputs[0].device)
    for output in outputs:
        output.copy_(total)


def _nccl_reduce(inputs, output, root, op, streams, comms):
    _on_cuda(inputs)
    output.copy_(_reduced(inputs, op, output.device))


def _nccl_broadcast(inputs, root, streams, comms):
    _on_cuda(inputs)
    for each in inputs:
        each.copy_(inputs[root])


def _nccl_all_gather(inputs, outputs, streams, comms):
    _on_cuda(inputs)
    for output in outputs:
        output.copy_(torch.cat([each.flatten().to(output.device) for each in inputs]).view_as(output))


def _nccl_reduce_scatter(inputs, outputs, op, streams, comms):
    _on_cuda(inputs)
    parts = _reduced(inputs, op, inputs[0].device).flatten().chunk(len(outputs))
    for output, part in zip(outputs, parts):
        output.copy_(part.view_as(output))
