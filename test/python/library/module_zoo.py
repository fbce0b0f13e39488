"""Layers, losses and metrics shared by our projects. Everything is a plain nn.Module or a function of tensors."""
from __future__ import annotations

import copy
import functools
import math
import warnings
from collections import defaultdict, deque
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

_ACTIVATIONS: Dict[str, Callable] = {}


def activation(name):
    def register(fn):
        _ACTIVATIONS[name] = fn
        return fn
    return register


@activation("swish")
def swish(x: Tensor, beta: float = 1.0) -> Tensor:
    return x * torch.sigmoid(torch.tensor(beta) * x)


@activation("squared_relu")
def squared_relu(x):
    return torch.maximum(x, x.new_zeros(())) ** 2


@activation("snake")
def snake(x, frequencies=(1.0, 2.0)):
    f = torch.tensor(frequencies)
    return x + (torch.sin(f * x.unsqueeze(-1)) ** 2 / f).sum(-1)  # raises


@activation("gelu_table")
def gelu_table(x, _knots=torch.linspace(-3, 3, 13)):
    at = torch.bucketize(x, _knots.to(x.device))
    return F.gelu(x) + 0 * at


def get_activation(name: str) -> Callable:
    try:
        return _ACTIVATIONS[name]
    except KeyError:
        raise ValueError(f"{name}: one of {sorted(_ACTIVATIONS)}")


# --------------------------------------------------------------------------------------------------------- normalisation


