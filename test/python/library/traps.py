"""What looks wrong and is right, beside what is wrong: no line here is told of that does not raise, and each that does."""
from typing import Optional

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.data import DataLoader, Dataset


class WalkSampler(nn.Module):
    """Draws on the host: only the loader calls what is private."""

    def __init__(self, starts):
        super().__init__()
        self.starts = torch.tensor(starts)
        self.embedding = nn.Embedding(16, 4)

    def loader(self):
        return DataLoader(range(4), batch_size=2, collate_fn=self._walks)

    def forward(self, nodes: Tensor) -> Tensor:
        return self.embedding(nodes.to(self.embedding.weight.device))

    def _walks(self, nodes):
        if not isinstance(nodes, Tensor):
            nodes = torch.tensor(nodes)
        return self._shifted(nodes)

    def _shifted(self, nodes: Tensor) -> Tensor:
        walks = torch.stack([nodes, nodes + 1], dim=-1)
        return walks.add_(self.starts.view(1, -1))

    def shifted(self, nodes: Tensor) -> Tensor:
        walks = torch.stack([nodes, nodes + 1], dim=-1)
        return walks.add_(self.starts.view(1, -1))  # raises


class Threshold(nn.Module):
    """A tensor made of a number meets tensors of any device, one made of several numbers does not."""

    def __init__(self, limit: float = None, bounds: tuple[float, ...] = (0.0, 1.0), weights=None):
        super().__init__()
        self.limit = torch.tensor(limit) if limit is not None else None
        self.bounds = torch.tensor(bounds)
        self.weights = torch.tensor(weights) if weights is not None else None

    def forward(self, scores: Tensor) -> Tensor:
        zero = torch.tensor(0.0, device=scores.device)
        return scores > (self.limit or zero)

    def weighted(self, scores: Tensor) -> Tensor:
        return scores * self.weights if self.weights is not None else scores.to("cpu", copy=True)

    def within(self, scores: Tensor) -> Tensor:
        return scores[:, None] - self.bounds  # raises


class Rescaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = torch.tensor(factor) if isinstance(factor, float) else factor

    def forward(self, image: Tensor) -> Tensor:
        return image * self.factor


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("matrix", torch.randn(2, 4))

    def forward(self, size):
        where = self.matrix.device
        return torch.ones(size, 2, device=where if isinstance(where, torch.device) else None) @ self.matrix


def picked(store, index: Tensor, order: Tensor):
    """What is asked twice of one value has one answer."""
    out = {}
    for key, values in store.items():
        if isinstance(values, (Tensor, PackedSequence)):
            index = index.to(values.device)
        elif isinstance(values, np.ndarray):
            index = index.cpu()
        if isinstance(values, (Tensor, PackedSequence)):
            order = order.to(values.device)
        elif isinstance(values, np.ndarray):
            order = order.cpu()
        out[key] = values[order[index]]
    return out


def shifted(store, index: Tensor):
    out = {}
    for key, values in store.items():
        start = torch.ones(len(values), dtype=torch.long) if isinstance(values, np.ndarray) else index.to("cpu")
        out[key] = start[index]  # raises
    return out


class Overlap(nn.Module):
    """A tensor without elements stands for one that there will be."""

    def __init__(self, width=4):
        super().__init__()
        self.counts = torch.empty(0)
        self.seen = torch.empty(0, 4)
        self.length = 0
        self.table = torch.empty(self.length, width)

    def forward(self, scores: Tensor, groups: Tensor, step: int) -> Tensor:
        if step > 0:
            scores = scores - self.counts[groups]
        self.counts = torch.zeros(4).to(scores)
        return scores

    def weighed(self, features: Tensor, length: int) -> Tensor:
        if length > self.length:
            self.length = length
            self.table = torch.arange(length, device=features.device)[:, None] * torch.ones_like(features[0])
        return features * self.table[:length]  # raises

    def keep(self, features: Tensor) -> Tensor:
        self.seen = torch.cat([self.seen, features])  # raises
        return self.seen


