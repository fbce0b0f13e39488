from __future__ import annotations

import abc
import enum
import functools
import operator
import weakref
from argparse import Namespace
from collections import ChainMap, UserDict, namedtuple
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import Any, Callable, ClassVar, Dict, Generic, Iterable, Mapping, Optional, Type, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

T = TypeVar("T")


class Registry(Generic[T]):
    def __init__(self, name):
        self.name, self._items = name, {}

    def register(self, key=None):
        def deco(obj):
            self._items[key or obj.__name__.lower()] = obj
            return obj
        return deco

    def build(self, cfg: Mapping, **extra):
        cfg = dict(cfg)
        return self._items[cfg.pop("type")](**cfg, **extra)

    def __getitem__(self, key):
        return self._items[key]


LAYERS: Registry = Registry("layers")
TRANSFORMS: Registry = Registry("transforms")


@LAYERS.register("scale")
class Scale(nn.Module):
    def __init__(self, init=1.0, size=3):
        super().__init__()
        self.gain = nn.Parameter(torch.full((size,), init))

    def forward(self, x):
        return x * self.gain


@LAYERS.register("shift")
class Shift(nn.Module):
    def __init__(self, by=0.5, size=3):
        super().__init__()
        self.by = torch.full((size,), by)

    def forward(self, x):
        return x + self.by  # raises


@LAYERS.register("clip")
class Clip(nn.Module):
    def __init__(self, low=-1.0, high=1.0):
        super().__init__()
        self.low, self.high = torch.tensor(low), torch.tensor(high)

    def forward(self, x):
        return torch.maximum(torch.minimum(x, self.high), self.low)


def build_sequence(configs, device):
    return nn.Sequential(*(LAYERS.build(c) for c in configs)).to(device)


def case_registry_scale_and_clip():
    net = build_sequence([dict(type="scale", init=2.0), dict(type="clip", high=0.7)], "cuda")
    return net(torch.randn(4, 3, device="cuda"))


def case_registry_with_shift():
    net = build_sequence([{"type": "scale"}, {"type": "shift", "by": 1.5}], torch.device("cuda:1"))
    return net(torch.randn(4, 3).to("cuda:1"))


@dataclass
class Sample:
    image: Tensor
    mask: Optional[Tensor] = None
    meta: Dict[str, Any] = field(default_factory=dict)

    def to(self, device) -> "Sample":
        return replace(self, image=self.image.to(device), mask=None if self.mask is None else self.mask.to(device))

    def cuda(self) -> "Sample":
        for f in fields(self):
            value = getattr(self, f.name)
            if torch.is_tensor(value):
                setattr(self, f.name, value.cuda())
        return self

    def masked(self):
        return self.image * self.mask  # raises


def case_sample_cuda_in_place():
    s = Sample(torch.rand(2, 4), torch.rand(2, 4) > 0.5)
    s.cuda()
    return s.masked().sum() + torch.ones((), device="cuda")


def case_sample_mask_added_later():
    s = Sample(torch.rand(2, 4)).to("cuda")
    s.mask = torch.rand(s.image.shape) > 0.5
    return s.masked()


class Batch(UserDict):
    def to(self, device, keys=None):
        for k in keys or self.data:
            if isinstance(self.data[k], Tensor):
                self.data[k] = self.data[k].to(device)
        return self

    def __getattr__(self, name):
        if name.startswith("_") or name == "data":
            raise AttributeError(name)
        return self.data[name]


def case_batch_moved_in_place():
    batch = Batch(x=torch.randn(3, 2), y=torch.randn(3, 2), name="train")
    batch.to("cuda")
    return (batch.x - batch["y"]).abs().max() < torch.full((1,), 50.0, device=batch.x.device)


def case_batch_moves_listed_keys():
    batch = Batch(x=torch.randn(3, 2), y=torch.randn(3, 2), weight=torch.ones(3))
    batch.to("cuda", keys=("x", "y"))
    err = (batch.x - batch.y).pow(2).mean(-1)
    return (err * batch.weight).mean()  # raises