class RunningNorm(nn.Module):
    """Normalises by statistics that are gathered while training."""

    def __init__(self, dim: int, momentum: float = 0.1, eps: float = 1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.steps = torch.tensor(0)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.steps += 1
                rate = torch.maximum(1.0 / self.steps, torch.tensor(self.momentum))
                self.mean += rate * (x.mean(0) - self.mean)
                self.var.lerp_(x.var(0, unbiased=False), rate.item())
        return (x - self.mean) * torch.rsqrt(self.var + self.eps)


class WhiteningNorm(nn.Module):
    """Whitens with the inverse root of the covariance."""

    def __init__(self, dim, momentum=0.1, strength=1e-3):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("cov", torch.eye(dim))
        self.ridge = strength * torch.eye(dim)

    def forward(self, x):
        centred = x - x.mean(0, keepdim=True)
        if self.training:
            now = centred.t() @ centred / (len(x) - 1)
            self.cov = torch.lerp(self.cov, now.detach(), self.momentum)
        values, vectors = torch.linalg.eigh(self.cov + self.ridge)  # raises
        return centred @ vectors @ torch.diag(values.rsqrt()) @ vectors.t()


class ScaleNorm(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return self.scale * x / x.norm(dim=-1, keepdim=True).clamp(min=1e-5)


class MaskedNorm(nn.Module):
    """Batch statistics over the frames that `lengths` says are there."""

    def __init__(self, channels: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    @staticmethod
    def frames(x: Tensor, lengths: Sequence[int]) -> Tensor:
        return torch.arange(x.size(1)).expand(len(x), -1) < torch.as_tensor(lengths).unsqueeze(1)

    def forward(self, x, lengths):
        there = self.frames(x, lengths)
        picked = x[there]
        mean, std = picked.mean(0), picked.std(0) + 1e-5
        return (x - mean) / std * self.gain + self.shift

    def zeroed(self, x, lengths):
        y = self(x, lengths)
        return torch.where(self.frames(x, lengths).unsqueeze(-1), y, torch.zeros_like(y))  # raises


# --------------------------------------------------------------------------------------------------------- dropout


class WordDropout(nn.Module):
    def __init__(self, p=0.3, unk=1):
        super().__init__()
        self.p, self.unk = p, unk

    def forward(self, ids):
        if not self.training:
            return ids
        drop = torch.rand(ids.shape) < self.p
        return ids.masked_fill(drop, self.unk)  # raises


class LockedDropout(nn.Module):
    def forward(self, x: Tensor, p: float = 0.5) -> Tensor:
        if not self.training or p == 0:
            return x
        mask = torch.empty(x.size(0), 1, x.size(2), device=x.device).bernoulli_(1 - p)
        return x * mask.div_(1 - p)


class DropPath(nn.Module):
    """Drops whole samples of a residual branch."""

    def __init__(self, p: float):
        super().__init__()
        self.keep = 1 - p

    def forward(self, x):
        if self.keep == 1 or not self.training:
            return x
        shape = (x.shape[0],) + (1,) * (x.dim() - 1)
        noise = self.keep + torch.rand(shape, dtype=x.dtype)
        return x.div(self.keep) * noise.floor_()  # raises


class ConcreteDropout(nn.Module):
    def __init__(self, start=0.1, temperature=0.1):
        super().__init__()
        self.logit = nn.Parameter(torch.logit(torch.tensor([start])))
        self.temperature = temperature

    def forward(self, x):
        u = torch.rand_like(x).clamp(1e-6, 1 - 1e-6)
        drop = torch.sigmoid((self.logit + torch.log(u) - torch.log1p(-u)) / self.temperature)
        return x * (1 - drop) / (1 - self.logit.sigmoid())


# --------------------------------------------------------------------------------------------------------- embeddings


class SinusoidTable(nn.Module):
    def __init__(self, dim: int, length: int = 8):
        super().__init__()
        self.dim = dim
        self.pe = None
        self.extend(torch.zeros(length))

    def extend(self, x):
        n = x.size(0)
        if self.pe is not None and self.pe.size(0) >= n:
            if self.pe.dtype != x.dtype or self.pe.device != x.device:
                self.pe = self.pe.to(dtype=x.dtype, device=x.device)
            return
        at = torch.arange(n, dtype=torch.float32).unsqueeze(1)
        rate = torch.exp(torch.arange(0, self.dim, 2, dtype=torch.float32) * -(math.log(1e4) / self.dim))
        pe = torch.zeros(n, self.dim)
        pe[:, 0::2] = torch.sin(at * rate)
        pe[:, 1::2] = torch.cos(at * rate)
        self.pe = pe.to(device=x.device, dtype=x.dtype)

    def forward(self, x):
        self.extend(x[0])
        return x + self.pe[: x.size(1)]


class FourierTime(nn.Module):
    """Random features of a time; the frequencies are not learnt."""

    def __init__(self, dim, scale=16.0, learnt=False):
        super().__init__()
        frequencies = torch.randn(dim // 2) * scale
        self.frequencies = nn.Parameter(frequencies, requires_grad=False) if learnt else frequencies

    def forward(self, t):
        angle = t[:, None] * self.frequencies[None] * 2 * math.pi  # raises
        return torch.cat([angle.sin(), angle.cos()], -1)


def timestep_features(t: Tensor, dim: int, longest: float = 1e4) -> Tensor:
    half = dim // 2
    rates = torch.exp(-math.log(longest) * torch.arange(half, dtype=torch.float32) / half).to(device=t.device)
    angle = t[:, None].float() * rates[None]
    out = torch.cat([angle.cos(), angle.sin()], dim=-1)
    return F.pad(out, (0, dim % 2))


class LearnedPositions(nn.Embedding):
    def __init__(self, length, dim, offset=0):
        self.offset = offset
        super().__init__(length + offset, dim)

    def forward(self, shape: Tuple[int, int], past: int = 0):
        batch, n = shape
        at = torch.arange(past, past + n, dtype=torch.long, device=self.weight.device)
        return super().forward(at + self.offset).expand(batch, -1, -1)


class TokenTypes(nn.Module):
    def __init__(self, kinds=2, dim=4, length=16):
        super().__init__()
        self.table = nn.Embedding(kinds, dim)
        self.register_buffer("zeros", torch.zeros(1, length, dtype=torch.long), persistent=False)

    def forward(self, embedded, kinds=None):
        if kinds is None:
            kinds = self.zeros[:, : embedded.size(1)]
        return embedded + self.table(kinds)

    def after_separator(self, ids, separator):
        first = (ids == separator).long().argmax(1)
        at = torch.arange(ids.size(1))
        kinds = (at[None] > first[:, None]).long()  # raises
        return self.table(kinds)


class MultiHash(nn.Module):
    primes = [31, 43, 59]

    def __init__(self, buckets=8, dim=4):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(buckets, dim) for _ in self.primes)
        self.buckets = buckets

    def forward(self, ids):
        return sum(t((ids * p) % self.buckets) for t, p in zip(self.tables, self.primes))

    def all_at_once(self, ids):
        keys = ids.unsqueeze(-1) * torch.tensor(self.primes)  # raises
        return torch.stack([t(k) for t, k in zip(self.tables, (keys % self.buckets).unbind(-1))]).sum(0)


# --------------------------------------------------------------------------------------------------------- pooling, routing


class AttentiveStats(nn.Module):
    def __init__(self, dim, hidden=4):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x, lengths: Optional[Tensor] = None):
        e = self.score(x).squeeze(-1)
        if lengths is not None:
            beyond = torch.arange(x.size(1), device=lengths.device)[None] >= lengths[:, None]
            e = e.masked_fill(beyond.to(e.device), -1e9)
        w = e.softmax(1).unsqueeze(-1)
        mean = (w * x).sum(1)
        return torch.cat([mean, ((w * x * x).sum(1) - mean ** 2).clamp(min=1e-6).sqrt()], -1)


class TopKRouter(nn.Module):
    def __init__(self, dim=4, experts=3, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))
        self.k = k
        self.load = torch.zeros(experts)

    def forward(self, x):
        value, at = self.gate(x).softmax(-1).topk(self.k, -1)
        value = value / value.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows, slot = (at == i).nonzero(as_tuple=True)
            if rows.numel():
                out.index_add_(0, rows, expert(x[rows]) * value[rows, slot, None])
        return out

    def track(self, x):
        at = self.gate(x).argmax(-1)
        self.load += torch.bincount(at, minlength=len(self.experts)).float()  # raises
        return self.load / self.load.sum()

    def balance(self, x):
        p = self.gate(x).softmax(-1)
        share = F.one_hot(p.argmax(-1), len(self.experts)).float().mean(0)
        return len(self.experts) * torch.dot(share, p.mean(0))


class GeM(nn.Module):
    def __init__(self, p=3.0, eps=1e-6, per_channel: int = 0):
        super().__init__()
        self.p = nn.Parameter(torch.full((per_channel or 1,), p))
        self.eps = eps

    def forward(self, x):
        p = self.p.view(1, -1, 1, 1)
        return x.clamp(min=self.eps).pow(p).mean((-2, -1)).pow(1 / p.flatten(1))


class BlurPool(nn.Module):
    def __init__(self, channels, size=3):
        super().__init__()
        row = torch.tensor([math.comb(size - 1, i) for i in range(size)], dtype=torch.float32)
        kernel = torch.outer(row, row)
        self.register_buffer("kernel", (kernel / kernel.sum()).expand(channels, 1, size, size).contiguous())

    def forward(self, x):
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.kernel, stride=2, groups=x.shape[1])


