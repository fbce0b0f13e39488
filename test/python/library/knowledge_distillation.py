"""Distillation of a teacher into a student: losses on logits, features, relations and sequences."""
import copy
import io
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOSSES: Dict[str, Callable[..., "DistillLoss"]] = {}


def register_loss(name):
    def wrap(cls):
        LOSSES[name] = cls
        return cls
    return wrap


@dataclass
class DistillConfig:
    classes: int = 5
    width: int = 4
    teacher_width: int = 8
    temperature: float = 2.0
    losses: Dict[str, float] = field(default_factory=lambda: {"kl": 1.0})
    taps: Tuple[str, ...] = ("block1",)
    bank: int = 12
    negatives: int = 3


def move(data: Any, device) -> Any:
    if isinstance(data, Tensor):
        return data.to(device, non_blocking=True)
    if isinstance(data, dict):
        return {key: move(value, device) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(move(value, device) for value in data)
    return data


class ConvNet(nn.Module):
    def __init__(self, width: int, classes: int):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU())
        self.block2 = nn.Sequential(nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.block2(self.block1(x))
        return self.head(x.mean((2, 3)))


class FeatureRecorder:
    """Keeps the outputs of the named blocks until they are read."""

    def __init__(self, model: nn.Module, names: Iterable[str], store: Union[str, torch.device, None] = None):
        self.store, self.outputs = store, OrderedDict()
        modules = dict(model.named_modules())
        self.handles = [modules[name].register_forward_hook(self._hook(name)) for name in names]

    def _hook(self, name):
        def keep(module, inputs, output):
            self.outputs[name] = output if self.store is None else output.to(self.store)
        return keep

    def pop(self) -> List[Tensor]:
        values = list(self.outputs.values())
        self.outputs.clear()
        return values


class DistillLoss(nn.Module):
    """Base: a loss between what the student and the teacher give."""

    def __init__(self, config: DistillConfig):
        super().__init__()
        self.config = config

    def forward(self, student: Tensor, teacher: Tensor, target: Optional[Tensor] = None) -> Tensor:
        raise NotImplementedError


@register_loss("kl")
class SoftTargets(DistillLoss):
    def forward(self, student, teacher, target=None):
        temperature = torch.tensor(self.config.temperature)
        log = F.log_softmax(student / temperature, dim=1)
        return F.kl_div(log, F.softmax(teacher / temperature, dim=1), reduction="batchmean") * temperature.square()


@register_loss("dkd")
class DecoupledTargets(DistillLoss):
    """Target class and other classes apart."""

    def binary(self, logits, mine):
        probability = logits.softmax(1)
        inside = (probability * mine).sum(1)
        return torch.stack([inside, 1 - inside], dim=1).clamp(1e-6)

    def forward(self, student, teacher, target=None):
        mine = torch.zeros_like(student).scatter_(1, target.unsqueeze(1), 1).bool()
        first = F.kl_div(self.binary(student, mine).log(), self.binary(teacher, mine), reduction="batchmean")
        hidden = -1000.0 * mine
        second = F.kl_div((student + hidden).log_softmax(1), (teacher + hidden).softmax(1), reduction="batchmean")
        return first + second


@register_loss("grouped")
class GroupedTargets(DecoupledTargets):
    """Compares groups of classes, as coarse labels would."""

    def __init__(self, config, groups: Sequence[int] = (0, 0, 1, 1, 2)):
        super().__init__(config)
        self.groups = torch.as_tensor(groups)

    def pooled(self, logits):
        result = logits.new_zeros(logits.size(0), int(self.groups.max()) + 1)
        return result.index_add_(1, self.groups, logits.softmax(1))  # raises

    def forward(self, student, teacher, target=None):
        return F.mse_loss(self.pooled(student), self.pooled(teacher))


@register_loss("rkd")
class RelationalLoss(DistillLoss):
    def distances(self, x):
        squared = x.square().sum(1)
        product = squared[:, None] + squared[None] - 2 * x @ x.t()
        result = product.clamp(min=1e-12).sqrt().clone()
        result[range(len(x)), range(len(x))] = 0
        return result

    def scaled(self, distances):
        return distances / distances[distances > 0].mean()

    def forward(self, student, teacher, target=None):
        return F.smooth_l1_loss(self.scaled(self.distances(student)), self.scaled(self.distances(teacher)))


@register_loss("rkd_upper")
class UpperRelationalLoss(RelationalLoss):
    def scaled(self, distances):
        pairs = torch.ones(distances.shape).triu(1).bool()
        kept = distances.masked_select(pairs)  # raises
        return kept / kept.mean()


class Projector(nn.Module):
    """Maps the features of the student to the size of the teacher's at the first call."""

    def __init__(self, eager: Optional[Tuple[int, int]] = None):
        super().__init__()
        self.conv = nn.Conv2d(*eager, 1) if eager else None

    def forward(self, student, teacher):
        if self.conv is None:
            self.conv = nn.Conv2d(student.size(1), teacher.size(1), 1)
        return self.conv(student)  # raises


class FeatureLoss(nn.Module):
    def __init__(self, projector: Projector):
        super().__init__()
        self.projector = projector

    def pair(self, student, teacher):
        return F.mse_loss(self.projector(student, teacher), teacher)  # raises

    def forward(self, students: List[Tensor], teachers: List[Tensor]):
        return sum(self.pair(s, t.detach()) for s, t in zip(students, teachers))


class AttentionTransfer(FeatureLoss):
    @staticmethod
    def attention(x):
        return F.normalize(x.square().mean(1).flatten(1))

    def pair(self, student, teacher):
        return (self.attention(student) - self.attention(teacher).to(student.device)).square().mean()


class AliasSampler:
    """Draws from a discrete distribution in constant time."""

    def __init__(self, weights: Sequence[float]):
        share = np.asarray(weights, dtype=np.float64)
        share = share * len(share) / share.sum()
        self.alias = torch.zeros(len(share), dtype=torch.long)
        small = [each for each in range(len(share)) if share[each] < 1]
        large = [each for each in range(len(share)) if share[each] >= 1]
        while small and large:
            low, high = small.pop(), large.pop()
            self.alias[low] = high
            share[high] -= 1 - share[low]
            (small if share[high] < 1 else large).append(high)
        self.probability = torch.from_numpy(share.clip(0, 1)).float()

    def draw(self, *shape: int) -> Tensor:
        slots = torch.randint(len(self.alias), shape)
        keep = torch.bernoulli(self.probability[slots]).bool()
        return torch.where(keep, slots, self.alias[slots])


class ContrastiveBank(nn.Module):
    """Contrasts the student with teacher features that a bank keeps by sample."""

    def __init__(self, config: DistillConfig, dim: int):
        super().__init__()
        self.negatives = config.negatives
        self.sampler = AliasSampler([1.0 + each % 3 for each in range(config.bank)])
        self.register_buffer("memory", F.normalize(torch.randn(config.bank, dim), dim=1))

    def pick(self, index: Tensor) -> Tensor:
        others = self.sampler.draw(index.size(0), self.negatives)
        return self.memory[torch.cat([index.unsqueeze(1).cpu(), others], dim=1)]

    @torch.no_grad()
    def refresh(self, index, features):
        self.memory[index] = F.normalize(self.memory[index] + features, dim=1)

    def forward(self, student, teacher, index):
        candidates = self.pick(index)
        logits = torch.einsum("bd,bkd->bk", F.normalize(student, dim=1), candidates) / 0.1
        self.refresh(index, teacher.detach())
        return F.cross_entropy(logits, torch.zeros_like(index))


class WeightedContrastiveBank(ContrastiveBank):
    """Gives each negative the weight of its chance."""

    def forward(self, student, teacher, index):
        others = self.sampler.draw(self.negatives).to(index.device)
        chance = self.sampler.probability[others]  # raises
        score = F.normalize(student, dim=1) @ self.memory[others].t()
        return (score.exp() * chance).mean()


class LogitCache:
    """Teacher logits by sample, so that the teacher runs only once."""

    def __init__(self):
        self.rows: Dict[int, np.ndarray] = {}

    def write(self, index: Tensor, logits: Tensor):
        for number, row in zip(index.tolist(), logits.detach().cpu().numpy()):
            self.rows[number] = row.astype(np.float16)

    def write_top(self, index, logits, k=2):
        values, places = logits.detach().topk(k, dim=1)
        for number, value, place in zip(index.tolist(), values, places):
            row = np.full(logits.size(1), -10.0, dtype=np.float16)
            row[place.tolist()] = value.numpy()  # raises
            self.rows[number] = row

    def read(self, index: Tensor) -> Tensor:
        return torch.from_numpy(np.stack([self.rows[each] for each in index.tolist()])).float()


class Distiller(nn.Module):
    """Student and teacher; the teacher is no part of the state."""

    def __init__(self, student: nn.Module, teacher: nn.Module, config: DistillConfig):
        super().__init__()
        self.student, self.config = student, config
        self._teacher = [teacher.eval()]
        self.losses = nn.ModuleDict({name: LOSSES[name](config) for name in config.losses})
        self.cache: Optional[LogitCache] = None

    @property
    def teacher(self) -> nn.Module:
        return self._teacher[0]

    def guide(self, images, index) -> Tensor:
        if self.cache is not None:
            return self.cache.read(index)
        with torch.no_grad():
            return self.teacher(images)  # raises

    def total(self, student, teacher, target):
        return sum(weight * self.losses[name](student, teacher, target) for name, weight in self.config.losses.items())

    def forward(self, images, target, index=None):
        return self.total(self.student(images), self.guide(images, index), target)


class CompleteDistiller(Distiller):
    def _apply(self, fn):
        self.teacher._apply(fn)
        return super()._apply(fn)


class CachedDistiller(CompleteDistiller):
    @torch.no_grad()
    def warm_up(self, images, index):
        self.cache = LogitCache()
        self.cache.write(index, self.teacher(images))
        return self

    def agreement(self, images, index) -> float:
        guess = self.student(images).argmax(1)
        return float((guess == self.guide(images, index).argmax(1)).float().mean())  # raises

    def total(self, student, teacher, target):
        return super().total(student, teacher.to(student.device), target)


class MeanTeacher:
    """A slow copy of the student, its weights in one flat list."""

    def __init__(self, student: nn.Module, decay: float = 0.9, offload: bool = False):
        self.model = copy.deepcopy(student).requires_grad_(False)
        self.decay, self.offload = decay, offload
        if offload:
            self.model.cpu()

    @torch.no_grad()
    def update(self, student: nn.Module):
        for slow, fast in zip(self.model.parameters(), student.parameters()):
            if self.offload:
                slow.copy_(self.decay * slow + (1 - self.decay) * fast.detach().cpu())
            else:
                slow.lerp_(fast, 1 - self.decay)  # raises


class CentredTeacher(nn.Module):
    """Sharpens and centres the teacher as in self-distillation."""

    def __init__(self, classes: int, momentum: float = 0.9):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("center", torch.zeros(1, classes))

    def forward(self, logits):
        soft = F.softmax((logits - self.center) / 0.1, dim=1)  # raises
        self.center = self.center * self.momentum + logits.detach().mean(0, keepdim=True) * (1 - self.momentum)
        return soft

    def save(self) -> io.BytesIO:
        stream = io.BytesIO()
        torch.save(self.state_dict(), stream)
        stream.seek(0)
        return stream

    def resume(self, stream, strict=True):
        state = torch.load(stream, map_location="cpu")
        if strict:
            self.load_state_dict(state)
        else:
            self.center = state["center"]
        return self


class NoiseInverter:
    """Images made from the statistics of a teacher, without data."""

    def __init__(self, teacher: nn.Module, seed: int = 0, reproducible: bool = False):
        self.teacher, self.reproducible = teacher, reproducible
        self.generator = torch.Generator().manual_seed(seed)

    def start(self, count: int) -> Tensor:
        device = next(self.teacher.parameters()).device
        if self.reproducible:
            noise = torch.randn(count, 3, 8, 8, generator=self.generator, device=device)  # raises
        else:
            noise = torch.randn(count, 3, 8, 8, generator=self.generator).to(device)
        return noise.requires_grad_(True)

    def run(self, count: int, steps: int = 2) -> Tensor:
        images = self.start(count)
        wanted = torch.arange(count, device=images.device) % 5
        optimizer = torch.optim.Adam([images], lr=0.05)
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(self.teacher(images), wanted).backward()
            optimizer.step()
        return images.detach()


class SequenceDistiller:
    """Token level distillation of padded sequences."""

    def valid(self, lengths: Tensor, width: int) -> Tensor:
        return torch.arange(width).expand(len(lengths), width) < lengths.unsqueeze(1)  # raises

    def packed(self, logits: Tensor, lengths: Tensor) -> Tensor:
        flat = nn.utils.rnn.pack_padded_sequence(logits, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return flat.data

    def packed_loss(self, student, teacher, lengths):
        student, teacher = self.packed(student, lengths), self.packed(teacher, lengths)
        return F.kl_div(student.log_softmax(-1), teacher.softmax(-1).clamp(min=1e-4), reduction="sum")

    def masked_loss(self, student, teacher, lengths):
        mask = self.valid(lengths, student.size(1))
        loss = F.kl_div(student.log_softmax(-1), teacher.softmax(-1), reduction="none").sum(-1)
        return loss[mask].mean()
