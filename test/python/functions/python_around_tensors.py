"""Tensors among dataclasses, enums, descriptors, generators, decorators and dispatch."""
import abc
import contextlib
import enum
import functools
import inspect
import itertools
import operator
import types
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from functools import partial, singledispatch, wraps
from typing import Any, ClassVar, Iterator, Protocol, Union

import numpy as np
import torch


# ============================================================ dataclasses and tuples


@dataclass(frozen=True)
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    names: tuple = ()

    def to(self, device):
        moved = {f.name: getattr(self, f.name).to(device) for f in fields(self) if torch.is_tensor(getattr(self, f.name))}
        return replace(self, **moved)

    def __iter__(self):
        return iter((self.x, self.y))


def case_batch_reassigned():
    batch = Batch(torch.ones(3), torch.zeros(3), ("a", "b", "c"))
    batch = batch.to("cuda:1")
    x, y = batch
    return (x - y + torch.ones(3, device="cuda:1")).sum().item()


def case_batch_sent():
    batch = Batch(torch.ones(3), torch.zeros(3))
    batch.to("cuda:1")
    weight = torch.ones(3, device="cuda:1")
    return (batch.x * weight).sum()  # raises


def case_batch_replaced_field():
    batch = Batch(torch.ones(3), torch.zeros(3)).to("cuda:0")
    batch = replace(batch, y=torch.tensor([1.0, 0.0, 1.0]))
    return torch.nn.functional.l1_loss(*batch)  # raises


def case_batch_as_tuple():
    batch = Batch(torch.ones(3), torch.zeros(3)).to("cuda:0")
    x, y, names = astuple(batch)
    return len(names) + (x * asdict(batch)["y"]).sum().item() + y.sum().item()


@dataclass
class Stats:
    mean: torch.Tensor = field(default_factory=lambda: torch.zeros(3))
    std: torch.Tensor = None
    device: str = "cpu"
    shared: ClassVar[torch.Tensor] = torch.full((3,), 2.0)

    def __post_init__(self):
        if self.std is None:
            self.std = torch.ones(3, device=self.device)
        self.mean = self.mean.to(self.device)

    def __call__(self, x):
        return (x - self.mean) / self.std

    def doubled(self, x):
        return self(x) * self.shared  # raises


def case_stats_of_device():
    return Stats(device="cuda")(torch.randn(2, 3).cuda()).shape


def case_stats_of_device_doubled():
    return Stats(device="cuda").doubled(torch.randn(2, 3).cuda())


Pair = namedtuple("Pair", ["left", "right"], defaults=[torch.ones(2)])


def case_pair_with_default():
    p = Pair(torch.ones(2, device="cuda"))
    return operator.add(*p)  # raises


def case_pair_with_default_replaced():
    p = Pair(torch.ones(2, device="cuda"))
    p = p._replace(right=p.right.to(p.left.device))
    return operator.add(*p).sum().item()


# ============================================================ enums and strings


class Where(enum.Enum):
    HOST = "cpu"
    FIRST = "cuda:0"
    LAST = "cuda:3"

    @property
    def device(self):
        return torch.device(self.value)

    @property
    def is_gpu(self):
        return self.device.type == "cuda"

    @classmethod
    def parse(cls, text):
        kind, _, index = text.partition(":")
        return cls.HOST if kind == "cpu" else (cls.FIRST if int(index or 0) == 0 else cls.LAST)

    def zeros(self, *shape):
        return torch.zeros(*shape, device=self.device)


def case_enum_members():
    gpus = [w for w in Where if w.is_gpu]
    return [(w.zeros(2) + torch.ones(2).to(w.value)).sum().item() for w in gpus]


def case_enum_members_chained():
    acc = Where.FIRST.zeros(2)
    for w in Where:
        acc = acc + w.zeros(2)  # raises
    return acc


def case_enum_parsed():
    a = Where.parse("cuda").zeros(2)
    b = Where.parse("cuda:0").zeros(2)
    return torch.maximum(a, b).sum().item()


def case_enum_parsed_other_index():
    a = Where.parse("cuda").zeros(2)
    b = Where.parse("cuda:2").zeros(2)
    return torch.maximum(a, b)  # raises


def case_device_string_split():
    spec = "cuda:1,cuda:2"
    first, second = spec.split(",")
    index = int(second.split(":")[1])
    x = torch.ones(2, device=second)
    return (x + torch.ones(2).cuda(index)).device == torch.device(f"cuda:{index}")


def case_device_string_next():
    base = "cuda:1"
    kind, number = base.split(":")
    following = f"{kind}:{int(number) + 1}"
    return torch.ones(2, device=following) + torch.ones(2, device=base)  # raises