class SobelEdges(nn.Module):
    """Magnitude of the gradient of each channel."""

    def __init__(self):
        super().__init__()
        gx = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
        self.kernels = torch.stack([gx, gx.t()]).unsqueeze(1)

    def _apply(self, fn):
        super()._apply(fn)
        self.kernels = fn(self.kernels)
        return self

    def forward(self, x):
        b, c, h, w = x.shape
        g = F.conv2d(x.reshape(b * c, 1, h, w), self.kernels, padding=1)
        return g.norm(dim=1).view(b, c, h, w)


class LaplacianSharpen(nn.Module):
    def __init__(self, amount=0.5):
        super().__init__()
        self.amount = amount
        self.kernel = torch.tensor([[0.0, -1, 0], [-1, 4, -1], [0, -1, 0]]).view(1, 1, 3, 3)

    def forward(self, x):
        c = x.size(1)
        detail = F.conv2d(x, self.kernel.repeat(c, 1, 1, 1), padding=1, groups=c)  # raises
        return x + self.amount * detail


class CoordConv(nn.Conv2d):
    def __init__(self, cin, cout, k, **kw):
        super().__init__(cin + 2, cout, k, **kw)

    def forward(self, x):
        b, _, h, w = x.shape
        ys = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(b, 1, h, w)
        xs = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(b, 1, h, w)
        return super().forward(torch.cat([x, ys, xs], 1))  # raises


