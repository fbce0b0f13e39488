"""torch.cuda.nvtx: marks for NVIDIA's profilers, of which there is none. What it returns is as with one."""

import itertools
import threading
import types

_depth = threading.local()
_numbers = itertools.count(1)


def push(message):
    _depth.value = getattr(_depth, "value", 0) + 1
    return _depth.value - 1


def pop():
    _depth.value = getattr(_depth, "value", 0) - 1
    return max(_depth.value, -2)


def module():
    nvtx = types.ModuleType("torch._C._nvtx")
    nvtx.rangePushA, nvtx.rangePop = push, pop
    nvtx.rangeStartA = nvtx.deviceRangeStart = lambda *unused: next(_numbers)
    nvtx.rangeEnd = nvtx.deviceRangeEnd = nvtx.markA = lambda *unused: None
    return nvtx