def _place(x, where: Union[int, str, torch.device, torch.Tensor, None]):
    match where:
        case None:
            return x
        case int(i) if i >= 0:
            return x.cuda(i)
        case int():
            return x.cpu()
        case str() | torch.device():
            return x.to(where)
        case torch.Tensor(device=d):
            return x.to(d)
        case {"device": d, **rest}:
            return x.to(d, **rest)
        case _:
            raise TypeError(where)


def case_match_places():
    like = torch.ones(2, device="cuda:2")
    return [(_place(torch.ones(2), w) + like).sum().item() for w in (2, "cuda:2", like, {"device": 2, "non_blocking": True})]


def case_match_negative_index():
    like = torch.ones(2, device="cuda:2")
    x = _place(_place(torch.ones(2), like), -1)
    return x.add(like)  # raises


def case_match_none_keeps():
    like = torch.ones(2, device="cuda:2")
    return _place(like, None).add(like).sum().item()


# ============================================================ descriptors and attribute hooks


class Following:
    """Tensor of an object that has a device."""

    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return getattr(obj, self.slot).to(obj.device)

    def __set__(self, obj, value):
        setattr(obj, self.slot, value)


class Camera:
    pose = Following()
    __slots__ = ("device", "_pose")

    def __init__(self, pose, device="cpu"):
        self.device = device
        self.pose = pose

    def apply(self, points):
        return points @ self.pose.t()

    def apply_kept(self, points):
        return points @ self._pose.t()  # raises


def case_descriptor_follows():
    cam = Camera(torch.eye(3))
    cam.device = "cuda:1"
    return cam.apply(torch.ones(4, 3, device="cuda:1")).sum().item()


def case_descriptor_kept_value():
    cam = Camera(torch.eye(3), "cuda:1")
    return cam.apply_kept(torch.ones(4, 3, device="cuda:1"))


class Bag(UserDict):
    """Items are attributes."""

    def __init__(self, device, **items):
        object.__setattr__(self, "device", device)
        object.__setattr__(self, "data", {})
        for k, v in items.items():
            setattr(self, k, v)

    def __getattr__(self, name):
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self.data[name] = value.to(self.device) if isinstance(value, torch.Tensor) else value


def case_bag_attribute():
    bag = Bag("cuda:0", a=torch.ones(2), n=3)
    bag.b = torch.ones(2)
    return (bag.a * bag.b * bag.n).sum().item()


def case_bag_item():
    bag = Bag("cuda:0", a=torch.ones(2))
    bag["b"] = torch.ones(2)
    return bag.a * bag.b  # raises


class Meta(type):
    def __new__(mcs, name, bases, body, device="cpu"):
        cls = super().__new__(mcs, name, bases, body)
        cls.table = torch.arange(4.0, device=device)
        return cls


class HostTable(metaclass=Meta):
    def look(self, ids):
        return self.table.index_select(0, ids)  # raises


class GpuTable(HostTable, metaclass=Meta, device="cuda"):
    pass


def case_metaclass_table_of_subclass():
    return GpuTable().look(torch.tensor([1, 2], device="cuda")).tolist()


def case_metaclass_table_of_base():
    return HostTable().look(torch.tensor([1, 2], device="cuda")).tolist()


# ============================================================ decorators, partials, caches


def _on(device):
    def decorate(fn):
        @wraps(fn)
        def inner(*args, **kwargs):
            args = [a.to(device) if isinstance(a, torch.Tensor) else a for a in args]
            kwargs = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
            return fn(*args, **kwargs)
        return inner
    return decorate


@_on("cuda:0")
def _blend(a, b, *rest, weight=None):
    out = a + b
    for r in rest:
        out = out + (r["extra"] if isinstance(r, dict) else r)  # raises
    return out if weight is None else out * weight


def case_decorated_all_moved():
    return _blend(torch.ones(2), torch.ones(2), torch.ones(2, device="cuda:1"), weight=torch.ones(2)).sum().item()


def case_decorated_nested_argument():
    return _blend(torch.ones(2), torch.ones(2), {"extra": torch.ones(2)})


def case_decorated_unwrapped():
    return inspect.unwrap(_blend)(torch.ones(2), torch.ones(2)).cuda().sum().item()


def _defaults(fn):
    """Fills arguments left out by what the signature calls `device`."""
    signature = inspect.signature(fn)

    @wraps(fn)
    def inner(*args, **kwargs):
        bound = signature.bind_partial(*args, **kwargs)
        bound.arguments.setdefault("device", bound.arguments["x"].device)
        return fn(*bound.args, **bound.kwargs)
    return inner


@_defaults
def _noised(x, scale=0.1, device=None):
    return x + scale * torch.randn(x.shape, device=device)  # raises


def case_signature_default():
    return _noised(torch.ones(3, device="cuda:3")).shape


def case_signature_given():
    return _noised(torch.ones(3, device="cuda:3"), device="cuda")