# --------------------------------------------------------------------------------------------------------- losses


class SmoothedCrossEntropy(nn.Module):
    def __init__(self, classes, smoothing=0.1, weight: Optional[Sequence[float]] = None):
        super().__init__()
        self.classes, self.smoothing = classes, smoothing
        self.register_buffer("weight", None if weight is None else torch.tensor(weight))

    def forward(self, logits, target):
        logp = logits.log_softmax(-1)
        with torch.no_grad():
            soft = torch.full_like(logp, self.smoothing / (self.classes - 1))
            soft.scatter_(1, target.unsqueeze(1), 1 - self.smoothing)
        loss = -(soft * logp).sum(-1)
        return loss.mean() if self.weight is None else (loss * self.weight[target]).mean()


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha: Union[float, Sequence[float], None] = None):
        super().__init__()
        self.gamma = gamma
        if isinstance(alpha, (int, float)):
            alpha = [alpha, 1 - alpha]
        self.alpha = None if alpha is None else torch.tensor(alpha)

    def forward(self, logits, target):
        chosen = target.flatten()
        picked = logits.log_softmax(1)[torch.arange(len(chosen), device=logits.device), chosen]
        loss = -((1 - picked.exp()) ** self.gamma) * picked
        if self.alpha is None:
            return loss.mean()
        if self.alpha.type() != logits.type():
            self.alpha = self.alpha.type_as(logits)
        return (loss * self.alpha[chosen]).mean()


class BalancedSoftmax(nn.Module):
    def __init__(self, counts: Sequence[int]):
        super().__init__()
        self.prior = torch.log(torch.tensor(counts, dtype=torch.float32) / sum(counts))

    def forward(self, logits, target):
        adjusted = logits + self.prior  # raises
        return F.cross_entropy(adjusted, target)


class OrdinalLoss(nn.Module):
    """Cumulative logits against levels that the label has passed."""

    def __init__(self, levels):
        super().__init__()
        self.levels = levels

    def encode(self, target):
        return (torch.arange(self.levels - 1, device=target.device) < target[:, None]).float()

    def forward(self, logits, target, importance: Optional[Sequence[float]] = None):
        loss = F.binary_cross_entropy_with_logits(logits, self.encode(target), reduction="none")
        if importance is not None:
            loss = loss * torch.tensor(importance, dtype=loss.dtype)  # raises
        return loss.sum(1).mean()


class Contrastive(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.temperature = temperature
        self.register_buffer("log_cap", torch.tensor(math.log(100.0)))

    def forward(self, a, b):
        z = F.normalize(torch.cat([a, b]), dim=1)
        sim = z @ z.t() / self.temperature
        n = len(a)
        sim.fill_diagonal_(float("-inf"))
        target = torch.arange(2 * n, device=z.device).roll(n)
        return F.cross_entropy(sim.clamp(max=self.log_cap.exp().item()), target)

    def paired(self, a, b):
        logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / self.temperature
        target = torch.arange(len(a))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2  # raises


class SupervisedContrastive(nn.Module):
    def forward(self, z, labels, temperature=0.1):
        same = labels[:, None].eq(labels[None]).float()
        mine = torch.eye(len(z), dtype=torch.bool)
        same[mine] = 0
        logits = (z @ z.t() / temperature).masked_fill(mine, -1e9)  # raises
        logp = logits - logits.logsumexp(1, keepdim=True)
        return -(same * logp).sum(1).div(same.sum(1).clamp(min=1)).mean()


class CenterLoss(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, dim))

    def forward(self, x, labels):
        return (x - self.centers[labels]).pow(2).sum(1).mean() / 2

    def spread(self):
        d = torch.cdist(self.centers, self.centers)
        rows, cols = torch.triu_indices(len(d), len(d), 1)
        return d[rows, cols].min()


