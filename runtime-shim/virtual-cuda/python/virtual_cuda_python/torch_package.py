"""What is added to torch when torch/__init__.py is done."""

import functools
import warnings

from . import native


def complete(torch):
    enable_tensor_types(torch)
    enable_storages(torch)
    if hasattr(torch, "compile"):
        compile_without_triton(torch)
    torch.version.cuda = torch.version.cuda or "12.6"


def enable_tensor_types(torch):
    """torch.cuda.FloatTensor and its kin are there, but refuse to be called, or to be the default."""
    set_default = torch._C._set_default_tensor_type
    torch._C._set_default_tensor_type = lambda kind: native.set_default_tensor_type(set_default, kind)
    for name in dir(torch.cuda):
        kind = getattr(torch.cuda, name)
        if name.endswith("Tensor") and isinstance(kind, type(torch.FloatTensor)):
            native.enable_tensor_type(kind)


def enable_storages(torch):
    """torch.UntypedStorage(8, device="cuda"), which torch.load() calls."""
    new = torch.UntypedStorage.__new__

    def storage_of(tensor):
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()

    def new_storage(cls, *content, device=None, **options):
        if device is None or torch.device(device).type != "cuda":
            return new(cls, *content, **options, **({} if device is None else {"device": device}))
        if content and not isinstance(content[0], int):
            return storage_of(torch.tensor(list(content[0]), dtype=torch.uint8, device=device))
        return storage_of(torch.empty(content[0] if content else 0, dtype=torch.uint8, device=device))

    torch.UntypedStorage.__new__ = staticmethod(new_storage)
    resize = torch.UntypedStorage.resize_

    def resize_storage(self, size):
        if self.device.type != "cuda":
            return resize(self, size)
        native.resize_storage(self, size)
        return self

    torch.UntypedStorage.resize_ = resize_storage
    if torch.__version__.startswith("1."):
        complete_storages_of_1(torch.UntypedStorage)
    torch.UntypedStorage._share_cuda_ = lambda self: native.share_storage(self)
    torch.UntypedStorage._new_shared_cuda = staticmethod(native.attach_storage)
    torch.UntypedStorage._release_ipc_counter_cuda = staticmethod(native.release_storage)


def complete_storages_of_1(storages):
    """torch.save() and torch.load() in the format of before PyTorch 1.6, in which pickle has storages, too."""
    storages.get_device = lambda self: self.device.index if self.device.type == "cuda" else -1
    write, read = storages._write_file, storages._set_from_file

    def write_file(self, *arguments):
        return write(self.cpu(), *arguments)

    def read_file(self, *arguments):
        if self.device.type != "cuda":
            return read(self, *arguments)
        return self.copy_(read(storages(self.nbytes()), *arguments))

    storages._write_file, storages._set_from_file = write_file, read_file


def compile_without_triton(torch):
    """Inductor makes kernels for GPUs with Triton, which needs a real one: what it would compile runs as it is."""
    compile_model = torch.compile

    @functools.wraps(compile_model)
    def compile_for_virtual_gpus(*arguments, backend="inductor", **options):
        if backend == "inductor":
            warnings.warn("torch.compile: virtual GPUs have no Triton, so backend='eager' runs the graph", stacklevel=2)
            backend = "eager"
            options.pop("mode", None)
            options.pop("options", None)
        return compile_model(*arguments, backend=backend, **options)

    torch.compile = compile_for_virtual_gpus
