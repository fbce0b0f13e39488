"""The Python half of the virtual GPUs: makes a CPU build of PyTorch look like a CUDA build.

libvirtual_cuda.so, which is preloaded, imports this package right before the process imports torch. It waits for
torch._C, PyTorch's extension, and adds what torch._C has in a CUDA build. All else is PyTorch's own code:
torch/cuda/*.py finds in torch._C what it looks for.

With VIRTUAL_GPU_RECORDS_ONLY=1 PyTorch stays as it is, and only its errors are recorded.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
RECORDS_ONLY = os.environ.get("VIRTUAL_GPU_RECORDS_ONLY") == "1"


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
        if name not in steps():
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if not spec or not spec.loader:
            return spec
        spec.loader = Loader(spec.loader, *steps()[name])
        return spec


def steps():
    """What is done before and after a module runs."""
    if RECORDS_ONLY:
        return {"torch._C": (start, watch_torch_c)}
    # torch/__init__.py of a CUDA build loads CUDA's libraries before torch._C.
    return {"torch": (refuse_cuda_build, complete_torch), "torch._C": (start, complete_torch_c)}


def watch_torch_c(torch_c):
    native = load_native(torch_c, "records")
    from . import frames

    frames.watch(torch_c, native)


def complete_torch(torch):
    if "torch._C" not in sys.modules:
        return  # something else by that name, such as a torch.py beside the program
    from . import torch_package

    torch_package.complete(torch)


def complete_torch_c(torch_c):
    native = load_native(torch_c, "native")
    from . import torch_c as additions

    additions.complete(torch_c, native)


def refuse_cuda_build(origin):
    package = os.path.dirname(origin)
    for kind, library in (("CUDA", "libtorch_cuda.so"), ("ROCm", "libtorch_hip.so")):
        if os.path.exists(os.path.join(package, "lib", library)):
            version = version_of(package).split("+")[0]
            raise ImportError(
                f"virtual GPUs need a CPU build of PyTorch, and {package} is a {kind} build; install a CPU build of "
                f"the same version: {sys.executable} -m pip install --force-reinstall torch=={version} "
                f"--index-url {CPU_BUILDS}"
            )


def what_is_missing():
    return "device-run --explain" if RECORDS_ONLY else "virtual GPUs"


def start(extension):
    ctypes.CDLL(extension)  # LibTorch, before Python code of it runs
    native_start = ctypes.CDLL(None).virtual_cuda_start
    native_start.restype = ctypes.c_char_p
    problem = native_start()
    if problem:
        raise ImportError(f"{what_is_missing()}: {problem.decode(errors='replace')}")


def load_native(torch_c, kind):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    release = ".".join(version_of(os.path.dirname(torch_c.__file__)).split(".")[:2])
    path = os.path.join(FOLDER, f"{kind}-{release}{suffix}")
    if not os.path.exists(path):
        raise ImportError(
            f"{what_is_missing()}: there is nothing for Python {sys.version_info.major}.{sys.version_info.minor} with "
            f"PyTorch {release} ({path} is missing); build it for this PyTorch: cmake -S runtime-shim -B BUILD "
            f"-DTORCH_ROOT={os.path.dirname(torch_c.__file__)}"
        )
    name = f"{__name__}.{kind}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def version_of(package):
    """PyTorch's version, without importing more of it."""
    spec = importlib.util.spec_from_file_location("version", os.path.join(package, "version.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.__version__


def watch_torch():
    sys.meta_path.insert(0, TorchFinder)
    sys.excepthook = telling_of_missing_torch(sys.excepthook)


def telling_of_missing_torch(show):
    def show_and_tell(kind, exception, traceback):
        show(kind, exception, traceback)
        if isinstance(exception, ModuleNotFoundError) and exception.name == "torch":
            print(
                f"device-run: {sys.executable} has no PyTorch; name a Python that has it, or install it: "
                f"{sys.executable} -m pip install torch --index-url {CPU_BUILDS}",
                file=sys.stderr,
            )

    return show_and_tell
