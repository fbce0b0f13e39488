"""Devices passed through configuration, decorators, hierarchies and hooks."""
import contextlib
import enum
import functools
import inspect
from collections import namedtuple
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Callable, Dict

import torch
import torch.nn as nn
import torch.nn.functional as F


class Accelerator(enum.Enum):
    CPU = "cpu"
    GPU = "cuda"
    SECOND = "cuda:1"

    @classmethod
    def pick(cls, *, second=False):
        if not torch.cuda.is_available():
            return cls.CPU
        return cls.SECOND if second and torch.cuda.device_count() > 1 else cls.GPU

    @property
    def device(self):
        return torch.device(self.value)


@dataclass
class Config:
    width: int = 8
    classes: int = 3
    device: str = "cuda"
    gpu: int = 0
    temperature: float = 1.0
    extra: Dict[str, Any] = field(default_factory=dict)

    @property
    def where(self):
        match (self.device, self.gpu):
            case ("cpu", _):
                return torch.device("cpu")
            case ("cuda", int(number)) if number >= 0:
                return torch.device(f"cuda:{number}")
            case _:
                return torch.device("cuda")


class Base(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc = nn.Linear(4, config.width)
        self.build()

    def build(self):
        raise NotImplementedError

    @property
    def device(self):
        return self.fc.weight.device


class Prior(Base):
    def build(self):
        self.out = nn.Linear(self.config.width, self.config.classes)
        self.log_prior = torch.full((self.config.classes,), 1.0 / self.config.classes).log()

    def to(self, *args, **kwargs):
        module = super().to(*args, **kwargs)
        module.log_prior = module.log_prior.to(*args, **kwargs)
        return module

    def forward(self, x):
        return self.out(self.fc(x).relu()) + self.log_prior  # raises


class Wrapped(nn.Module):
    def __init__(self, inner, temperature=1.0):
        super().__init__()
        self.inner = inner
        self.temperature = temperature

    def forward(self, x):
        return self.inner(x) / self.temperature


def case_override_to():
    config = Config()
    model = Wrapped(Prior(config).to(config.where), config.temperature)
    assert model(torch.randn(2, 4, device=model.inner.device)).shape == (2, config.classes)


def case_override_to_nested():
    config = replace(Config(), temperature=0.5)
    model = Wrapped(Prior(config), config.temperature).to(config.where)
    x = torch.randn(2, 4).to(model.inner.device)
    model(x).softmax(-1)


class Cosine(Base):
    def build(self):
        self.proxies = nn.Parameter(torch.randn(self.config.classes, self.config.width))
        self.margin = self.config.extra.get("margin", 0.0)

    def forward(self, x, y=None):
        logits = F.linear(F.normalize(self.fc(x)), F.normalize(self.proxies))
        if y is not None and self.margin:
            shift = torch.zeros(logits.shape, device=self.config.where)
            logits = logits - shift.scatter_(1, y[:, None], self.margin)  # raises
        return logits


def _moved(where: Callable[[], torch.device], keywords=True):
    """Decorator: every tensor among the arguments goes to where()."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            place = where()
            args = [a.to(place) if torch.is_tensor(a) else a for a in args]
            if keywords:
                kwargs = {k: v.to(place) if torch.is_tensor(v) else v for k, v in kwargs.items()}
            return function(*args, **kwargs)

        return wrapper

    return decorate


@_moved(lambda: Accelerator.pick().device)
def _distance(first, second, scale=None):
    value = (first - second).pow(2).sum(-1)
    return value if scale is None else value * scale


@_moved(lambda: Accelerator.pick().device, keywords=False)
def _hinge(score, sign, weight=None):
    value = (1 - score * sign).clamp(min=0)
    if weight is not None:
        value = value * weight  # raises
    return value.mean()


def case_decorated_keywords():
    value = _distance(torch.randn(3, 2), torch.randn(3, 2).cuda(), scale=torch.ones(3))
    value += _distance(first=torch.zeros(3, 2), second=torch.ones(3, 2))
    assert value.is_cuda


def case_decorated_weight():
    signature = inspect.signature(_hinge)
    arguments = {name: torch.ones(4) for name in signature.parameters}
    print(_hinge(arguments.pop("score"), arguments.pop("sign")))
    print(_hinge(torch.randn(4), torch.ones(4), **arguments))


def case_config_margin():
    config = Config(gpu=-1, extra={"margin": 0.2})
    model = Cosine(config).to(config.where)
    y = torch.tensor([0, 2], device=model.device)
    F.cross_entropy(model(torch.randn(2, 4).to(model.device), y), y).backward()


def case_config_margin_other_gpu():
    config = Config(extra=dict(margin=0.2))
    model = Cosine(config).to(config.where)
    y = torch.tensor([0, 2])
    losses = []
    for gpu in range(2):
        where = f"{config.device}:{gpu}"
        model.to(where)
        x, labels = torch.randn(2, 4, device=where), y.to(where)
        losses.append(F.cross_entropy(model(x, labels), labels).item())
    print(asdict(config), losses)


Sample = namedtuple("Sample", "x y weight")


def _samples(n=3, size=5):
    for _ in range(n):
        yield Sample(torch.randn(size, 4), torch.randint(0, 3, (size,)), torch.rand(size))


def _prefetch(samples, device=Accelerator.pick().value, names=Sample._fields):
    waiting = None
    for sample in samples:
        ready, waiting = waiting, sample._replace(**{n: getattr(sample, n).to(device) for n in names})
        if ready is not None:
            yield ready
    if waiting is not None:
        yield waiting


def case_prefetch_fields():
    model = nn.Linear(4, 3).to("cuda")
    total = torch.zeros((), device="cuda")
    for x, y, weight in _prefetch(_samples()):
        total += (F.cross_entropy(model(x), y, reduction="none") * weight).mean()
    total.backward()


def case_prefetch_some_fields():
    model = nn.Linear(4, 3).to(Accelerator.pick(second=True).device)
    for sample in _prefetch(_samples(), Accelerator.SECOND.value, names=("x", "y")):
        losses = F.cross_entropy(model(sample.x), sample.y, reduction="none")
        losses.mean().backward(retain_graph=True)
        print(torch.dot(losses, sample.weight) / sample.weight.sum())  # raises


@contextlib.contextmanager
def _default_cuda():
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        yield
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")


def case_default_type_inside():
    with _default_cuda():
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        noise = torch.randn(5, 4)
        value = model(noise).mean()
    value.backward()
    assert noise.device.type == "cuda"


def case_default_type_left():
    with _default_cuda():
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        first = model(torch.randn(5, 4))
    second = model(torch.randn(5, 4))  # raises
    (first - second).abs().mean().backward()


def _jitter(x, std=0.1, offset=torch.zeros(4)):
    return x + std * torch.randn_like(x) + offset  # raises


def case_defaults_given():
    x = torch.randn(3, 4, device="cuda")
    views = [_jitter(x, offset=x.mean(0)), _jitter(x, 0.2, 0.0), _jitter(x, offset=torch.tensor(0.5))]
    assert torch.stack(views).var(0).is_cuda


def case_defaults_taken():
    pipeline = [functools.partial(_jitter, std=0.05), F.normalize]
    x = torch.randn(3, 4, device="cuda")
    for step in pipeline:
        x = step(x)


def _largest_gpu(start=8):
    for number in range(start, -1, -1):
        try:
            torch.zeros(1, device=f"cuda:{number}")
        except RuntimeError:
            continue
        return torch.device("cuda", number)
    return torch.device("cpu")


def case_probe_devices():
    device = _largest_gpu()
    model = nn.Linear(4, 2).to(device)
    x = torch.randn(3, 4)
    if x.device != device:
        x = x.to(device)
    model(x).sum().backward()
    assert device.index == torch.cuda.device_count() - 1


class Recorder:
    """Keeps what modules give out, through forward hooks."""

    def __init__(self, model, *names, transform=lambda t: t.detach()):
        self.features = {}
        modules = dict(model.named_modules())
        self.handles = [modules[name].register_forward_hook(self._hook(name, transform)) for name in names]

    def _hook(self, name, transform):
        def hook(module, inputs, output):
            self.features[name] = transform(output)

        return hook

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


def _distill(student, teacher, x, transform):
    with Recorder(teacher, "0", "2", transform=transform) as recorder, torch.no_grad():
        teacher(x)
    hidden, loss = x, 0.0
    for name, layer in student.named_children():
        hidden = layer(hidden)
        if (wanted := recorder.features.get(name)) is not None:
            loss = loss + F.mse_loss(hidden, wanted)  # raises
    return loss


def _mlp():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def case_hooked_features():
    student, teacher = (_mlp().cuda() for _ in range(2))
    _distill(student, teacher, torch.randn(5, 4).cuda(), torch.Tensor.detach).backward()


def case_hooked_features_offloaded():
    student, teacher = (_mlp().cuda() for _ in range(2))
    offload = lambda t: t.detach().to("cpu", copy=True)  # noqa: E731
    _distill(student, teacher, torch.randn(5, 4).cuda(), offload).backward()


def case_gradient_hooks():
    model = _mlp().cuda()
    masks = {name: (torch.rand_like(p) > 0.5).float() for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        p.register_hook(lambda grad, name=name: grad * masks[name])
    model(torch.randn(5, 4).cuda()).sum().backward()
    assert all((p.grad[masks[name] == 0] == 0).all() for name, p in model.named_parameters())