gpu_zeros = partial(torch.zeros, device="cuda")
host_ones = partial(torch.ones, dtype=torch.float32)


def case_partials_together():
    return gpu_zeros(2) + host_ones(2)  # raises


def case_partials_overridden():
    return (gpu_zeros(2) + host_ones(2, device="cuda") + gpu_zeros(2, device="cpu").sum()).sum().item()


@functools.lru_cache(maxsize=8)
def _steps(n, device="cpu"):
    return torch.arange(n, device=device)


class Steps:
    @functools.cached_property
    def table(self):
        return _steps(4)

    @functools.lru_cache
    def on(self, device):
        return self.table.to(device)


def case_cache_by_device():
    s = Steps()
    x = torch.ones(4, device="cuda:1")
    return (x * s.on(x.device) + x * _steps(4, x.device)).sum().item()


def case_cache_property():
    s = Steps()
    s.on("cuda:1")
    return torch.ones(4, device="cuda:1") * s.table  # raises


# ============================================================ generators and itertools


def _prefetch(items, device):
    it = iter(items)
    ready = deque(maxlen=2)
    for x in itertools.islice(it, 2):
        ready.append(x.to(device))
    while ready:
        yield ready.popleft()
        ready.extend(x.to(device) for x in itertools.islice(it, 1))


def _running(start) -> Iterator[torch.Tensor]:
    total = start
    while True:
        got = yield total
        if got is None:
            return total
        total = total + got  # raises


def case_generator_prefetched():
    w = torch.ones(2, device="cuda")
    return [(x * w).sum().item() for x in _prefetch((torch.full((2,), float(i)) for i in range(4)), "cuda")]


def case_generator_sent_vector():
    g = _running(torch.zeros(2, device="cuda"))
    next(g)
    g.send(torch.tensor(1.0))
    return g.send(torch.ones(2))


def case_generator_sent_scalars():
    g = _running(torch.zeros(2, device="cuda"))
    next(g)
    return [g.send(torch.tensor(float(i))).sum().item() for i in range(3)]


def case_accumulate_over_devices():
    parts = [torch.ones(2, device=f"cuda:{i}") for i in range(3)]
    home = parts[0].device
    return list(itertools.accumulate(parts, lambda a, b: a + b.to(home)))[-1].tolist()


def case_pairwise_over_devices():
    parts = [torch.ones(2, device=f"cuda:{i}") for i in (0, 0, 1)]
    return [torch.dot(a, b).item() for a, b in itertools.pairwise(parts)]  # raises


def case_group_by_device():
    pool = [torch.full((2,), float(i), device=f"cuda:{i % 2}") for i in range(6)]
    groups = defaultdict(list)
    for t in pool:
        groups[t.device].append(t)
    return {str(d): torch.stack(ts).sum().item() for d, ts in groups.items()}


def case_group_by_length():
    pool = [torch.zeros(n, device=f"cuda:{i % 2}") for i, n in enumerate((2, 3, 2, 2))]
    groups = defaultdict(list)
    for t in sorted(pool, key=len):
        groups[len(t)].append(t)
    return {n: torch.stack(ts).shape for n, ts in groups.items()}  # raises


def case_sorted_by_value():
    pool = [torch.tensor([3.0], device="cuda:0"), torch.tensor([1.0]), torch.tensor([2.0], device="cuda:1")]
    first, *_ = sorted(pool, key=lambda t: t.item())
    return (first + 1).item()


def case_sorted_by_themselves():
    pool = [torch.tensor([3.0], device="cuda:0"), torch.tensor([1.0])]
    return max(pool)  # raises


def case_walrus_in_loop():
    queue = deque([torch.ones(2), torch.ones(2, device="cuda"), None])
    total = torch.zeros(2, device="cuda")
    while (item := queue.popleft()) is not None:
        if (d := item.device) != total.device:
            assert d.type == "cpu"
            item = item.to(total.device)
        total += item
    return total.tolist()


# ============================================================ classes


class Module(abc.ABC):
    @abc.abstractmethod
    def weight(self, x): ...

    def __call__(self, x):
        return x * self.weight(x)  # raises


class Taper(Module):
    def weight(self, x):
        return torch.linspace(1, 0, x.shape[-1], device=x.device)


class Flat(Module):
    def weight(self, x):
        return torch.tensor(0.5)


class Ramp(Module):
    def weight(self, x):
        return torch.linspace(0, 1, x.shape[-1])


class Both(Taper, Ramp):
    def weight(self, x):
        return super().weight(x) ** 2


class BothTurned(Ramp, Taper):
    def weight(self, x):
        return super().weight(x) ** 2


def case_abstract_weights():
    x = torch.ones(2, 3, device="cuda")
    return [m(x).sum().item() for m in (Taper(), Flat(), Both())]