def move_to(obj, device):
    if torch.is_tensor(obj):
        return obj.to(device)
    if isinstance(obj, dict):
        return type(obj)((k, move_to(v, device)) for k, v in obj.items())
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(move_to(v, device) for v in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(move_to(v, device) for v in obj)
    return obj


Pair = namedtuple("Pair", ["left", "right"])


def case_nested_batch_moved():
    batch = {"pair": Pair(torch.randn(2, 3), [torch.randn(2, 3)] * 2), "n": 2, "ids": (torch.arange(2),)}
    moved = move_to(batch, "cuda:1")
    total = moved["pair"].left + sum(moved["pair"].right) / moved["n"]
    return total[moved["ids"][0]]


def case_nested_batch_original_used():
    batch = {"pair": Pair(torch.randn(2, 3), [torch.randn(2, 3)] * 2), "target": torch.zeros(2)}
    moved = move_to(batch, "cuda:1")
    score = moved["pair"].left.mul(moved["pair"].right[0]).sum(-1)
    return (score - batch["target"]).abs().sum()  # raises


class Phase(enum.Enum):
    WARMUP = "warmup"
    TRAIN = "train"
    EVAL = "eval"


class StateMachine:
    table: ClassVar[Dict[Phase, Phase]] = {Phase.WARMUP: Phase.TRAIN, Phase.TRAIN: Phase.EVAL, Phase.EVAL: Phase.TRAIN}

    def __init__(self, dim, device):
        self.phase = Phase.WARMUP
        self.device = device
        self.running = torch.zeros(dim)
        self.weight = torch.randn(dim, device=device)

    def enter(self, phase):
        if phase is Phase.TRAIN:
            self.running = self.running.to(self.device)
        self.phase = phase

    def feed(self, x):
        if self.phase is Phase.WARMUP:
            self.running += x.mean(0).cpu()
        elif self.phase is Phase.TRAIN:
            self.running = self.running * 0.9 + (x * self.weight).mean(0) * 0.1
        else:
            return (x - self.running) * self.weight
        return None

    def advance(self):
        self.enter(self.table[self.phase])


def case_state_machine_phases():
    m = StateMachine(3, torch.device("cuda"))
    x = torch.randn(4, 3).cuda()
    outs = []
    for _ in range(3):
        outs.append(m.feed(x))
        m.advance()
    return outs[-1].norm()


@contextmanager
def evaluating(model, device=None):
    was = model.training
    origin = next(model.parameters()).device
    model.eval()
    if device is not None:
        model.to(device)
    try:
        yield model
    finally:
        model.to(origin).train(was)


def case_model_moved_for_evaluation():
    model = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    with evaluating(model, "cuda") as m, torch.no_grad():
        y = m(x.cuda())
    return model(x) - y.cpu()


def case_model_back_on_host_after_context():
    model = nn.Linear(3, 2)
    x = torch.randn(4, 3).cuda()
    with evaluating(model, x.device) as m:
        first = m(x)
    second = model(x)  # raises
    return first - second


def stream(n, device=None):
    for i in range(n):
        item = {"x": torch.full((2, 2), float(i)), "id": i}
        if device is not None:
            item["x"] = item["x"].to(device)
        yield item


def windowed(source, size):
    window = []
    for item in source:
        window.append(item["x"])
        if len(window) == size:
            yield torch.stack(window)
            window = window[1:]


def case_windows_of_moved_stream():
    kernel = torch.ones(2, 2, device="cuda")
    return [(w * kernel).sum().item() for w in windowed(stream(4, "cuda"), 2)]


def case_windows_of_plain_stream():
    kernel = torch.ones(2, 2, device="cuda")
    total = torch.zeros((), device="cuda")
    for w in windowed(stream(4), 2):
        total += w.mean()
        total = total + torch.einsum("nij,jk->nik", w, kernel).sum()  # raises
    return total


def compose(*fns):
    return functools.reduce(lambda f, g: lambda x: g(f(x)), fns)


def standardize(mean, std):
    def apply(x):
        return (x - mean) / std
    return apply


def case_composed_closures():
    data = torch.randn(10, 3)
    mean, std = data.mean(0), data.std(0)
    fn = compose(torch.Tensor.cuda, standardize(mean.cuda(), std.cuda()), torch.tanh)
    return fn(data)


def case_closures_with_fitted_statistics():
    data = torch.randn(10, 3)
    stats = data.mean(0).cuda(), data.std(0)
    shift = lambda x: x - stats[0]
    scale = lambda x: x / stats[1]  # raises
    return compose(torch.Tensor.cuda, shift, scale, torch.tanh)(data)


class LazyTable:
    def __init__(self, size):
        self.size = size

    @functools.cached_property
    def powers(self):
        return torch.arange(self.size).float() ** 2

    def on(self, device):
        if self.powers.device != torch.device(device):
            self.powers = self.powers.to(device)
        return self.powers


def case_cached_property_moved_on_demand():
    table = LazyTable(4)
    x = torch.ones(4, device="cuda:0")
    return x * table.on(x.device) + x.to("cuda:1").mul(table.on("cuda:1")).cpu().cuda()


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1), None


class PiecewiseQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, edges):
        ctx.edges = edges
        ctx.save_for_backward(x)
        idx = torch.bucketize(x.detach().cpu(), edges)
        return idx.to(x.device, x.dtype)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        inside = (x > ctx.edges[0]) & (x < ctx.edges[-1])
        width = (ctx.edges[1:] - ctx.edges[:-1]).mean()
        near = (x[..., None] - ctx.edges).abs().amin(-1)  # raises
        return grad * inside * (near / width), None


def case_custom_function_rounding():
    x = torch.randn(5, device="cuda", requires_grad=True)
    StraightThrough.apply(x, 7).sum().backward()
    return x.grad


def case_custom_function_edges():
    x = torch.randn(5, device="cuda", requires_grad=True)
    y = PiecewiseQuant.apply(x, torch.linspace(-2, 2, 5))
    y.sum().backward()
    return x.grad


def fake_quant(x: Tensor, bits=4, axis=None):
    if axis is None:
        scale = x.abs().max() / (2 ** (bits - 1) - 1)
        zero = torch.tensor(0.0)
        return ((x / scale + zero).round() - zero) * scale
    scale = x.abs().amax(axis, keepdim=True) / (2 ** (bits - 1) - 1)
    zero = torch.zeros(scale.shape)
    return ((x / scale + zero).round() - zero) * scale  # raises


def case_fake_quant_per_tensor():
    return fake_quant(torch.randn(3, 4, device="cuda")).unique().numel()


def case_fake_quant_per_channel():
    w = nn.Linear(4, 3).cuda().weight
    return fake_quant(w, axis=1)
