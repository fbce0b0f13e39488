"""apply() runs the program's forward() with a context, and its backward() for what it may find there."""

import dt
import torch


class Context:
    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def __getattr__(self, name):
        return dt.unknown()


@dt.models("torch.autograd.Function", "torch.autograd.function.Function")
class Function:
    @classmethod
    def apply(cls, *inputs):
        ctx = Context()
        if hasattr(cls, "setup_context"):
            output = cls.forward(*inputs)
            cls.setup_context(ctx, inputs, output)
        else:
            output = cls.forward(ctx, *inputs)
        outputs = output if isinstance(output, tuple) else (output,)
        gradients = [torch.empty_like(each) if torch.is_tensor(each) else each for each in outputs]
        dt.apart(cls.backward, ctx, *gradients)
        return output
