"""Library code in many styles: caches, partials, decorators, generators, properties, hooks, exceptions."""
import functools
import itertools
import weakref
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, TypedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@functools.lru_cache(maxsize=None)
def _window(length):
    return torch.hann_window(length)


@functools.lru_cache(maxsize=None)
def _window_on(length, device):
    return torch.hann_window(length, device=device)


def _windowed(signal, window):
    return signal.unfold(-1, window.numel(), 2) * window  # raises


def case_cached_window_by_device():
    first = _windowed(torch.randn(8, device="cuda:0"), _window_on(4, "cuda:0"))
    second = _windowed(torch.randn(8, device="cuda:1"), _window_on(4, "cuda:1"))
    return first.sum().item() + second.sum().item()


def case_cached_window_moved_by_user():
    signal = torch.randn(8, device="cuda:2")
    return _windowed(signal, _window(4).to(signal)).sum().item()


def case_cached_window():
    signal = torch.randn(8, device="cuda:2")
    return _windowed(signal, _window(4)).sum().item()


class KernelCache:
    """Gaussian kernels by width; the device is part of the key, or it is not."""

    def __init__(self, by_device):
        self.by_device = by_device
        self.kernels: Dict[Any, torch.Tensor] = {}

    def __call__(self, width, like):
        key = (width, like.device) if self.by_device else width
        if key not in self.kernels:
            at = torch.arange(width, device=like.device, dtype=like.dtype) - width // 2
            kernel = torch.exp(-at ** 2)
            self.kernels[key] = kernel / kernel.sum()
        return self.kernels[key]


def _smooth(cache, x):
    kernel = cache(3, x)
    return F.conv1d(x[None, None], kernel[None, None], padding=1)[0, 0]  # raises


def case_kernels_cached_by_device_and_width():
    cache = KernelCache(by_device=True)
    return [_smooth(cache, torch.ones(5, device=device)).sum().item() for device in ("cpu", "cuda:0", "cuda:1")]


def case_kernels_cached_by_width():
    cache = KernelCache(by_device=False)
    return [_smooth(cache, torch.ones(5, device=device)).sum().item() for device in ("cuda:0", "cuda:1")]


def _focal(logits, target, alpha=None, gamma=2.0):
    logs = F.log_softmax(logits, dim=-1)
    picked = logs.gather(1, target[:, None]).squeeze(1)
    loss = -((1 - picked.exp()) ** gamma) * picked
    if alpha is not None:
        loss = loss * alpha[target]  # raises
    return loss.mean()


LOSSES: Dict[str, Callable] = {
    "plain": F.cross_entropy,
    "focal": _focal,
    "balanced": functools.partial(_focal, alpha=torch.tensor([0.2, 0.3, 0.5])),
    "scaled": lambda logits, target: F.cross_entropy(logits * torch.tensor(0.5), target),
}


def _loss_named(name):
    logits = torch.randn(4, 3, device="cuda", requires_grad=True)
    target = torch.tensor([0, 1, 2, 1]).to(logits.device)
    loss = LOSSES[name](logits, target)
    loss.backward()
    return loss.item()


def case_losses_of_the_registry():
    return [_loss_named(name) for name in ("plain", "focal", "scaled")]


def case_balanced_loss_of_the_registry():
    return _loss_named("balanced")


def case_partial_made_for_the_device():
    device = torch.device("cuda")
    loss = functools.partial(_focal, alpha=torch.tensor([0.2, 0.3, 0.5], device=device), gamma=1.0)
    make = functools.partial(torch.zeros, device=device)
    return loss(make(2, 3) + 1, make(2, dtype=torch.long)).item()


def _on(device):
    """Moves positional and named tensors before the call."""
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            args = [each.to(device) if torch.is_tensor(each) else each for each in args]
            kwargs = {key: each.to(device) if torch.is_tensor(each) else each for key, each in kwargs.items()}
            return function(*args, **kwargs)
        return wrapper
    return decorate