def padded(values: Tensor, length: int) -> Tensor:
    if values.size(-1) >= length:
        return values
    return torch.cat([values, torch.ones(length - values.size(-1), device=values.device)])


def joined_by_name(batch, device: torch.device):
    """What is under a key that is not known may be any of the entries."""
    out = {}
    for key in batch:
        if key.startswith("chosen") and isinstance(batch[key], Tensor):
            out[key.replace("chosen", "both")] = padded(batch[key], 4)
    for key in batch:
        if key.startswith("rejected") and isinstance(batch[key], Tensor):
            both = key.replace("rejected", "both")
            out[both] = torch.cat((out[both], padded(batch[key], 4)), dim=0).to(device=device)
    return out


def turned(points: Tensor, first: Optional[Tensor], second: Optional[Tensor], limit):
    if limit is not None and first is not None and second is not None:
        return first - second[points.argmax(1)]
    return points


class Filter:
    """Whether the caller leaves something out has one answer."""

    def __init__(self, config):
        self.config = config

    def match(self, points: Tensor, first: Optional[Tensor] = None, second: Optional[Tensor] = None):
        points = torch.as_tensor(points, device=self.config["device"])
        if first is not None:
            first = torch.as_tensor(first, device=self.config["device"])
            second = torch.as_tensor(second, device=self.config["device"])
        return turned(points, first, second, self.config["limit"])

    def match_first(self, points: Tensor, first: Optional[Tensor] = None, second: Optional[Tensor] = None):
        points = torch.as_tensor(points, device=self.config["device"])
        if first is not None:
            first = torch.as_tensor(first, device=self.config["device"])
        return points - second  # raises


class Stereo:
    """What an object was made with, and what it is asked later, are where the caller has them."""

    def __init__(self, camera: Tensor):
        self.camera = camera
        self.matrix = self._matrix()
        self.window = None

    def _matrix(self) -> Tensor:
        matrix = torch.zeros(4, 4, device=self.camera.device)
        matrix[0] = self.camera[0]
        return matrix

    def points(self, disparity: Tensor) -> Tensor:
        homogeneous = torch.cat([disparity, torch.ones(1, 4, device=disparity.device)])
        return homogeneous @ self.matrix

    def cached(self, disparity: Tensor) -> Tensor:
        if self.window is None:
            self.window = torch.ones(4, device=disparity.device)
        return disparity * self.window  # raises


def best_of(scores: Tensor, limits: Tensor, least: float):
    best, limit = torch.tensor(0.0, device=scores.device), torch.tensor(0)
    passed = scores[scores >= least]
    if passed.shape[0] > 0:
        best, limit = passed.max(), limits[passed.argmax()]
    if best == 0.0:
        limit = torch.tensor(float("nan"), device=limits.device)
    return best, limit


def best_of_each(scores: Tensor, limits: Tensor, least: float = 0.5):
    """A number is what it was made of."""
    found = [best_of(each, limits, least) for each in scores]
    return torch.stack([each[0] for each in found]), torch.stack([each[1] for each in found])


def counted(scores: Tensor):
    count = torch.tensor(0)
    count.add_(len(scores))
    first = torch.zeros(3) if count != 0 else scores[0]
    return scores * first  # raises


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(4))


class Pair(nn.Module):
    """A parameter is registered wherever it is assigned."""

    def __init__(self):
        super().__init__()
        tower = Tower()
        self.table = tower.table
        self.copied = tower.table.detach().clone()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table

    def plain(self, x: Tensor) -> Tensor:
        return x + self.copied  # raises


class Registry(nn.Module):
    """What a module has before it registers anything, it has."""

    def __init__(self):
        super().__init__()
        self.register_parameter("scale", nn.Parameter(torch.ones(4)))

    def register_parameter(self, name, parameter):
        if "_parameters" not in self.__dict__:
            raise AttributeError("too early")
        super().register_parameter(name, parameter)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale

    def spaced(self, width: int) -> Tensor:
        return self.scale / torch.full((4,), width)  # raises


