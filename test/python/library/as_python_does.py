"""What the language says of names, classes and tables, and what a library may lack."""
import functools
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence

import numpy as np
import torch
from torch import Tensor, nn

try:
    import fused_norms_that_nobody_has as fused

    has_fused = True
except ImportError:
    has_fused = False


class Body(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.scale = torch.ones(width)


class Tower:
    """A mixin: what is behind it depends on the class of the object."""

    def __init__(self, width):
        super().__init__(width)
        self.tower = nn.Linear(width, width)


class Model(Tower, Body):
    def forward(self, x):
        return self.tower(self.up(x)) * self.scale  # raises

    def plain(self, x):
        return self.tower(self.up(x))


class _Augmentation(nn.Module):
    """Its methods are those of the classes that others see."""

    def __init__(self):
        super().__init__()
        self._params: Dict[str, Tensor] = {}
        self.sampler = torch.distributions.Uniform(torch.tensor(0.0), torch.tensor(1.0))

    def forward(self, input: Tensor, params: Optional[Dict[str, Tensor]] = None) -> Tensor:
        self._params = self.draw(input.shape) if params is None else params
        return self.apply(input, self._params)

    def draw(self, shape) -> Dict[str, Tensor]:
        raise NotImplementedError

    def apply(self, input: Tensor, params: Dict[str, Tensor]) -> Tensor:
        raise NotImplementedError


class Noise(_Augmentation):
    def draw(self, shape):
        return {"noise": self.sampler.rsample(shape)}

    def apply(self, input, params):
        return input + params["noise"]  # raises


class Shift(_Augmentation):
    def draw(self, shape):
        return {"size": torch.tensor((1, 1)).expand(shape[0], -1)}

    def apply(self, input, params):
        return input + params["size"].to(input.device)


class Gain(_Augmentation):
    def draw(self, shape):
        return {"gain": self.sampler.sample()}

    def apply(self, input, params):
        return input * params["gain"]


def norm_of(x: Tensor):
    if has_fused:
        return fused.norm(x)
    return x * torch.ones(3)  # raises


def rows_of(x: Tensor, mask: Tensor):
    chosen = mask.cpu().nonzero()
    return x[chosen[:, 0]]


def host_rows_of(x: Tensor, mask: Tensor):
    chosen = mask.nonzero()
    return x.cpu()[chosen[:, 0]]  # raises


def total(scores: List[Tensor], x: Tensor):
    if not isinstance(scores, list):
        raise ValueError("scores must be a list")
    return x + torch.ones(3) + scores[0]  # raises


def part_of(names, x: Tensor):
    parts = dict(zip(names, torch.split(torch.ones(4), 2)))
    return x[:2] + parts.get("b", 0)  # raises


COMPARE = {"min": torch.lt, "max": torch.gt}


def better(mode, x: Tensor):
    return COMPARE[mode](x, torch.zeros(3))  # raises


def better_there(mode, x: Tensor):
    return COMPARE[mode](x, torch.zeros(3, device=x.device))


def moved_by_hand(layer: nn.Linear, x: Tensor):
    layer._parameters["weight"] = nn.Parameter(layer.weight.to(x.device))
    layer._parameters["bias"] = nn.Parameter(layer.bias.to(x.device))
    return layer(x)


def moved(data, device):
    for key in data:
        data[key] = data[key].to(device)
    return data


def flat(data, mask):
    flat_data = data.view(-1)
    return flat_data[mask.view(-1).nonzero()[:, 0]]


def on_gpu(i):
    return torch.ones(3, device=f"cuda:{i}") + torch.ones(3)  # raises


def on_that_gpu(options):
    a = torch.ones(3, device=f"cuda:{int(options.gpu)}")
    b = torch.ones(3, device="cuda:%d" % int(options.gpu))
    return a + b


def averages(more: dict, x: Tensor):
    stats = {"mean": torch.ones(3)}
    for key, value in more.items():
        stats[f"more/{key}"] = value.mean(0)
    return stats["mean"] + x  # raises


class Clipped:
    """Who decides by what is computed of a number has a number."""

    def __init__(self, params, limit=1.0):
        self.masters = [p.detach().cpu().clone() for p in params]
        self.limit = limit

    def unscale(self, i, total):
        scale = 2.0
        clip = ((total / scale) + 1e-6) / self.limit
        if clip > 1:
            scale = clip * scale
        self.masters[i].mul_(1.0 / scale)

    def step(self):
        total = float(sum(each.sum() for each in self.masters))
        for i in range(len(self.masters)):
            self.unscale(i, total)


class Headless(nn.Module):
    dtype, device = torch.float32, torch.device("cpu")


def with_head(model, width):
    """Models have types and devices, too."""
    model.head = nn.Linear(width, width, dtype=model.dtype, device=model.device)
    model.to(torch.float32)
    return model


def configured(init):
    @functools.wraps(init)
    def inner(self, *values, **options):
        init(self, *values, **options)

    return inner


class Predictor(nn.Module):
    """Nobody makes an object twice."""

    @configured
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, width)

    def forward(self, x):
        return self.score(x)