def _to_host(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        out = function(*args, **kwargs)
        return out.detach().cpu() if torch.is_tensor(out) else out
    return wrapper


@_on("cuda:1")
def _similarity(left, right, *, bias=None):
    scores = left @ right.t()
    return scores if bias is None else scores + bias


@_to_host
@_on("cuda:1")
def _similarity_on_host(left, right, **kwargs):
    return _similarity(left, right, **kwargs)


def case_decorated_similarity_to_array():
    left, right = torch.randn(2, 3), torch.randn(4, 3, device="cuda:0")
    return _similarity_on_host(left, right, bias=torch.ones(4)).numpy().shape


def case_decorated_similarity_compared_with_input():
    left, right = torch.randn(2, 3), torch.randn(4, 3)
    expected = left @ right.t()
    actual = _similarity(left, right)
    return (actual - expected).abs().max().item()  # raises


class Sample(TypedDict, total=False):
    image: torch.Tensor
    target: torch.Tensor
    weight: Optional[torch.Tensor]


def _stream(count, device=None) -> Iterator[Sample]:
    for index in range(count):
        sample: Sample = {"image": torch.full((2, 3), float(index)), "target": torch.tensor([0, 2])}
        if index % 2:
            sample["weight"] = torch.tensor([0.5, 1.5])
        if device is not None:
            sample = {key: value.to(device) for key, value in sample.items()}
        yield sample


def _prefetch(samples, device):
    waiting = None
    for sample in samples:
        following = {key: value.to(device, non_blocking=True) for key, value in sample.items()}
        if waiting is not None:
            yield waiting
        waiting = following
    if waiting is not None:
        yield waiting


def _weighted(model, sample):
    loss = F.cross_entropy(model(sample["image"]), sample["target"], reduction="none")
    weight = sample.get("weight")
    return (loss if weight is None else loss * weight).mean()


def case_stream_prefetched():
    model = nn.Linear(3, 3).to("cuda")
    return sum(_weighted(model, sample).item() for sample in _prefetch(_stream(3), "cuda"))


def case_stream_with_weights_of_the_host():
    model = nn.Linear(3, 3).to("cuda")
    total = 0.0
    for sample in itertools.islice(_stream(4), 1, None):
        image, target = (sample[key].to("cuda") for key in ("image", "target"))
        loss = F.cross_entropy(model(image), target, reduction="none")
        total += (loss * sample.get("weight", torch.ones(()))).mean().item()  # raises
    return total


class Normalizer:
    """Running moments, as a property that follows whoever asks."""

    def __init__(self, width):
        self._mean, self._variance = torch.zeros(width), torch.ones(width)
        self._device = torch.device("cpu")

    @property
    def device(self):
        return self._device

    @device.setter
    def device(self, value):
        self._device = torch.device(value)
        self._mean = self._mean.to(self._device)

    @property
    def deviation(self):
        return self._variance.to(self._device).sqrt()

    def __call__(self, x):
        return (x - self._mean) / self.deviation

    def inverse(self, x):
        return x * self._variance.sqrt() + self._mean  # raises


def case_normalizer_with_set_device():
    normalizer = Normalizer(3)
    normalizer.device = "cuda:3"
    x = torch.randn(2, 3, device=normalizer.device)
    return normalizer(x).mean().item()


def case_normalizer_inverse_with_set_device():
    normalizer = Normalizer(3)
    normalizer.device = "cuda:3"
    return normalizer.inverse(torch.randn(2, 3, device="cuda:3")).tolist()


class Recorder:
    """Keeps what passes through modules."""

    def __init__(self, *modules, move=None):
        self.seen = []
        self.move = move
        self.handles = [module.register_forward_hook(self.keep) for module in modules]

    def keep(self, module, args, out):
        self.seen.append(out.detach() if self.move is None else out.detach().to(self.move))

    def close(self):
        while self.handles:
            self.handles.pop().remove()


def _two_stages():
    return nn.Linear(3, 4).to("cuda:0"), nn.Linear(4, 4).to("cuda:1")


def case_recorded_features_on_host():
    low, high = _two_stages()
    recorder = Recorder(low, high, move="cpu")
    high(low(torch.ones(2, 3, device="cuda:0")).relu().to("cuda:1"))
    recorder.close()
    return torch.stack(recorder.seen).mean(0).numpy()


def case_recorded_features_as_they_came():
    low, high = _two_stages()
    recorder = Recorder(low, high)
    high(low(torch.ones(2, 3, device="cuda:0")).relu().to("cuda:1"))
    recorder.close()
    return torch.stack(recorder.seen).mean(0).cpu().numpy()  # raises


def case_gradient_hook_with_host_mask():
    weight = nn.Parameter(torch.randn(3, 3, device="cuda"))
    keep = torch.tril(torch.ones(3, 3))
    weight.register_hook(lambda gradient: gradient * keep.to(gradient.device))
    (weight ** 2).sum().backward()
    return weight.grad.triu(1).abs().sum().item()


class NotOnGpu(RuntimeError):
    pass


def _checked(tensor, device):
    if tensor.device != torch.device(device):
        raise NotOnGpu(f"{tensor.device} is not {device}")
    return tensor


def _ensure(tensor, device):
    try:
        return _checked(tensor, device)
    except NotOnGpu:
        return tensor.to(device)


def case_ensured_by_exception():
    left, right = torch.ones(2), torch.ones(2, device="cuda:1")
    return (_ensure(left, "cuda:1") + _ensure(right, "cuda:1")).tolist()


def case_fallback_after_failed_product():
    left, right = torch.ones(2, 2, device="cuda:0"), torch.eye(2)
    try:
        out = left @ _ensure(right, left.device)
    finally:
        left = left.cpu()
    return torch.linalg.norm(left - out).item()  # raises


def case_cuda_without_index_compared():
    wanted = torch.device("cuda")
    weight = torch.ones(3, device=wanted)
    x = torch.arange(3.0)
    if weight.device != wanted:
        x = x.to(wanted)
    return (x * weight).sum().item()


class Lazy(nn.Module):
    """Weights made at the first call, for the input that comes."""

    def __init__(self, out):
        super().__init__()
        self.out, self.inner = out, None
        self.offset = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        if self.inner is None:
            self.inner = nn.Linear(x.shape[-1], self.out)
            self.place(x)
        return self.inner(x) + self.offset  # raises

    def place(self, x):
        self.inner.to(x.device)


class LazyHost(Lazy):
    def place(self, x):
        self.inner.to(dtype=x.dtype)


def case_lazy_layer_placed_with_input():
    return Lazy(2).cuda()(torch.ones(1, 3, device="cuda")).tolist()


def case_lazy_layer_with_dtype_of_input():
    return LazyHost(2).cuda()(torch.ones(1, 3, device="cuda")).tolist()


def case_lazy_layer_on_host():
    layer = LazyHost(2)
    layer(torch.ones(1, 3))
    layer = layer.to("cuda:2")
    return layer(torch.ones(1, 3, device="cuda:2")).tolist()


class Seeds(NamedTuple):
    host: torch.Generator
    gpu: torch.Generator

    @classmethod
    def of(cls, seed, device="cuda"):
        return cls(torch.Generator().manual_seed(seed), torch.Generator(device).manual_seed(seed))


def case_noise_from_host_generator_moved():
    seeds = Seeds.of(3)
    noise = torch.randn(2, 3, generator=seeds.host).to("cuda")
    order = torch.randperm(2, generator=seeds.host)
    return (noise[order] + torch.rand(2, 3, generator=seeds.gpu, device="cuda")).tolist()


def case_mask_from_host_generator():
    seeds = Seeds.of(3)
    x = torch.ones(2, 3, device="cuda")
    keep = torch.empty_like(x).bernoulli_(0.5, generator=seeds.host)  # raises
    return (x * keep).tolist()


def _make_step(model, scale):
    calls = itertools.count(1)
    owner = weakref.ref(model)

    def step(*tensors, **options):
        nonlocal scale
        out = owner()(torch.cat(tensors, dim=options.get("dim", 0))) * scale  # raises
        scale = scale * 0.5
        return next(calls), out.sum().item()

    return step


def case_closure_with_number():
    model = nn.Linear(2, 2).to("cuda:1")
    step = _make_step(model, torch.tensor(1.0))
    parts = [torch.ones(1, 2, device="cuda:1") for _ in range(2)]
    return [step(*parts), step(parts[0], dim=0)]


def case_closure_with_vector():
    model = nn.Linear(2, 2).to("cuda:1")
    step = _make_step(model, torch.tensor([1.0, 2.0]))
    parts = [torch.ones(1, 2, device="cuda:1") for _ in range(2)]
    return [step(*parts), step(parts[0], dim=0)]


def _tree_map(function, tree):
    if isinstance(tree, dict):
        return {key: _tree_map(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_tree_map(function, value) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(_tree_map(function, value) for value in tree)
    return function(tree) if torch.is_tensor(tree) else tree


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


def case_nested_batch_mapped():
    batch = {"pair": Pair(torch.ones(2), torch.zeros(2)), "extra": [torch.arange(2), "name", (torch.ones(2),)]}
    moved = _tree_map(lambda t: t.cuda(), batch)
    total = moved["pair"].left + moved["pair"].right + moved["extra"][2][0] * moved["extra"][0]
    return _tree_map(torch.Tensor.cpu, {"total": total})["total"].numpy()


def case_nested_batch_partly_mapped():
    batch = {"pair": Pair(torch.ones(2), torch.zeros(2)), "aside": np.arange(2.0, dtype=np.float32)}
    moved = _tree_map(lambda t: t.cuda(), batch)
    aside = torch.as_tensor(moved["aside"])
    return torch.lerp(moved["pair"].left, aside, 0.5).tolist()  # raises