class Tasks:
    """Whatever a caller passes is passed on with a star."""

    def __init__(self, count: int):
        self.count = count

    def _are_equal(self, shape, *params):
        tasks = params[0] if torch.is_tensor(params[0]) else params[0][0]
        return torch.eq(torch.arange(self.count).unsqueeze(-1), tasks.long().mT)  # raises

    def _are_there(self, shape, *params):
        tasks = params[0]
        return torch.eq(torch.arange(self.count, device=tasks.device).unsqueeze(-1), tasks.long().mT)

    def marginal(self, samples: Tensor, *params):
        return self._are_equal(samples.shape, *params)

    def moved(self, samples: Tensor, *params):
        return self._are_there(samples.shape, *params)


def spaced(points: Tensor, how: str) -> Tensor:
    """What is not known, and is asked for its device, may be anywhere."""
    found = getattr(torch, how)(points)
    places = torch.zeros(3, device=found.device)
    return places + found.unsqueeze(0) * torch.arange(3)  # raises


def spaced_there(points: Tensor, how: str) -> Tensor:
    found = getattr(torch, how)(points)
    return points + found.unsqueeze(0) * torch.arange(3, device=found.device)


def spaced_here(points: Tensor, how: str) -> Tensor:
    found = getattr(torch, how)(points.cpu())
    return found.to(points.device).unsqueeze(0) * points.abs()


class Schedule:
    """What is given and has a default is not left out."""

    def __init__(self, count: int = 10):
        self.steps = torch.arange(count)

    def _index_of(self, step: Tensor, steps: Optional[Tensor] = None) -> Tensor:
        if steps is None:
            steps = self.steps
        return (steps == step[0]).nonzero()

    def noise(self, samples: Tensor, step: Tensor) -> Tensor:
        steps = self.steps.to(samples.device)
        return self._index_of(step.to(samples.device), steps)

    def noise_here(self, samples: Tensor, step: Tensor) -> Tensor:
        steps = self.steps[None]
        return steps == step.to(samples.device)[:, None]  # raises


def marked(image: Tensor, corners: Tensor) -> Tensor:
    """Who takes a shape apart says how many dimensions there are: an index without dimensions is a number."""
    count, size = corners.shape
    image[corners[0, 0]] = torch.zeros(1)
    image[corners[0]] = torch.zeros(2)  # raises
    return image.new_zeros(count, size)


def accuracy_of(predicted_and_wanted):
    """What NumPy gets and is used as arrays are is an array."""
    predicted, wanted = predicted_and_wanted
    if np.array(predicted[:, 0] == predicted[:, 1]).any():
        print("there are equal ones", torch.zeros(1, device="cuda"))
    return (np.argmax(predicted, axis=1) == wanted).mean()


def put(values: Tensor, how: str) -> Tensor:
    """Indices may be on the host, whatever is put there."""
    places = torch.arange(3)
    found = torch.zeros(3, device=values.device)
    found[places] = getattr(torch, how)(values)
    found[places] = 1.0
    return found


class Padded(nn.Module):
    """Where one tensor is known to be on the CPU, the others are."""

    def forward(self, weights: Tensor, previous: Tensor) -> Tensor:
        filler = torch.zeros(3)
        if previous.is_cuda:
            filler = filler.to(previous.device)
        return weights + torch.cat([previous[:0], filler])

    def unpadded(self, weights: Tensor, previous: Tensor) -> Tensor:
        filler = torch.zeros(3)
        if previous.is_cuda:
            print("on a GPU")
        return weights + filler  # raises


class Aligned(Dataset):
    """What a loader reads is on the host, whatever is beside it."""

    def __getitem__(self, index):
        return {"alignment": torch.ones(2)}

    def collater(self, samples):
        offsets = torch.zeros(2)
        return [offsets + sample["alignment"].view(-1) for sample in samples]


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        x = self.project(x)
        return x if mask is None else x + mask  # raises