class DiceLoss(nn.Module):
    def __init__(self, classes, skip_background=False, eps=1.0):
        super().__init__()
        self.classes, self.eps = classes, eps
        self.used = torch.arange(int(skip_background), classes)

    def forward(self, logits, target):
        p = logits.softmax(1)
        t = F.one_hot(target, self.classes).movedim(-1, 1).float()
        score = (2 * (p * t).sum((0, 2, 3)) + self.eps) / ((p + t).sum((0, 2, 3)) + self.eps)
        return 1 - score[self.used].mean()

    def per_class(self, logits, target):
        p = logits.softmax(1)
        chosen = p.index_select(1, self.used)  # raises
        return chosen.mean((0, 2, 3))


class BoundaryLoss(nn.Module):
    def forward(self, logits: Tensor, distance: np.ndarray) -> Tensor:
        p = logits.softmax(1)[:, 1]
        return (p * torch.from_numpy(distance).to(p)).mean()

    def signed(self, logits, mask):
        p = logits.softmax(1)[:, 1]
        inside = np.where(mask, -1.0, 1.0).astype(np.float32)  # raises
        return (p * torch.from_numpy(inside)).mean()


def wing_loss(pred, target, w=5.0, eps=0.5):
    c = w - w * math.log(1 + w / eps)
    d = (pred - target).abs()
    return torch.where(d < w, w * torch.log1p(d / eps), d - torch.tensor(c)).mean()


def quantile_loss(pred: Tensor, target: Tensor, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> Tensor:
    q = torch.tensor(quantiles)
    e = target.unsqueeze(-1) - pred
    return torch.max(q * e, (q - 1) * e).mean()  # raises


def quantile_loss_listwise(pred, target, quantiles=(0.1, 0.5, 0.9)):
    total = pred.new_zeros(())
    for i, q in enumerate(torch.tensor(quantiles)):
        e = target - pred[..., i]
        total = total + torch.max(q * e, (q - 1) * e).mean()
    return total / len(quantiles)


def gradient_penalty(critic, real, fake, eps: Optional[Tensor] = None):
    if eps is None:
        eps = torch.rand(len(real), *[1] * (real.dim() - 1)).type_as(real)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_()
    out = critic(mixed)
    grad, = torch.autograd.grad(out, mixed, torch.ones(out.shape, device=out.device), create_graph=True)
    return (grad.flatten(1).norm(dim=1) - 1).pow(2).mean()


def hinge_for_critic(real, fake, margin=1.0):
    zero = torch.zeros(1)
    return torch.max(zero, margin - real).mean() + torch.max(zero, margin + fake).mean()  # raises


def gan_loss(logits: Tensor, real: bool, flip: float = 0.0) -> Tensor:
    label = torch.tensor(1.0 if real else 0.0).expand_as(logits)
    if flip:
        label = torch.where(torch.rand_like(logits) < flip, 1 - label.to(logits.device), label.to(logits.device))
    return F.binary_cross_entropy_with_logits(logits, label.to(logits))


class Distilled(nn.Module):
    """Student, and a wider teacher that is no submodule so that it is not saved."""

    def __init__(self, dim: int, classes: int, width: int = 4, temperature=2.0):
        super().__init__()
        self.student = nn.Linear(dim, classes)
        self._teacher = [nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, classes)).eval()]
        self.t = temperature

    @property
    def teacher(self):
        return self._teacher[0]

    def forward(self, x, target):
        s = self.student(x)
        with torch.no_grad():
            t = self.teacher(x)  # raises
        soft = F.kl_div((s / self.t).log_softmax(-1), (t / self.t).softmax(-1), reduction="batchmean")
        return F.cross_entropy(s, target) + self.t ** 2 * soft

    def lazily(self, x):
        if next(self.teacher.parameters()).device != x.device:
            self._teacher[0] = copy.deepcopy(self.teacher).to(x.device)
        return F.mse_loss(self.student(x), self.teacher(x).detach())


