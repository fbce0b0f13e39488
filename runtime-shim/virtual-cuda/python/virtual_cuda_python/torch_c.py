"""Adds to torch._C what a CUDA build has there."""

from . import comm, cudart, frames, nccl, nvtx, refusals, streams

STATE = {
    "_cuda_getArchFlags": "sm_80",
    "_cuda_getCompiledVersion": 12060,
    "_cuda_getAllocatorBackend": "native",
    "_cuda_cudaCachingAllocator_is_enabled": True,
    "_accelerator_isAllocatorInitialized": True,
    "_cuda_isCurrentStreamCapturing": False,
    "_cuda_isHistoryEnabled": False,
    "_cuda_get_sync_debug_mode": 0,
}
# Work is done when a call returns, and memory is given back when it is freed.
NOTHING_TO_DO = [
    "_cuda_synchronize",
    "_cuda_ipc_collect",
    "_cuda_emptyCache",
    "_cuda_sleep",
    "_cuda_clearCublasWorkspaces",
    "_cuda_lock_mutex",
    "_cuda_unlock_mutex",
    "_cuda_cudaCachingAllocator_enable",
    "_host_emptyCache",
    "_accelerator_emptyCache",
    "_accelerator_emptyHostCache",
    "_jit_set_nvfuser_enabled",
]
# torch.accelerator asks for the allocator of a class that only the devices of LibTorch have.
OF_ANY_ACCELERATOR = {
    "_accelerator_getDeviceStats": "_cuda_memoryStats",
    "_accelerator_resetAccumulatedStats": "_cuda_resetAccumulatedMemoryStats",
    "_accelerator_resetPeakStats": "_cuda_resetPeakMemoryStats",
    "_accelerator_getMemoryInfo": "memory_info",
}


def complete(torch_c, native):
    additions = {name: getattr(native, name) for name in dir(native) if name.startswith(("_c", "_C"))}
    additions |= {name: lambda value=value: value for name, value in STATE.items()}
    additions |= {name: lambda *unused: None for name in NOTHING_TO_DO}
    additions |= {name: getattr(native, known) for name, known in OF_ANY_ACCELERATOR.items()}
    additions |= comm.functions()
    additions |= (streams.classes if hasattr(torch_c, "Event") else streams.classes_of_1)(torch_c, native)
    additions["_cudart"] = cudart.module(native)
    additions["_nvtx"] = nvtx.module()
    additions["_cuda_set_sync_debug_mode"] = refusals.sync_debug_mode
    additions["_has_cuda"] = additions["has_cuda"] = True
    for name, value in additions.items():
        setattr(torch_c, name, value)
    refusals.complete(torch_c)
    nccl.enable(torch_c, native)
    frames.watch(torch_c, native)