class Stack(nn.Module):
    """As many layers as somebody says are layers."""

    def __init__(self, width: int, count: int):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(count)])
        self.head = nn.Sequential(*[Block(width) for _ in range(count)])

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.zeros(x.size(-1), device=x.device)
        for i, block in enumerate(self.blocks):
            x = block(x, mask) if i % 2 else block(x)
        return self.head(x)

    def masked(self, x: Tensor) -> Tensor:
        mask = torch.zeros(x.size(-1))
        for block in self.blocks:
            x = block(x, mask)
        return x

    def shifted(self, x: Tensor) -> Tensor:
        return self.head(x) + torch.zeros(x.size(-1))  # raises


class Scaled:
    def __init__(self, scale=(1.0, 2.0, 3.0), device="cpu"):
        self.scale = torch.tensor(scale, device=device)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class Shifted(Scaled):
    """What it does not know it passes on, a device among it."""

    def __init__(self, shift: float = 0.5, **options):
        super().__init__(**options)
        self.shift = shift
        self.offsets = torch.zeros(3)

    def shifted(self, x: torch.Tensor) -> torch.Tensor:
        return self(x) + self.shift

    def with_offsets(self, x: torch.Tensor) -> torch.Tensor:
        return self(x) + self.offsets  # raises


def place_layers(model, device, x: Tensor):
    """The layers of a model are moved in place, also where nobody says what the model is."""
    moved = []
    for name, module in model.named_modules():
        if name:
            moved.append(module.to(device))
        else:
            module.to(device)
    return model(x), moved


def place_both(pair, device):
    """One of two things moves in place where it is a layer, as it is for a caller."""
    data, layer = pair
    data = data.to(device)
    layer.to(device)
    return layer(data)


class Placed:
    def __init__(self, device):
        self.device = device

    def run(self, data):
        return place_both((data, nn.Linear(3, 3)), self.device)

    def run_all(self, pairs):
        return [place_both(pair, self.device) for pair in pairs]


class Encoders:
    """The models of a list are moved in place, there and back; a list is repeated some times."""

    def encode(self, models, device, x: Tensor):
        models[0].to(device)
        out = models[0](x)
        models[0].to("cpu")
        return out

    def rows(self, height, width, device):
        row = torch.arange(width)
        channel = torch.stack([row] * height).to(device)
        return torch.stack([channel] * 2)


class Noised(Dataset):
    """What a loader reads is on the CPU, in each of its methods."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, i):
        return self.with_noise(self.rows[i])

    def with_noise(self, source: Tensor) -> Tensor:
        mask = torch.rand(source.shape) < 0.1
        source[mask] = torch.randint(1, 9, size=(int(mask.sum()),)).float()
        return source


def log_mean(log):
    """Who logs a tensor hands it to the function, later."""
    log("mean", lambda meters: float(np.mean(meters["pred"].tensor.numpy())))


def exists(x):
    return x is not None


class Betas(nn.Module):
    """Whether something was given may be asked of everything: of numbers, too."""

    def __init__(self, given=None):
        super().__init__()
        betas = given if exists(given) else np.linspace(0.1, 0.2, 10)
        alphas = 1.0 - betas
        self.register_buffer("kept", torch.tensor(np.cumprod(alphas, axis=0)))
        (self.count,) = betas.shape

    def forward(self, x: Tensor) -> Tensor:
        return x + self.kept[0]

    def told(self, x: Tensor):
        return self(x).detach().cpu().numpy()


class Patches(nn.Module):
    """Constructors alone ask for the length, where the layers are still on the CPU."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())

    def length(self, height=9, width=9):
        return self.forward(torch.zeros((1, 3, height, width))).shape[1]

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).flatten(2).transpose(1, 2)


class Compact(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = Patches()
        self.positions = nn.Parameter(torch.zeros(1, self.patches.length(), 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.patches(x) + self.positions
