"""Self-supervised objectives: queues, momentum teachers, crops, masks, centring and monitors."""
from __future__ import annotations

import copy
import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import cached_property
from typing import Deque, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

PIXEL_MEAN = torch.tensor([0.485, 0.456, 0.406])
PIXEL_STD = torch.tensor([0.229, 0.224, 0.225])


@dataclass
class SSLConfig:
    in_dim: int = 12
    dim: int = 8
    prototypes: int = 6
    queue: int = 16
    momentum: float = 0.9
    temperature: float = 0.2
    crops: int = 4


def mlp(sizes: Sequence[int], last_norm: bool = False) -> nn.Sequential:
    layers: "OrderedDict[str, nn.Module]" = OrderedDict()
    for k, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers[f"fc{k}"] = nn.Linear(a, b)
        if k < len(sizes) - 2:
            layers[f"act{k}"] = nn.GELU()
    if last_norm:
        layers["norm"] = nn.LayerNorm(sizes[-1])
    return nn.Sequential(layers)


def channel(values: Tensor) -> Tensor:
    return values.view(1, -1, 1, 1)


def standardise(images: Tensor) -> Tensor:
    mean, std = (channel(each).to(images) for each in (PIXEL_MEAN, PIXEL_STD))
    return (images - mean) / std


def restore_pixels(images: Tensor, std: Tensor = PIXEL_STD, mean: Tensor = PIXEL_MEAN) -> Tensor:
    out = images.clone()
    for plane, s, m in zip(out.unbind(1), std, mean):
        plane.mul_(s).add_(m)
    return out.clamp_(0, 1)


def brightness(images: Tensor, strength: float, per_image: bool = False) -> Tensor:
    shape = (images.shape[0], 1, 1, 1) if per_image else ()
    factor = 1.0 + strength * (2 * torch.rand(shape) - 1)
    if per_image:
        return images * factor.to(images.device)
    return images * factor


class FeatureQueue(nn.Module):
    """A ring of normalised keys."""

    def __init__(self, dim: int, size: int):
        super().__init__()
        self.size = size
        self.register_buffer("ring", F.normalize(torch.randn(size, dim), dim=1))
        self.cursor = torch.zeros(1, dtype=torch.long)

    def slots(self, n: int) -> Tensor:
        return (self.cursor + torch.arange(n)) % self.size

    @torch.no_grad()
    def push(self, keys: Tensor) -> Tensor:
        slots = self.slots(keys.shape[0])
        self.ring[slots] = F.normalize(keys, dim=1)
        self.cursor[0] = (int(self.cursor) + keys.shape[0]) % self.size
        return slots

    def nearest(self, queries: Tensor) -> Tensor:
        return self.ring[(F.normalize(queries, dim=1) @ self.ring.t()).argmax(1)]


class LabelledQueue(FeatureQueue):
    """Also remembers the label of each key and how old it is."""

    def __init__(self, dim: int, size: int):
        super().__init__(dim, size)
        self.register_buffer("labels", torch.full((size,), -1))
        self.age = torch.zeros(size)

    def push(self, keys: Tensor, labels: Optional[Tensor] = None) -> Tensor:
        slots = super().push(keys)
        self.age += 1
        self.age[slots] = 0
        if labels is not None:
            self.labels[slots] = labels
        return slots

    def positives(self, labels: Tensor) -> Tensor:
        return labels.unsqueeze(1) == self.labels

    def aged_logits(self, queries: Tensor, decay: float = 0.99) -> Tensor:
        logits = queries @ self.ring.t()
        return logits + math.log(decay) * self.age  # raises

    def oldest(self, k: int) -> Tensor:
        return self.ring.index_select(0, self.age.topk(k).indices.to(self.ring.device))


class MomentumMixin:
    """Keeps a teacher that follows the student."""

    momentum: float

    def pairs(self) -> Iterator[Tuple[Tensor, Tensor]]:
        yield from zip(self.student.parameters(), self.teacher.parameters())

    @torch.no_grad()
    def follow(self, step: int = 0, total: int = 10) -> None:
        progress = torch.tensor(step / total)
        m = 1 - (1 - self.momentum) * (torch.cos(math.pi * progress) + 1) / 2
        for online, slow in self.pairs():
            slow.mul_(m).add_((1 - m) * online)


