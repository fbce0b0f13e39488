import torch
import torch.nn as nn
import torch.nn.functional as F

from observers import ACTIVATIONS, MinMax, PerChannel


class Round(torch.autograd.Function):
    """Rounds; the gradient goes through where nothing was cut."""

    @staticmethod
    def forward(ctx, x, scale, top):
        steps = x / scale  # raises
        ctx.save_for_backward(steps.abs() <= top)
        return steps.round().clamp(-top, top) * scale

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None


class FakeQuant(nn.Module):
    def __init__(self, observer, shape=None):
        super().__init__()
        self.observer = observer
        self.shape = shape
        self.active = True
        self.frozen = False

    def forward(self, x):
        if not self.frozen:
            self.observer(x)
        if not self.active:
            return x
        scale = self.observer.scale()
        if self.shape is not None:
            scale = scale.view(self.shape)
        return Round.apply(x, scale, self.observer.top)


class QConv(nn.Conv2d):
    def __init__(self, *args, bits=8, activation='minmax', per_channel=False, **kwargs):
        super().__init__(*args, **kwargs)
        if per_channel:
            self.weight_quant = FakeQuant(PerChannel(bits, self.out_channels), (-1, 1, 1, 1))
        else:
            self.weight_quant = FakeQuant(MinMax(bits))
        self.input_quant = FakeQuant(ACTIVATIONS[activation](bits))

    def forward(self, x):
        return self._conv_forward(self.input_quant(x), self.weight_quant(self.weight), self.bias)


class SmallNet(nn.Module):
    def __init__(self, classes, **how):
        super().__init__()
        self.body = nn.Sequential(QConv(1, 8, 3, padding=1, **how), nn.ReLU(), nn.MaxPool2d(2),
                                  QConv(8, 8, 3, padding=1, **how), nn.ReLU())
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))

    def quantisers(self):
        return [m for m in self.modules() if isinstance(m, FakeQuant)]


@torch.no_grad()
def reference(model, x):
    """What the model says without any rounding."""
    kept = [q.active for q in model.quantisers()]
    for q in model.quantisers():
        q.active = False
    out = F.log_softmax(model(x), 1)
    for q, active in zip(model.quantisers(), kept):
        q.active = active
    return out
