"""torch.cuda.cudart(): the functions of the CUDA runtime that PyTorch offers to Python."""

import types


class cudaError(int):
    """As PyTorch has it: one value has a name, and every number is a value."""


cudaError.success = cudaError(0)


def module(native):
    cudart = types.ModuleType("torch._C._cudart")
    cudart.cudaError = cudaError
    cudart.cudaGetErrorString = lambda error: "no error" if error == cudaError.success else f"CUDA error {int(error)}"
    cudart.cudaMemGetInfo = native.memory_info
    # Host memory needs no registration to be copied from.
    for name in ("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister", "cudaHostUnregister"):
        setattr(cudart, name, lambda *unused: cudaError.success)
    return cudart