class UncertaintyWeights(nn.Module):
    def __init__(self, names: Iterable[str]):
        super().__init__()
        self.log_vars = nn.ParameterDict({n: nn.Parameter(torch.zeros(())) for n in names})
        self.floor = {n: torch.tensor(-3.0) for n in names}

    def forward(self, losses: Dict[str, Tensor]) -> Tensor:
        total = 0
        for n, loss in losses.items():
            s = torch.maximum(self.log_vars[n], self.floor[n].to(loss))
            total = total + loss * torch.exp(-s) + s
        return total


class GradNormBalance(nn.Module):
    def __init__(self, tasks: int):
        super().__init__()
        self.w = nn.Parameter(torch.ones(tasks))
        self.start: Optional[Tensor] = None

    def forward(self, losses: List[Tensor]):
        stacked = torch.stack(losses)
        if self.start is None:
            self.start = stacked.detach().cpu()
        return (stacked * self.w).sum()

    def rates(self, losses: List[Tensor]):
        now = torch.stack(losses).detach()
        ratio = now / self.start  # raises
        return ratio / ratio.mean()


# --------------------------------------------------------------------------------------------------------- metrics


class Metric:
    """Base: states are named in `add` and put back by `reset`."""

    def __init__(self):
        self._defaults: Dict[str, Tensor] = {}

    def add(self, name, default):
        self._defaults[name] = default
        setattr(self, name, default.clone())

    def reset(self):
        for name, default in self._defaults.items():
            setattr(self, name, default.clone())

    def to(self, device):
        for name in self._defaults:
            setattr(self, name, getattr(self, name).to(device))
        return self


class Accuracy(Metric):
    def __init__(self):
        super().__init__()
        self.add("right", torch.tensor(0))
        self.add("total", torch.tensor(0))

    def update(self, logits, target):
        self.right = self.right + (logits.argmax(-1) == target).sum()
        self.total = self.total + target.numel()

    def compute(self):
        return self.right / self.total


class ClassRecall(Metric):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.add("hits", torch.zeros(classes))
        self.add("seen", torch.zeros(classes))

    def update(self, logits, target):
        hit = target[logits.argmax(-1) == target]
        self.hits = self.hits + torch.bincount(hit, minlength=self.classes)  # raises
        self.seen = self.seen + torch.bincount(target, minlength=self.classes)


class Confusion(Metric):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.add("matrix", torch.zeros(classes, classes, dtype=torch.long))

    def update(self, logits, target):
        flat = target * self.classes + logits.argmax(-1)
        self.matrix += torch.bincount(flat, minlength=self.classes ** 2).view(self.classes, -1).cpu()

    def compute(self):
        m = self.matrix.float()
        return m.diag() / (m.sum(0) + m.sum(1) - m.diag()).clamp(min=1)


