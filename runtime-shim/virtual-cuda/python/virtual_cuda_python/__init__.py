"""The Python half of the virtual GPUs: makes a CPU build of PyTorch look like a CUDA build.

libvirtual_cuda.so, which is preloaded, imports this package right before the process imports torch. It waits for
torch._C, PyTorch's extension, and adds what torch._C has in a CUDA build. All else is PyTorch's own code:
torch/cuda/*.py finds in torch._C what it looks for.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Loader:
    """Loads a module as its own loader does, with something before and after it."""

    def __init__(self, loader, before, after):
        self.loader, self.before, self.after = loader, before, after

    def create_module(self, spec):
        self.before(spec.origin)
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.after(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class TorchFinder:
    """Finds torch and torch._C where they are, and nothing else."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in ("torch", "torch._C"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if not spec or not spec.loader:
            return spec
        # torch/__init__.py of a CUDA build loads CUDA's libraries before torch._C.
        steps = (refuse_cuda_build, complete_torch) if name == "torch" else (start_devices, complete_torch_c)
        spec.loader = Loader(spec.loader, *steps)
        return spec


def complete_torch(torch):
    from . import torch_package

    torch_package.complete(torch)


def complete_torch_c(torch_c):
    native = load_native(torch_c)
    from . import torch_c as additions

    additions.complete(torch_c, native)


def refuse_cuda_build(origin):
    package = os.path.dirname(origin)
    if not os.path.exists(os.path.join(package, "lib", "libtorch_cuda.so")):
        return
    raise ImportError(
        f"virtual GPUs need a CPU build of PyTorch, and {package} is a CUDA build; install a CPU build of the same "
        "version: pip install --force-reinstall torch==VERSION --index-url https://download.pytorch.org/whl/cpu"
    )


def start_devices(extension):
    ctypes.CDLL(extension)  # LibTorch, before Python code of it runs
    start = ctypes.CDLL(None).virtual_cuda_start
    start.restype = ctypes.c_char_p
    problem = start()
    if problem:
        raise ImportError(f"virtual GPUs: {problem.decode(errors='replace')}")


def load_native(torch_c):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    release = ".".join(version_of(torch_c.__file__).split(".")[:2])
    path = os.path.join(FOLDER, f"native-{release}{suffix}")
    if not os.path.exists(path):
        raise ImportError(
            f"virtual GPUs for Python {sys.version_info.major}.{sys.version_info.minor} with PyTorch {release} are not "
            f"in {FOLDER} ({path} is missing); build them for this PyTorch: cmake -S runtime-shim -B BUILD "
            f"-DTORCH_ROOT={os.path.dirname(torch_c.__file__)}"
        )
    name = __name__ + ".native"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def version_of(extension):
    """PyTorch's version, without importing more of it."""
    spec = importlib.util.spec_from_file_location("version", os.path.join(os.path.dirname(extension), "version.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.__version__


def watch_torch():
    sys.meta_path.insert(0, TorchFinder)
