"""Every public name of the modules about CUDA in the installed PyTorch: it works, or it raises an error that names what
virtual GPUs do not have. A name that is new in a release fails here until it is known."""

import importlib
import inspect
import re
import tempfile
import unittest

import torch

MODULES = [
    "torch.cuda",
    "torch.cuda.memory",
    "torch.cuda.random",
    "torch.cuda.streams",
    "torch.cuda.graphs",
    "torch.cuda.nccl",
    "torch.cuda.comm",
    "torch.cuda.amp",
    "torch.cuda.nvtx",
    "torch.cuda.profiler",
    "torch.cuda.tunable",
    "torch.cuda.jiterator",
    "torch.cuda.gds",
    "torch.cuda.green_contexts",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.random",
    "torch.accelerator",
    "torch.amp",
    "torch.nn.parallel",
]


def cuda(*sizes):
    return torch.ones(*(sizes or (4,)), device="cuda")


# Arguments by the names of parameters.
ARGUMENTS = {
    "device": lambda: 0,
    "device_index": lambda: 0,
    "peer_device": lambda: 1,
    "index": lambda: 0,
    "mode": lambda: 0,
    "obj": cuda,
    "tensor": cuda,
    "tensors": lambda: [cuda(), cuda()],
    "inputs": lambda: [cuda(), cuda()],
    "devices": lambda: [0, 1],
    "seed": lambda: 7,
    "states": torch.cuda.get_rng_state_all,
    "new_states": torch.cuda.get_rng_state_all,
    "new_state": torch.cuda.get_rng_state,
    "stream": torch.cuda.current_stream,
    "val": lambda: True,
    "enabled": lambda: True,
    "fraction": lambda: 1.0,
    "size": lambda: 512,
    "bytes": lambda: 512,
    "msg": lambda: "text",
    "cycles": lambda: 10,
    "stream_ptr": lambda: 1,
    "data_ptr": lambda: 1,
    "filename": lambda: tempfile.mktemp(),
    "value": lambda: True,
    "flag": lambda: True,
    "res": lambda: 0,
    "metadata": lambda: "text",
    "path_to_so_file": lambda: "libc.so.6",
    "path": lambda: "libc.so.6",
    "alloc_fn_name": lambda: "malloc",
    "free_fn_name": lambda: "free",
    "allocator": lambda: torch.cuda.memory._CUDAAllocator(None),
    "dtype": lambda: torch.float32,
    "device_type": lambda: "cuda",
    "destination": lambda: 0,
    "num_ranks": lambda: 1,
    "uid": lambda: b"",
    "rank": lambda: 0,
    "callables": lambda: torch.nn.Linear(2, 2).cuda(),
    "sample_args": lambda: (cuda(1, 2),),
    "cuda_graph": torch.cuda.CUDAGraph,
    "code_string": lambda: "template <typename T> T f(T x) { return x; }",
    "fwd": lambda: lambda ctx, x: x,
    "bwd": lambda: lambda ctx, x: x,
    "func": lambda: lambda x: x,
    "duration": lambda: 1,
    "iterations": lambda: 1,
    "buffer_size": lambda: 1,
    "enable": lambda: True,
    "s": lambda: cuda().untyped_storage(),
    "params": lambda: torch._C._SDPAParams(
        cuda(1, 1, 2, 4), cuda(1, 1, 2, 4), cuda(1, 1, 2, 4), None, 0.0, False, False
    ),
    "module": lambda: torch.nn.Linear(2, 2).cuda(),
    "network": lambda: torch.nn.Linear(2, 2).cuda(),
    "target_gpus": lambda: [0, 1],
    "replicas": lambda: [torch.nn.Linear(2, 2).cuda(i) for i in range(2)],
    "modules": lambda: [torch.nn.ReLU(), torch.nn.ReLU()],
    "outputs": lambda: [cuda(), cuda()],
    "target_device": lambda: 0,
    "device_ids": lambda: [0],
    "opaque_size": lambda: 1,
    "filename_pattern": lambda: "none*.csv",
    "num_gpus": lambda: 1,
    "user_metadata": lambda: "text",
    "num_sms": lambda: 8,
    "event_handle": lambda: None,
    "backend": lambda: "default",
}
# Whole calls, where arguments depend on each other.
CALLS = {
    "caching_allocator_delete": lambda f: f(torch.cuda.caching_allocator_alloc(512)),
    "torch.random.set_rng_state": lambda f: f(torch.get_rng_state()),
    "nccl.all_gather": lambda f: f([cuda(), cuda()], [cuda(8), cuda(8)]),
    "nccl.reduce_scatter": lambda f: f([cuda(), cuda()], [cuda(2), cuda(2)]),
    "comm.broadcast": lambda f: f(cuda(), [0, 1]),
    "comm.scatter": lambda f: f(cuda(), [0, 1]),
    "torch.amp.custom_fwd": lambda f: f(lambda ctx, x: x, device_type="cuda"),
    "torch.amp.custom_bwd": lambda f: f(lambda ctx, x: x, device_type="cuda"),
    "parallel.data_parallel": lambda f: f(torch.nn.Linear(2, 2).cuda(), cuda(4, 2), [0, 1]),
    "cuda.SDPAParams": lambda f: f(*[cuda(1, 1, 2, 4)] * 3, None, 0.0, False, False),
}
SPECIAL = {
    "torch.cuda.gds.GdsFile": "opens files on a disk that a GPU can read",
    "torch.nn.parallel.DistributedDataParallel": "needs a process group",
    "torch.cuda.profiler.init": "removed from CUDA",
    "torch.nn.parallel.parallel_apply": "run by DataParallel's tests",
}
# Errors that a machine with GPUs gives as well: which names, and the text.
ALSO_WITH_GPUS = {
    r"cuda\.(clock_rate|device_memory_used|memory_usage|power_draw|temperature|utilization)": "(nvidia-ml-py|pynvml) ",
    r"gds\.gds_(de)?register_buffer": r"^RuntimeError: torch\._C\._gds_\w+ is not supported on this platform$",
    r"accelerator\.get_device_capability": r"^RuntimeError: Backend doesn't support getting device capabilities\.$",
    r"accelerator\.Graph": "^RuntimeError: Graph is not supported on device type: cuda$",
}
WRONG = [
    "not compiled with CUDA",
    "compiled without CUDA",
    "dummy base class",
    "has no attribute '_cuda",
    "has no attribute '_nccl",
    "INTERNAL ASSERT",
    "Could not run",
]