class Curve:
    """Keeps the scores of the last batches."""

    def __init__(self, limit=100):
        self.scores, self.targets = deque(maxlen=limit), deque(maxlen=limit)

    def update(self, scores, targets):
        self.scores.append(scores.detach().cpu())
        self.targets.append(targets)

    def auc(self):
        s, t = torch.cat(list(self.scores)), torch.cat(list(self.targets))
        order = s.argsort()
        ranks = torch.empty(len(s)).index_put_((order,), torch.arange(1.0, len(s) + 1))
        positive = t.cpu().bool()
        n = positive.sum()
        return (ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(s) - n))

    def best_threshold(self):
        s, t = torch.cat(list(self.scores)), torch.cat(list(self.targets))
        grid = torch.linspace(0, 1, 11)
        right = (s[None] > grid[:, None]) == t.bool()  # raises
        return grid[right.float().mean(1).argmax()]


class Averages:
    def __init__(self):
        self.sums, self.counts = defaultdict(float), defaultdict(int)

    def update(self, n=1, **values):
        for k, v in values.items():
            self.sums[k] += v.detach() * n
            self.counts[k] += n
        return self

    def __getitem__(self, k):
        return float(self.sums[k] / self.counts[k])

    def as_array(self):
        return np.array([float(self[k]) for k in sorted(self.sums)])


def ndcg(scores: Tensor, gains: Tensor, k: int = 5) -> Tensor:
    order = scores.argsort(-1, descending=True)[..., :k]
    discount = 1 / torch.log2(torch.arange(order.size(-1)) + 2.0)
    got = (gains.gather(-1, order) * discount).sum(-1)  # raises
    best = (gains.sort(-1, descending=True).values[..., :k] * discount).sum(-1)
    return got / best.clamp(min=1e-6)


def reciprocal_rank(scores, target):
    rank = (scores > scores.gather(1, target[:, None])).sum(1) + 1
    return (1.0 / rank).mean()


def psnr(a, b, peak=1.0):
    mse = (a - b).pow(2).flatten(1).mean(1)
    return (20 * torch.log10(torch.tensor(peak)) - 10 * torch.log10(mse.clamp(min=1e-8))).mean()


@functools.lru_cache(None)
def _gauss(size, sigma):
    x = torch.arange(size).float() - size // 2
    g = torch.exp(-x ** 2 / (2 * sigma ** 2))
    return g / g.sum()


def ssim(a: Tensor, b: Tensor, size=5, sigma=1.5) -> Tensor:
    c = a.size(1)
    g = _gauss(size, sigma)
    window = torch.outer(g, g).expand(c, 1, size, size).to(a)
    blur = functools.partial(F.conv2d, weight=window, groups=c)
    ma, mb = blur(a), blur(b)
    va, vb, cov = blur(a * a) - ma ** 2, blur(b * b) - mb ** 2, blur(a * b) - ma * mb
    return ((2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma ** 2 + mb ** 2 + 1e-4) * (va + vb + 9e-4))).mean()


def calibration_error(logits, target, bins=5):
    conf, guess = logits.softmax(-1).max(-1)
    edges = torch.linspace(0, 1, bins + 1)
    total = conf.new_zeros(())
    for lo, hi in zip(edges[:-1], edges[1:]):
        inside = (conf > lo) & (conf <= hi)
        if inside.any():
            total += (conf[inside].mean() - (guess == target)[inside].float().mean()).abs() * inside.float().mean()
    return total


def calibration_counts(logits, bins=5):
    conf = logits.softmax(-1).amax(-1)
    edges = torch.linspace(0, 1, bins + 1)
    at = torch.searchsorted(edges, conf)  # raises
    return torch.bincount(at, minlength=bins + 1)


def topk_accuracy(logits, target, ks=(1, 2)):
    _, guess = logits.topk(max(ks), 1)
    hit = guess.t().eq(target.view(1, -1).expand_as(guess.t()))
    return [hit[:k].reshape(-1).float().sum(0).mul_(100.0 / len(target)) for k in ks]


def word_errors(guess: Tensor, target: Tensor, ignore=(0, 1)) -> Tensor:
    skip = torch.tensor(ignore, device=target.device)
    used = ~torch.isin(target, skip)
    if not used.any():
        warnings.warn("nothing to compare")
        return target.new_zeros(())
    return (guess[used] != target[used]).sum()