class MoCo(MomentumMixin, nn.Module):
    def __init__(self, config: SSLConfig):
        super().__init__()
        self.config = config
        self.momentum = config.momentum
        self.student = mlp([config.in_dim, config.dim, config.dim])
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.queue = FeatureQueue(config.dim, config.queue)

    def targets(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.long)

    def logits(self, view_a: Tensor, view_b: Tensor) -> Tensor:
        q = F.normalize(self.student(view_a), dim=1)
        with torch.no_grad():
            k = F.normalize(self.teacher(view_b), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        logits = torch.cat([positive, q @ self.queue.ring.clone().t()], 1) / self.config.temperature
        self.queue.push(k)
        return logits

    def forward(self, view_a: Tensor, view_b: Tensor) -> Tensor:
        logits = self.logits(view_a, view_b)
        return F.cross_entropy(logits, self.targets(len(logits)).to(logits.device))

    @torch.no_grad()
    def pretext_accuracy(self, view_a: Tensor, view_b: Tensor) -> float:
        guess = self.logits(view_a, view_b).argmax(1)
        return guess.eq(self.targets(len(guess))).float().mean().item()  # raises


class HiddenTeacher(nn.Module):
    """BYOL, with a teacher that stays out of parameters() and of the checkpoint."""

    def __init__(self, config: SSLConfig):
        super().__init__()
        self.student = mlp([config.in_dim, config.dim])
        self.predictor = mlp([config.dim, config.dim, config.dim])
        self._slow = [copy.deepcopy(self.student).requires_grad_(False)]

    @property
    def slow(self) -> nn.Module:
        return self._slow[0]

    def regress(self, view: Tensor, target: Tensor) -> Tensor:
        return 2 - 2 * F.cosine_similarity(self.predictor(self.student(view)), target.detach()).mean()

    def forward(self, view_a: Tensor, view_b: Tensor) -> Tensor:
        with torch.no_grad():
            target = self.slow(view_b)  # raises
        return self.regress(view_a, target)

    def simsiam(self, view_a: Tensor, view_b: Tensor) -> Tensor:
        return (self.regress(view_a, self.student(view_b)) + self.regress(view_b, self.student(view_a))) / 2


class WeightAverage:
    """An average of the weights, to be written to a file now and then."""

    def __init__(self, module: nn.Module, decay: float = 0.9):
        self.decay = decay
        self.shadow = {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        for name, value in module.state_dict().items():
            self.shadow[name].lerp_(value.detach().to(self.shadow[name].device), 1 - self.decay)

    def apply_to(self, module: nn.Module) -> None:
        module.load_state_dict(self.shadow)

    @torch.no_grad()
    def drift(self, module: nn.Module) -> Dict[str, float]:
        moved = {}
        for name, value in module.named_parameters():
            moved[name] = torch.dist(value, self.shadow[name]).item()  # raises
        return moved


class Centring(nn.Module):
    """DINO's centre and a memory of the last centres."""

    def __init__(self, dim: int, momentum: float = 0.9, warm: Tuple[float, float, int] = (0.04, 0.07, 3)):
        super().__init__()
        self.momentum = momentum
        self.schedule = torch.from_numpy(np.linspace(*warm)).float()
        self.register_buffer("centre", torch.zeros(1, dim))
        self.history: Deque[Tensor] = deque([torch.zeros(1, dim)], maxlen=3)

    def temperature(self, epoch: int) -> Tensor:
        return self.schedule[min(epoch, len(self.schedule) - 1)]

    def forward(self, teacher: Tensor, epoch: int) -> Tensor:
        return F.softmax((teacher - self.centre) / self.temperature(epoch), dim=-1)

    @torch.no_grad()
    def update(self, teacher: Tensor) -> None:
        self.centre.lerp_(teacher.mean(0, keepdim=True), 1 - self.momentum)
        self.history.append(self.centre.clone())

    def trend(self) -> Tensor:
        return torch.cat(list(self.history)).diff(dim=0)  # raises


class MultiCrop(nn.Module):
    """Runs crops of one size together, and compares each with each of the teacher's."""

    def __init__(self, config: SSLConfig):
        super().__init__()
        self.backbone = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(config.in_dim, config.dim))
        self.centring = Centring(config.dim)
        self.crop_weight = torch.linspace(1.0, 0.5, config.crops)

    def groups(self, crops: List[Tensor]) -> List[int]:
        widths = torch.tensor([crop.shape[-1] for crop in crops])
        return torch.unique_consecutive(widths, return_counts=True)[1].cumsum(0).tolist()

    def encode(self, crops: List[Tensor]) -> List[Tensor]:
        outs, start = [], 0
        for end in self.groups(crops):
            outs.append(self.backbone(torch.cat(crops[start:end])))
            start = end
        return list(torch.cat(outs).chunk(len(crops)))

    def crop_losses(self, crops: List[Tensor], epoch: int) -> List[Tensor]:
        students = self.encode(crops)
        target = self.centring(students[0].detach(), epoch)
        return [-(target * F.log_softmax(each / 0.1, -1)).sum(-1).mean() for each in students[1:]]

    def forward(self, crops: List[Tensor], epoch: int = 0) -> Tensor:
        losses = self.crop_losses(crops, epoch)
        return sum(weight * loss for weight, loss in zip(self.crop_weight, losses)) / len(losses)

    def hardest(self, crops: List[Tensor], epoch: int = 0) -> Tensor:
        losses = torch.stack(self.crop_losses(crops, epoch))
        return losses.dot(self.crop_weight[: len(losses)])  # raises


@torch.no_grad()
def sinkhorn(scores: Tensor, rounds: int = 3, epsilon: float = 0.05, marginal: Optional[Tensor] = None) -> Tensor:
    q = torch.exp((scores - scores.max()) / epsilon).t()
    q /= q.sum()
    k, b = q.shape
    rows = torch.ones(k) / k if marginal is None else marginal
    for _ in range(rounds):
        q *= (rows / q.sum(1)).unsqueeze(1)  # raises
        q *= (torch.tensor(1.0 / b) / q.sum(0)).unsqueeze(0)
    return (q / q.sum(0, keepdim=True)).t()


class SwAV(nn.Module):
    def __init__(self, config: SSLConfig):
        super().__init__()
        self.prototypes = nn.Linear(config.dim, config.prototypes, bias=False)

    def uniform(self) -> Tensor:
        weight = self.prototypes.weight
        return torch.full((weight.shape[0],), 1.0 / weight.shape[0]).type_as(weight)

    def codes(self, z: Tensor) -> Tensor:
        return sinkhorn(self.prototypes(F.normalize(z, dim=1)), marginal=self.uniform())

    def forward(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        return -(self.codes(z_a) * F.log_softmax(self.prototypes(F.normalize(z_b, dim=1)), 1)).sum(1).mean()


class NTXent(nn.Module):
    def __init__(self, temperature: float = 0.5):
        super().__init__()
        self.temperature = temperature

    def similarity(self, z: Tensor) -> Tensor:
        z = F.normalize(z, dim=1)
        return z @ z.t() / self.temperature

    def forward(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        n = len(z_a)
        sim = self.similarity(torch.cat([z_a, z_b]))
        sim[range(2 * n), range(2 * n)] = float("-inf")
        return F.cross_entropy(sim, torch.arange(2 * n, device=sim.device).roll(n))

    def debiased(self, z_a: Tensor, z_b: Tensor, prior: float = 0.1) -> Tensor:
        n = len(z_a)
        sim = self.similarity(torch.cat([z_a, z_b])).exp()
        same = torch.eye(n, dtype=torch.bool).repeat(2, 2)
        negative = sim.masked_fill(same, 0.0).sum(1)  # raises
        positive = (z_a * z_b).sum(1).exp().repeat(2)
        return -torch.log(positive / (positive + negative - prior * n)).mean()


class VarianceCovariance(nn.Module):
    """VICReg and Barlow Twins over the same moments."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    @cached_property
    def off_diagonal(self) -> Tensor:
        return ~torch.eye(self.dim, dtype=torch.bool)

    def covariance(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        z_a, z_b = (z - z.mean(0) for z in (z_a, z_b))
        return z_a.t() @ z_b / max(len(z_a) - 1, 1)

    def vicreg(self, z: Tensor) -> Tensor:
        cov = self.covariance(z, z)
        return F.relu(1 - cov.diagonal().sqrt()).mean() + cov[self.off_diagonal].pow(2).sum() / self.dim

    def barlow(self, z_a: Tensor, z_b: Tensor, weight: float = 0.01) -> Tensor:
        c = self.covariance(z_a, z_b)
        penalty = torch.where(self.off_diagonal, weight * c.pow(2), (c - 1).pow(2))  # raises
        return penalty.sum()


class MaskingBase(nn.Module):
    def __init__(self, dim: int, ratio: float = 0.5):
        super().__init__()
        self.ratio = ratio
        self.token = nn.Parameter(torch.zeros(1, 1, dim))

    def shuffle(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        order = torch.rand(tokens.shape[:2]).argsort(1).to(tokens.device)
        return order, order.argsort(1)


class RandomMasking(MaskingBase):
    def forward(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        n, length, dim = tokens.shape
        keep = int(length * (1 - self.ratio))
        order, restore = self.shuffle(tokens)
        kept = tokens.gather(1, order[:, :keep, None].expand(-1, -1, dim))
        full = torch.cat([kept, self.token.expand(n, length - keep, -1)], 1)
        return full.gather(1, restore[..., None].expand(-1, -1, dim)), restore

    def loss(self, predicted: Tensor, tokens: Tensor, restore: Tensor) -> Tensor:
        mask = torch.ones(tokens.shape[:2])
        mask[:, : int(tokens.shape[1] * (1 - self.ratio))] = 0
        mask = mask.gather(1, restore)  # raises
        return ((predicted - tokens).pow(2).mean(-1) * mask).sum() / mask.sum()


class BlockMasking(MaskingBase):
    """Spans drawn with numpy."""

    def spans(self, n: int, length: int) -> np.ndarray:
        mask = np.zeros((n, length), dtype=bool)
        width = max(1, int(length * self.ratio))
        for row, start in enumerate(np.random.randint(0, length - width + 1, n)):
            mask[row, start : start + width] = True
        return mask

    def forward(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        mask = torch.from_numpy(self.spans(*tokens.shape[:2]))
        out = tokens.clone()
        out[mask] = self.token.view(-1)
        return out, tokens[mask]


@torch.no_grad()
def knn_vote(query: Tensor, bank: Tensor, labels: Tensor, classes: int, k: int = 3) -> Tensor:
    near = (F.normalize(query, dim=1) @ F.normalize(bank, dim=1).t()).topk(k)
    votes = torch.zeros(len(query), classes)
    votes.scatter_add_(1, labels[near.indices], near.values)  # raises
    return votes.argmax(1)