def public_names():
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue  # of another release
        names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            yield module_name + "." + name, getattr(module, name)


def arguments_of(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    needed = [
        each
        for each in parameters
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return [
        ARGUMENTS[each.name]() if each.name in ARGUMENTS else None
        for each in needed
        if each.name not in ("self", "cls")
    ]


def is_left_out(name, value):
    if name in SPECIAL or inspect.ismodule(value) or not callable(value) or name.endswith(("Storage", "Error")):
        return True
    return getattr(value, "__module__", None) in ("typing", "collections.abc")


def refuses(name, text):
    """Whether the error says what virtual GPUs do not have, or is that of a machine with GPUs."""
    known = (each for names, each in ALSO_WITH_GPUS.items() if re.search(names + "$", name))
    return "virtual GPUs" in text or any(re.search(each, text) for each in known)


class Names(unittest.TestCase):
    maxDiff = None

    def test_all(self):
        problems, works, refused = [], [], []
        for name, value in public_names():
            if is_left_out(name, value):
                continue
            try:
                call = next((CALLS[end] for end in CALLS if name.endswith(end)), lambda f: f(*arguments_of(f)))
                call(value)
                works.append(name)
            except Exception as error:  # noqa: BLE001
                text = f"{type(error).__name__}: {error}"
                if refuses(name, text):
                    refused.append(name)
                else:
                    problems.append(f"{name}: {text}")
                if any(each in text for each in WRONG):
                    problems.append(f"{name}: {text}")
            finally:
                torch.cuda.set_device(0)
        print(f"{len(works)} names work, {len(refused)} are refused: {', '.join(refused)}")
        self.assertEqual(problems, [])
        self.assertGreater(len(works), 120)


if __name__ == "__main__":
    unittest.main()
