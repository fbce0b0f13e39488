"""What virtual GPUs have not: a function or class of the name that says so, instead of a result that is wrong."""

FUNCTIONS = [
    "_cuda_getCurrentBlasHandle",
    "_cuda_getCurrentSolverHandle",
    "_cuda_getCublasWorkspaceSize",
    "_cuda_setCublasWorkspaceSize",
    "_cuda_resetCublasWorkspaceSize",
    "_cuda_getCublasLtWorkspaceSize",
    "_cuda_setCublasLtWorkspaceSize",
    "_cuda_resetCublasLtWorkspaceSize",
    "_cuda_hostMemoryStats",
    "_cuda_resetAccumulatedHostMemoryStats",
    "_cuda_resetPeakHostMemoryStats",
    "_cuda_memorySnapshot",
    "_cuda_setMemoryMetadata",
    "_cuda_getMemoryMetadata",
    "_cuda_record_memory_history",
    "_cuda_recordMemoryHistory",
    "_cuda_cudaCachingAllocator_set_allocator_settings",
    "_cuda_record_memory_history_legacy",
    "_cuda_allocationTraceback",
    "_cuda_attach_out_of_memory_observer",
    "_cuda_customAllocator",
    "_cuda_changeCurrentAllocator",
    "_cuda_getAllocator",
    "_cuda_beginAllocateToPool",
    "_cuda_beginAllocateCurrentThreadToPool",
    "_cuda_beginAllocateCurrentStreamToPool",
    "_cuda_endAllocateToPool",
    "_cuda_releasePool",
    "_cuda_checkPoolLiveAllocations",
    "_cuda_setCheckpointPoolState",
    "_cuda_getCheckpointState",
    "_construct_CUDA_Tensor_From_Storage_And_Metadata",
    "_graph_pool_handle",
    "_cuda_jiterator_compile_and_launch_kernel",
    "_nccl_init_rank",
    "_cuda_get_cudnn_benchmark_limit",
    "_cuda_set_cudnn_benchmark_limit",
    "_cuda_get_conv_benchmark_empty_cache",
    "_cuda_tunableop_enable",
    "_cuda_tunableop_is_enabled",
    "_cuda_tunableop_tuning_enable",
    "_cuda_tunableop_tuning_is_enabled",
    "_cuda_tunableop_set_max_tuning_duration",
    "_cuda_tunableop_get_max_tuning_duration",
    "_cuda_tunableop_set_max_tuning_iterations",
    "_cuda_tunableop_get_max_tuning_iterations",
    "_cuda_tunableop_set_filename",
    "_cuda_tunableop_get_filename",
    "_cuda_tunableop_write_file",
    "_cuda_tunableop_read_file",
    "_cuda_tunableop_get_results",
    "_cuda_tunableop_get_validators",
    "_cuda_tunableop_set_rotating_buffer_size",
    "_cuda_tunableop_get_rotating_buffer_size",
    "_cuda_tunableop_set_numerical_check_tolerances",
    "_cuda_record_untuned_enable",
    "_cuda_record_untuned_is_enabled",
    "_cuda_tunableop_write_file_on_exit",
]
CLASSES = ["_CUDAGraph", "_MemPool", "_cuda_CUDAAllocator", "_cuda_CUDAAllocator_AllocatorState", "_CUDAGreenContext"]


class Unsupported(NotImplementedError, RuntimeError):
    """Raised by what only a real GPU has; a RuntimeError, as PyTorch's own errors are."""


def message(name):
    return f"torch._C.{name}: virtual GPUs do not have this; run it on a real GPU, or leave it out"


def function(name):
    def refuse(*unused, **unused_names):
        raise Unsupported(message(name))

    refuse.__name__ = name
    return refuse


def refusing_class(name):
    def refuse(cls, *unused, **unused_names):
        raise Unsupported(message(name))

    return type(name, (), {"__new__": refuse})


def sync_debug_mode(mode):
    if mode not in (0, "default"):
        raise Unsupported("torch.cuda.set_sync_debug_mode: virtual GPUs do not see what synchronizes")


def complete(torch_c):
    for names, make in ((FUNCTIONS, function), (CLASSES, refusing_class)):
        for name in names:
            if not hasattr(torch_c, name):
                setattr(torch_c, name, make(name))
