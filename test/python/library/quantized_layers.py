"""Fake quantization, observers, packed weights, calibration and mixed layers."""
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Callable, Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

OBSERVERS: Dict[str, Callable] = {}


def observer(name):
    def add(cls):
        OBSERVERS[name] = cls
        return cls
    return add


@dataclass
class QuantConfig:
    bits: int = 8
    symmetric: bool = True
    per_channel: bool = False
    observer: str = "minmax"
    group: int = 4
    outliers: int = 2

    @property
    def levels(self):
        return 2 ** self.bits - 1

    @property
    def bounds(self):
        half = 2 ** (self.bits - 1)
        return (-half, half - 1) if self.symmetric else (0, self.levels)

    def make_observer(self):
        return OBSERVERS[self.observer](self)


class RoundSTE(torch.autograd.Function):
    """Rounds, and passes the gradient where nothing was clipped."""

    @staticmethod
    def forward(ctx, value, scale, low, high):
        scaled = value / scale
        ctx.save_for_backward((scaled >= low) & (scaled <= high))
        return scaled.round().clamp(low, high) * scale

    @staticmethod
    def backward(ctx, gradient):
        inside, = ctx.saved_tensors
        return gradient * inside, None, None, None


class ObserverBase(nn.Module):
    """Template: subclasses say how a new batch changes the range."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.enabled = True

    def observe(self, value):
        raise NotImplementedError

    def range(self):
        raise NotImplementedError

    def forward(self, value):
        if self.enabled:
            self.observe(value.detach())
        return value

    def scale(self):
        low, high = self.range()
        if self.config.symmetric:
            return torch.maximum(low.abs(), high.abs()).clamp(min=1e-8) / self.config.bounds[1]
        return (high - low).clamp(min=1e-8) / self.config.levels


@observer("minmax")
class MinMaxObserver(ObserverBase):
    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("low", torch.tensor(float("inf")))
        self.register_buffer("high", torch.tensor(float("-inf")))

    def observe(self, value):
        self.low.copy_(torch.minimum(self.low, value.min()))
        self.high.copy_(torch.maximum(self.high, value.max()))

    def range(self):
        return self.low, self.high


@observer("ema")
class EMAObserver(ObserverBase):
    def __init__(self, config, momentum=0.9):
        super().__init__(config)
        self.momentum = momentum
        self.low, self.high = torch.zeros(()), torch.zeros(())

    def observe(self, value):
        self.low = self.momentum * self.low + (1 - self.momentum) * value.min()
        self.high = self.momentum * self.high + (1 - self.momentum) * value.max()

    def range(self):
        return self.low, self.high


@observer("channel_ema")
class ChannelObserver(ObserverBase):
    def __init__(self, config, channels=6, momentum=0.9):
        super().__init__(config)
        self.momentum = momentum
        self.peak = torch.zeros(channels)

    def observe(self, value):
        fresh = value.flatten(0, -2).abs().amax(0)
        self.peak.mul_(self.momentum).add_(fresh, alpha=1 - self.momentum)  # raises

    def range(self):
        return -self.peak, self.peak


@observer("histogram")
class HistogramObserver(ObserverBase):
    def __init__(self, config, bins=32, top=4.0):
        super().__init__(config)
        self.edges = np.linspace(0, top, bins + 1)
        self.counts = np.zeros(bins, dtype=np.int64)
        self.home: Optional[torch.device] = None

    def observe(self, value):
        self.home = value.device
        self.counts += np.histogram(value.abs().cpu().numpy(), bins=self.edges)[0]

    def quantile(self, share=0.99):
        position = int(np.searchsorted(np.cumsum(self.counts), share * self.counts.sum()))
        return float(self.edges[min(position + 1, len(self.edges) - 1)])

    def range(self):
        top = torch.tensor(self.quantile(), device=self.home)
        return -top, top

    def weighted_error(self, scale):
        centers = torch.from_numpy((self.edges[1:] + self.edges[:-1]) / 2).to(scale)
        error = (centers - (centers / scale).round() * scale).pow(2)
        return (error * torch.from_numpy(self.counts)).sum() / self.counts.sum()  # raises


class FakeQuantize(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.observer = config.make_observer()

    def forward(self, value):
        value = self.observer(value)
        return RoundSTE.apply(value, self.observer.scale(), *self.config.bounds)


class QuantLinear(nn.Linear):
    """Linear layer with fake quantized weight and input."""

    def __init__(self, inputs, outputs, config=QuantConfig()):
        super().__init__(inputs, outputs)
        self.config = config
        self.input_quant = FakeQuantize(config)

    @property
    def channel_scale(self):
        return self.weight.detach().abs().amax(1, keepdim=True).clamp(min=1e-8) / self.config.bounds[1]

    def quantized_weight(self):
        return RoundSTE.apply(self.weight, self.channel_scale, *self.config.bounds)

    def forward(self, value):
        return F.linear(self.input_quant(value), self.quantized_weight(), self.bias)  # raises

    def sensitivity(self):
        error = (self.quantized_weight() - self.weight).detach().pow(2).mean(1)
        ranks = np.argsort(-error.cpu().numpy()).copy()
        return error[torch.from_numpy(ranks)]


class PackedLinear(nn.Module):
    """Two 4-bit codes in one byte, looked up in a codebook."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.shape = (outputs, inputs)
        self.register_buffer("packed", torch.zeros(outputs * inputs // 2, dtype=torch.uint8))
        self.register_buffer("scale", torch.ones(outputs, 1))
        self.code = torch.linspace(-1, 1, 16)

    @classmethod
    def from_linear(cls, linear):
        layer = cls(linear.out_features, linear.in_features)
        weight = linear.weight.detach().cpu()
        layer.scale.copy_(weight.abs().amax(1, keepdim=True))
        distance = (weight / layer.scale).flatten().unsqueeze(1) - layer.code
        index = distance.abs().argmin(1).to(torch.uint8)
        layer.packed.copy_(index[0::2] * 16 + index[1::2])
        return layer.to(linear.weight.device)

    def indices(self):
        low, high = self.packed % 16, torch.div(self.packed, 16, rounding_mode="floor")
        return torch.stack([high, low], 1).flatten().long()

    def dequantize(self):
        return self.code[self.indices()].view(self.shape) * self.scale  # raises

    def dequantize_host(self):
        return self.code[self.indices().cpu()].view(self.shape).to(self.scale.device) * self.scale

    def forward(self, value, host=True):
        return F.linear(value, self.dequantize_host() if host else self.dequantize())


class OutlierLinear(nn.Module):
    """The columns of largest activations stay in full precision."""

    def __init__(self, linear, config):
        super().__init__()
        self.inner = linear
        self.config = config
        self.columns: Optional[torch.Tensor] = None

    def calibrate(self, batches):
        peaks = torch.stack([each.abs().amax(0) for each in batches]).amax(0)
        self.columns = peaks.topk(self.config.outliers).indices.cpu()
        return self

    def split(self, value):
        regular = value.clone()
        regular[:, self.columns] = 0.0
        return regular, value[:, self.columns]

    def forward(self, value):
        regular, outliers = self.split(value)
        scale = regular.abs().max() / 127
        rounded = (regular / scale).round() * scale
        return self.inner(rounded) + outliers @ self.inner.weight[:, self.columns].t()

    def merged(self, value):
        regular, outliers = self.split(value)
        return self.inner(regular.index_add(1, self.columns, outliers))  # raises


class GroupQuantizer:
    """GPTQ in small: columns one by one, the error spread by the inverse Hessian."""

    def __init__(self, layer, config, damp=0.1):
        self.layer, self.config, self.damp = layer, config, damp
        self.hessian = torch.zeros(layer.in_features, layer.in_features)
        self.samples = 0

    def add_batch(self, value):
        self.hessian += (value.t() @ value).cpu()
        self.samples += value.size(0)

    def add_batch_running(self, value):
        self.hessian.mul_(self.samples / (self.samples + value.size(0)))
        self.hessian.addmm_(value.t(), value)  # raises
        self.samples += value.size(0)

    def inverse(self):
        damped = self.hessian / max(self.samples, 1) + self.damp * torch.eye(len(self.hessian))
        return torch.cholesky_inverse(torch.linalg.cholesky(damped))

    def run(self, weight, inverse):
        weight = weight.detach().clone()
        scale = weight.abs().amax(1) / self.config.bounds[1]
        for column in range(weight.size(1)):
            rounded = (weight[:, column] / scale).round() * scale
            error = (weight[:, column] - rounded) / inverse[column, column]
            weight[:, column] = rounded
            self.spread(weight, error, inverse[column], column)
        return weight

    def spread(self, weight, error, row, column):
        weight[:, column + 1:] -= torch.outer(error, row[column + 1:])  # raises

    def apply(self, where="weight"):
        inverse = self.inverse()
        if where == "weight":
            inverse = inverse.to(self.layer.weight)
            self.layer.weight.data = self.run(self.layer.weight, inverse)
        elif where == "host":
            self.layer.weight.data.copy_(self.run(self.layer.weight.cpu(), inverse))
        else:
            self.layer.weight.data.copy_(self.run(self.layer.weight, inverse))
        return self.layer


class ActivationRecorder:
    """Hooks that keep what layers get and give."""

    def __init__(self, reduce: Optional[Callable] = None):
        self.reduce = reduce or (lambda value: value.detach())
        self.kept: Dict[str, List[torch.Tensor]] = OrderedDict()

    def _hook(self, name, module, inputs, output):
        self.kept.setdefault(name, []).append(self.reduce(output))

    @contextmanager
    def watching(self, model, kinds=(nn.Linear,)):
        handles = [module.register_forward_hook(partial(self._hook, name))
                   for name, module in model.named_modules() if isinstance(module, kinds)]
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    def joined(self, name):
        return torch.cat(self.kept[name])

    def signal_to_noise(self, other, name):
        clean, noisy = self.joined(name), other.joined(name)
        return clean.pow(2).sum() / (clean - noisy).pow(2).sum().clamp(min=1e-8)  # raises

    def report(self):
        return {name: float(np.mean([each.abs().mean().item() for each in values])) for name, values in self.kept.items()}


def offload(value):
    return value.detach().to("cpu", copy=True)


class LearnedStep(nn.Module):
    """LSQ: a step learned with the weight, initialised at the first call."""

    def __init__(self, config, ready=False):
        super().__init__()
        self.config = config
        self.step = nn.Parameter(torch.ones(1))
        self.ready = ready

    def initialise(self, value):
        start = 2 * value.detach().abs().mean() / self.config.levels ** 0.5
        self.step.data.fill_(start.item())
        self.ready = True

    def reinitialise(self, value):
        del self.step
        self.step = nn.Parameter(torch.full((1,), float(value.detach().abs().mean())))
        self.ready = True

    def forward(self, value):
        if not self.ready:
            self.initialise(value)
        scaled = value / self.step  # raises
        return (scaled + (scaled.round() - scaled).detach()) * self.step


class Calibrator:
    """Swaps layers of a model, and keeps the float copy as the reference."""

    def __init__(self, model, config):
        self.config = config
        self.reference = {name: each.detach().cpu().clone() for name, each in model.named_parameters()}
        self.model = self.swap(model)

    def swap(self, parent):
        for name, child in parent.named_children():
            if isinstance(child, nn.Linear):
                setattr(parent, name, self.build(child))
            else:
                self.swap(child)
        return parent

    def build(self, linear):
        layer = QuantLinear(linear.in_features, linear.out_features, self.config)
        layer.load_state_dict(linear.state_dict(), strict=False)
        return layer

    def calibrate(self, batches):
        return [self.model(each).mean().item() for each in batches]

    def restore(self):
        self.model.load_state_dict(self.reference, strict=False)
        return self

    def drift(self):
        parameters = dict(self.model.named_parameters())
        return sum(F.mse_loss(parameters[name], value) for name, value in self.reference.items())  # raises


class LegacyCalibrator(Calibrator):
    def calibrate(self, batches):
        home = next(iter(batches)).device
        self.model.to(home)
        return super().calibrate(batches)