class Softer(Predictor):
    def forward(self, x):
        return self.score(x).softmax(0)


class Anywhere:
    where = "cuda:1"

    def place(self):
        return "cuda:1"


class Plain(Anywhere):
    pass


class First(Anywhere):
    where = "cuda:0"

    def place(self):
        return "cuda:0"


class PlainFirst(Plain, First):
    """What all bases stand on comes behind them."""

    def placed(self, x):
        return torch.ones(3, device=self.place()) + x.cuda(0)

    def there(self, x):
        return torch.ones(3, device=self.where) + x.cuda(0)


class Placed:
    """A property has a setter of the same name."""

    def __init__(self, device):
        self.device = device

    @property
    def device(self):
        return self._device

    @device.setter
    def device(self, device):
        self._device = device

    @device.deleter
    def device(self):
        self._device = None

    def made(self, x):
        return torch.ones(3, device=self.device) + x


def made_elsewhere():
    placed = Placed(torch.device("cuda:0"))
    return torch.ones(3) + torch.zeros(3, device=placed.device)  # raises


class Around(nn.Module):
    """What a module gives is where it gets its input, whatever it does."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor):
        return self.inner(x) + torch.ones(3)  # raises

    def there(self, x: torch.Tensor):
        return self.inner(x) + torch.ones(3, device=x.device)


def spread_out(x):
    """Of a number that is expanded there are several."""
    return torch.tensor(0.5).expand(x.size(-1)) * x  # raises


def scaled(x):
    return torch.tensor(0.5).expand(()) * x


class Committee:
    """What one method changes, another reads through a third."""

    def __init__(self):
        self.place, self.weights = "cpu", torch.ones(3)

    def spread(self):
        self.place = "cuda:1"

    def vote(self):
        return torch.ones(3, device=self.place)

    def consensus(self):
        return self.weights + self.vote()  # raises


def step_of_table(x, step: int):
    """An entry of an array is a number."""
    table = np.ones(3)
    return x * torch.tensor(table[step])


def shares_of(x):
    counts = np.ones(3)
    return x * torch.as_tensor(counts / counts.sum()).float()  # raises


def summed(n):
    return sum([torch.ones(3, device=f"cuda:{i}") for i in range(n)])  # raises


def first_and_last(x, devices):
    return x.to(devices[0]) + x.to(devices[-1])  # raises


def in_turn(x, devices):
    return torch.stack([x.to(each) for each in devices])  # raises


class Tables(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.tables = nn.ModuleDict({key: nn.Embedding(n, 3) for key, n in sizes.items()})

    def all_of(self, key):
        return self.tables[key](torch.arange(2))  # raises

    def all_there(self, key):
        return self.tables[key](torch.arange(2, device=self.tables[key].weight.device))


def windowed(x, name="hann_window"):
    return x * getattr(torch, "hann_window")(x.size(0))  # raises


def activated(x, name="relu"):
    return getattr(nn.functional, "relu")(x) * torch.ones(3)  # raises


def offsets(x, sizes: list):
    return x + torch.tensor([0] + sizes).cumsum(0)  # raises


class Boxes:
    """Who asks what kind of device it is moves nothing."""

    def __init__(self, boxes: torch.Tensor):
        self.boxes = boxes

    @property
    def device(self) -> torch.device:
        return self.boxes.device

    def to(self, device: Optional[torch.device] = None):
        self.boxes = self.boxes.to(device=device)
        return self

    def masks(self, height: int):
        if self.boxes.requires_grad:
            raise RuntimeError("no gradients")
        device = self.device
        if device.type != "cuda":
            return torch.zeros(height)
        return torch.zeros(height, device=device)

    def merged(self, other: torch.Tensor, inplace: bool = False):
        boxes = torch.cat([self.boxes, other])
        if inplace:
            self.boxes = boxes
            return self
        return Boxes(boxes)


def scored(model: nn.Module, x: torch.Tensor):
    """What is asked for parameters, or called a module, is one, and so are its layers."""
    return model(x).softmax(-1) * torch.ones(3)  # raises


def scored_there(model, batch):
    device = next(model.parameters()).device
    labels = torch.zeros(2, 1, dtype=torch.long)
    return model(batch.to(device)).gather(-1, labels)  # raises


def kept_columns(layer: nn.Linear, keep: List[int]):
    index = torch.tensor(sorted(keep))
    return layer.weight.detach().index_select(1, index)  # raises


class Masks:
    def __init__(self, model):
        self.model, self.masks = model, {}

    def compute(self):
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear):
                self.masks[name] = module.weight.detach().cpu().abs() > 0.1

    def apply(self):
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear):
                module.weight.detach().mul_(self.masks[name])  # raises


class Mean:
    """What is appended to a list that is joined is a tensor."""

    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    def weighted(self):
        values = torch.stack(self.values)
        return torch.dot(values, torch.arange(len(values)).float())  # raises


def picked(loss, where: torch.Tensor):
    """An element that is an index is a number."""
    table = torch.ones(10)
    for i in where:
        loss = loss + table[i]
    return loss


def rated(dim):
    """What a name has held before is another thing."""
    rate = 3 / (dim - 1)
    rate = torch.arange(4) * -rate
    return rate.unsqueeze(0)


class Seen:
    """Who brings an index to the CPU knows where the table is."""

    def __init__(self, seen: torch.Tensor):
        self.seen = seen

    def clash(self, users: torch.Tensor, drawn: torch.Tensor):
        drawn = torch.randint_like(drawn, 2)
        return self.seen[users.cpu()].gather(1, drawn.cpu())


def kept_scores(result: Dict[str, torch.Tensor]):
    return result["scores"] * 2


def times_of(result, rate=30.0):
    times = torch.arange(len(result["scores"])) / rate
    return times[(result["scores"] > 0.1).nonzero().squeeze(1)]  # raises


class States:
    """What has its own to() is moved with that, whatever it calls what it keeps."""

    def __init__(self):
        self.kept = {}

    def add(self, name, value):
        self.kept[name] = value
        setattr(self, name, value.clone())

    def to(self, device):
        for name in self.kept:
            setattr(self, name, getattr(self, name).to(device))
        return self


class Histogram(States):
    def __init__(self, bins: int = 4):
        super().__init__()
        self.add("counts", torch.zeros(bins))

    def update(self, values: torch.Tensor):
        return self.counts.scatter_add_(0, values.argsort(), values)


@dataclass
class Targets:
    """to() gives another object, which has left one behind."""

    boxes: torch.Tensor
    labels: torch.Tensor
    crowd: torch.Tensor

    def to(self, device):
        return Targets(self.boxes.to(device), self.labels.to(device), self.crowd)

    def usable(self):
        return self.boxes * self.crowd  # raises

    def labelled(self):
        return self.boxes * self.labels


class Peak(torch.nn.Module):
    """What starts again is called when the module has been moved, too."""

    def __init__(self, channels: int):
        super().__init__()
        self.channels = channels
        self.register_buffer("peak", torch.empty(0))
        self.reset()

    def reset(self):
        self.peak = torch.zeros(self.channels)

    def forward(self, values):
        return torch.maximum(self.peak, values.abs())  # raises


class Experts(torch.nn.Module):
    """One on each device: nobody moves that as a whole."""

    def __init__(self, dim: int, devices: Sequence[str]):
        super().__init__()
        self.router = torch.nn.Linear(dim, 4).to(devices[0])
        self.placement = [devices[i % len(devices)] for i in range(4)]
        self.experts = torch.nn.ModuleList(torch.nn.Linear(dim, dim).to(each) for each in self.placement)

    def sent(self, values: torch.Tensor, index: torch.Tensor):
        for i, device in enumerate(self.placement):
            rows = torch.where(index == i)[0]
            yield i, rows, values[rows].to(device)

    def forward(self, values: torch.Tensor):
        """What the router gets without a move is where the router is."""
        index = self.router(values).argmax(-1)
        out = torch.zeros_like(values)
        for i, rows, sent in self.sent(values, index):
            out = out.index_add(0, rows, self.experts[i](sent).to(out.device))
        return out

    def left(self, values: torch.Tensor):
        index = torch.arange(len(values), device=values.device) % 4
        out = torch.zeros_like(values)
        for i, rows, sent in self.sent(values, index):
            out = out.index_add(0, rows, self.experts[i](sent))  # raises
        return out


Base = nn.Module  # by a name of its own


class Prompted(Base):
    def __init__(self, width):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(width))
        self.kept = torch.zeros(width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.ones(3, device=x.device) * self.start

    def shifted(self, x: Tensor) -> Tensor:
        return x + self.kept  # raises


NOWHERE = object()


class Queue:
    pass


HOST = Queue()


def on_device(queue):
    return queue is not HOST


def recorded(x: Tensor, queue) -> Tensor:
    if on_device(queue):
        return torch.ones(3, device="cuda") + x.cuda()
    return torch.ones(3) + x.cpu()


def brought(x: Tensor, where=NOWHERE) -> Tensor:
    x = x.cpu()
    if where is not NOWHERE:
        x = x.to(where)
    other = torch.ones(3)
    if where is not NOWHERE:
        other = other.to(where)
    return x + other


def brought_alone(x: Tensor, where=NOWHERE) -> Tensor:
    x = x.cpu()
    if where is not NOWHERE:
        x = x.to("cuda")
    return x + torch.ones(3)  # raises


class Messages:
    """Memory can be pinned where the device that was named is the host."""

    def __init__(self, message: Tensor, options):
        self.device = options["device"] if options["device"] is not None else message.device
        self.buffer = message.clone().to(self.device)
        if self.device.type == "cpu":
            self.read = self.buffer.numpy()

    def plain(self, x: Tensor) -> Tensor:
        return x + self.buffer.to(x.device)


def blended(x: Tensor, scale) -> Tensor:
    """Where one thing is says nothing of another: callers keep them together."""
    steps = torch.arange(3, device=x.device)
    if x.device.type == "cpu":
        steps = steps.float()
    return steps * scale


def batched(value) -> Tensor:
    return value.unsqueeze(0) if isinstance(value, Tensor) else torch.tensor([value])


class Error:
    """What a callable gives is numbers or tensors, all of them."""

    def __init__(self, transform):
        self.transform = transform
        self.total = 0.0

    def step(self, state):
        predicted, wanted = self.transform(state)
        self.update(batched(predicted), batched(wanted))

    def update(self, predicted: Tensor, wanted: Tensor):
        self.total += float((predicted - wanted).abs().sum())
