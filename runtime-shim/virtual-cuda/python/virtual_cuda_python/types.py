"""torch.cuda.FloatTensor and its kin, and torch.set_default_tensor_type() of them."""


def enable(torch_c, native):
    initialize = torch_c._initExtension

    def with_cuda_types(*arguments):
        """Called by torch/__init__.py; it makes the types."""
        initialize(*arguments)
        import torch
        for name in dir(torch.cuda):
            kind = getattr(torch.cuda, name)
            if name.endswith("Tensor") and isinstance(kind, type(torch.FloatTensor)):
                native.enable_tensor_type(kind)
        torch.version.cuda = torch.version.cuda or "12.6"

    set_default = torch_c._set_default_tensor_type
    torch_c._initExtension = with_cuda_types
    torch_c._set_default_tensor_type = lambda kind: native.set_default_tensor_type(set_default, kind)