def case_abstract_weights_turned():
    x = torch.ones(2, 3, device="cuda")
    return [m(x).sum().item() for m in (Flat(), BothTurned())]


class Quantity:
    """Value with unit."""

    def __init__(self, value, unit="m"):
        self.value, self.unit = value, unit

    def __add__(self, other):
        if isinstance(other, Quantity):
            return Quantity(self.value + other.value.to(self.value.device), self.unit)
        return Quantity(self.value + other, self.unit)  # raises

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else self + other

    def __matmul__(self, other):
        return self.value @ other.value.to(self.value)


def case_quantities_summed():
    qs = [Quantity(torch.ones(2, device=f"cuda:{i}")) for i in range(3)]
    return sum(qs).value.device.index, (qs[2] @ qs[0]).item()


def case_quantity_with_tensor():
    q = Quantity(torch.ones(2, device="cuda:2"))
    return (q + torch.tensor(1.0)) + torch.ones(2)


@singledispatch
def _send(obj, device):
    return obj


@_send.register(torch.Tensor)
def _(obj, device):
    return obj.to(device)


@_send.register(list)
@_send.register(deque)
def _(obj, device):
    return type(obj)(_send(each, device) for each in obj)


@_send.register(dict)
def _(obj, device):
    return {k: _send(v, device) for k, v in obj.items()}


def case_dispatch_nested():
    sample = _send({"x": torch.ones(2), "more": [torch.ones(2), {"z": torch.ones(2)}], "n": 2}, "cuda:1")
    return (sample["x"] + sample["more"][0] + sample["more"][1]["z"] * sample["n"]).tolist()


def case_dispatch_tuple():
    sample = _send({"x": torch.ones(2), "pair": (torch.ones(2), 1)}, "cuda:1")
    return sample["x"] + sample["pair"][0]  # raises


@contextlib.contextmanager
def _default_type(kind):
    torch.set_default_tensor_type(kind)
    try:
        yield
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)


def case_default_type_within():
    with _default_type(torch.cuda.FloatTensor):
        x = torch.zeros(3)
        return (x + torch.ones(3, device="cuda")).sum().item()


def case_default_type_after():
    with _default_type(torch.cuda.FloatTensor):
        x = torch.zeros(3)
    return x + torch.ones(3)  # raises


class Offloaded:
    def __init__(self, **tensors):
        self.ns = types.SimpleNamespace(**tensors)

    def __enter__(self):
        for k, v in vars(self.ns).items():
            setattr(self.ns, k, v.cuda())
        return self.ns

    def __exit__(self, *exc):
        for k, v in vars(self.ns).items():
            setattr(self.ns, k, v.cpu())
        return exc[0] is KeyError


def case_offloaded_inside():
    box = Offloaded(w=torch.ones(2), b=torch.zeros(2))
    x = torch.ones(2).cuda()
    with box as ns:
        y = ns.w * x + ns.b
    return (y.cpu() * box.ns.w).sum().item()


def case_offloaded_afterwards():
    box = Offloaded(w=torch.ones(2), b=torch.zeros(2))
    x = torch.ones(2).cuda()
    with box as ns:
        y = ns.w * x + ns.b
        raise KeyError("stop")
    return y * ns.w  # raises


def case_fallback_after_error():
    x = torch.ones(2, device="cuda")
    bias = torch.ones(2)
    try:
        y = {}["missing"] + x
    except KeyError:
        bias = bias.to(x)
        y = x
    finally:
        x = None
    return (y + bias).sum().item()


def case_fallback_when_nothing_failed():
    x = torch.ones(2, device="cuda")
    bias = torch.ones(2)
    try:
        y = {"missing": x}["missing"] + 1
    except KeyError:
        bias = bias.to(x)
        y = x
    return (y + bias).sum()  # raises


def case_numpy_through_objects():
    rows = OrderedDict(a=torch.ones(2, device="cuda"), b=torch.zeros(2))
    return np.stack([getattr(t, "cpu", lambda: t)().numpy() for t in rows.values()]).sum()


def case_numpy_through_array():
    rows = OrderedDict(a=torch.ones(2, device="cuda"), b=torch.zeros(2))
    return np.array([t.sum().item() for t in rows.values()]) + np.array(rows["a"])  # raises


class Sized(Protocol):
    def __len__(self) -> int: ...


def _joined(*parts: Any, dim=0, **kw):
    return torch.cat(parts, dim=dim, **kw)  # raises


def case_star_arguments():
    pieces = {"head": torch.ones(1, 2, device="cuda"), "body": torch.ones(2, 2).cuda(0)}
    return _joined(*pieces.values(), torch.empty(0, 2, device="cuda:0"), dim=0).shape


def case_star_arguments_with_tail():
    pieces = [torch.ones(1, 2, device="cuda")]
    return _joined(*pieces, *(torch.ones(1, 2) for _ in range(2)))
