import torch
from torch import nn


class FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        q = torch.round(x / scale)  # raises
        ctx.save_for_backward((q >= low) & (q <= high))
        return q.clamp(low, high) * scale

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None, None


class Observer:
    """Forward pre-hook that rounds the input of a layer to eight bits."""

    def __init__(self, channels, per_channel):
        self.per_channel = per_channel
        self.scale = torch.full((1, channels, 1, 1), 0.02) if per_channel else torch.tensor(0.02)

    def __call__(self, module, inputs):
        x, = inputs
        if not self.per_channel:
            self.scale = torch.maximum(self.scale, (x.detach().abs().max() / 127).cpu())
        return FakeQuantize.apply(x, self.scale, -128, 127)


def attach_observers(root, granularity):
    handles = []
    for module in root.modules():
        if isinstance(module, nn.ConvTranspose2d):
            handles.append(module.register_forward_pre_hook(Observer(module.in_channels, granularity == 'channel')))
    return handles


@torch.no_grad()
def prune_smallest(root, fraction):
    """Zeroes what is small; the masks are to be applied after each step."""
    masks = {}
    for name, p in root.named_parameters():
        if p.dim() > 1:
            flat = p.abs().flatten().cpu()
            threshold = flat.kthvalue(max(1, int(fraction * flat.numel()))).values
            masks[name] = (p.abs() > threshold).to(p.dtype)
            p.mul_(masks[name])
    return masks
