"""Model compression: observers and fake quantization, pruning, low rank, codebooks and gradient compression."""
import math
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrize


@dataclass(frozen=True)
class QSpec:
    bits: int = 8
    symmetric: bool = True
    group: int = 4
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> Tuple[int, int]:
        return (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.symmetric else (0, 2 ** self.bits - 1)

    def with_(self, **kw) -> "QSpec":
        return replace(self, **kw)


class _Registry(dict):
    def add(self, name: str):
        def inner(obj):
            self[name] = obj
            return obj
        return inner

    def build(self, name: str, *args, **kw):
        return self[name](*args, **kw)


OBSERVERS = _Registry()
PRUNERS = _Registry()


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class LsqFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, lo, hi):
        ctx.save_for_backward(x, scale)
        ctx.limits = (lo, hi)
        return (x / scale).round().clamp(lo, hi) * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        lo, hi = ctx.limits
        q = x / scale
        inside = ((q >= lo) & (q <= hi)).float()
        edge = torch.zeros(q.shape)
        edge[(q > hi).cpu()] = hi
        edge[(q < lo).cpu()] = lo
        dscale = inside * (q.round() - q) + edge.type_as(g)
        return g * inside, (g * dscale).sum().reshape(scale.shape), None, None


class Observer(nn.Module):
    """observe() then qparams(); subclasses decide what they keep."""
    def __init__(self, spec: QSpec):
        super().__init__()
        self.spec = spec
        self.register_buffer("lo", torch.tensor(float("inf")))
        self.register_buffer("hi", torch.tensor(float("-inf")))

    def observe(self, x: torch.Tensor) -> None:
        self.lo = torch.minimum(self.lo, x.min())
        self.hi = torch.maximum(self.hi, x.max())

    def limits(self) -> Tuple[torch.Tensor, torch.Tensor]:
        return self.lo, self.hi

    def qparams(self) -> Tuple[torch.Tensor, torch.Tensor]:
        (lo, hi), (qlo, qhi) = self.limits(), self.spec.bounds
        if self.spec.symmetric:
            scale = torch.maximum(lo.abs(), hi.abs()) / qhi
            return scale.clamp_min(1e-8), torch.zeros_like(scale)
        scale = ((hi - lo) / (qhi - qlo)).clamp_min(1e-8)
        return scale, (qlo - lo / scale).round()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.observe(x.detach())
        scale, zero = self.qparams()
        return fake_quant(x, scale, zero, self.spec)


def fake_quant(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, spec: QSpec) -> torch.Tensor:
    return (RoundSTE.apply(x / scale + zero).clamp(*spec.bounds) - zero) * scale


OBSERVERS["minmax"] = Observer


@OBSERVERS.add("channel")
class ChannelObserver(Observer):
    def reset(self, channels: int) -> None:
        self.lo = self.lo.new_full((channels, 1), math.inf)
        self.hi = self.hi.new_full((channels, 1), -math.inf)

    def observe(self, x: torch.Tensor) -> None:
        if self.lo.dim() == 0:
            self.reset(x.shape[0])
        flat = x.flatten(1)
        self.lo = torch.minimum(self.lo, flat.amin(1, keepdim=True))
        self.hi = torch.maximum(self.hi, flat.amax(1, keepdim=True))


@OBSERVERS.add("ema")
class EmaObserver(ChannelObserver):
    momentum = torch.tensor([0.9])

    def observe(self, x: torch.Tensor) -> None:
        first = self.lo.dim() == 0
        last = self.lo
        super().observe(x)
        if not first:
            self.lo = torch.lerp(x.flatten(1).amin(1, keepdim=True), last, self.momentum)  # raises


@OBSERVERS.add("histogram")
class HistogramObserver(Observer):
    bins: int = 16

    def __init__(self, spec: QSpec):
        super().__init__(spec)
        self.hist = torch.zeros(self.bins)

    def observe(self, x: torch.Tensor) -> None:
        super().observe(x)
        self.hist += torch.histc(x, self.bins, float(self.lo), float(self.hi)).cpu()

    def limits(self) -> Tuple[torch.Tensor, torch.Tensor]:
        cdf = self.hist.cumsum(0) / self.hist.sum()
        keep = int((cdf < 0.99).sum()) + 1
        return self.lo, self.lo + (self.hi - self.lo) * keep / self.bins


@OBSERVERS.add("percentile")
class PercentileObserver(Observer):
    def observe(self, x: torch.Tensor) -> None:
        probs = torch.tensor(self.spec.extra.get("probs", (0.01, 0.99)))
        self.lo, self.hi = torch.quantile(x.flatten(), probs)  # raises


@OBSERVERS.add("mse")
class MseObserver(Observer):
    def observe(self, x: torch.Tensor) -> None:
        amax = x.abs().max()
        errors = []
        for shrink in np.linspace(0.5, 1.0, 4):
            scale = amax * shrink / self.spec.bounds[1]
            errors.append((fake_quant(x, scale, torch.tensor(0.0), self.spec) - x).pow(2).mean())
        best = int(torch.tensor(errors).argmin())
        self.hi = amax * np.linspace(0.5, 1.0, 4)[best]
        self.lo = -self.hi


class LsqWeight(nn.Module):
    def __init__(self, spec: QSpec, init: float = 0.1):
        super().__init__()
        self.spec = spec
        self.scale = nn.Parameter(torch.tensor([init]))

    def forward(self, w: torch.Tensor) -> torch.Tensor:
        return LsqFunction.apply(w, self.scale, *self.spec.bounds)


class LazyScale(LsqWeight):
    """Scale of each group, made at the first call."""
    scales: Optional[torch.Tensor] = None

    def forward(self, w: torch.Tensor) -> torch.Tensor:
        groups = w.reshape(-1, self.spec.group)
        if self.scales is None:
            self.scales = torch.empty(len(groups), 1).fill_(0.1)
        q = (groups / self.scales).round().clamp(*self.spec.bounds)  # raises
        return (q * self.scales).view_as(w)


def quantize_model(model: nn.Module, spec: QSpec, cls: Type[nn.Module] = LsqWeight) -> nn.Module:
    for mod in list(model.modules()):
        if isinstance(mod, nn.Linear):
            parametrize.register_parametrization(mod, "weight", cls(spec).to(mod.weight.device))
    return model


def attach_activation(model: nn.Module, spec: QSpec, kind: str = "minmax") -> List[Any]:
    handles = []
    for mod in model.modules():
        if isinstance(mod, nn.Linear):
            obs = OBSERVERS.build(kind, spec)
            handles.append(mod.register_forward_hook(lambda m, i, o, obs=obs: obs.to(o.device)(o)))
    return handles


def unpack_nibbles(p: torch.Tensor) -> torch.Tensor:
    shifts = torch.tensor([0, 4], dtype=torch.uint8)
    return (torch.bitwise_right_shift(p[:, None], shifts) & 15).flatten().to(torch.int8) - 8  # raises


def normal_float_levels(bits: int) -> torch.Tensor:
    p = torch.linspace(0.02, 0.98, 2 ** bits)
    lv = math.sqrt(2) * torch.erfinv(2 * p - 1)
    return lv / lv.abs().max()


def codebook_encode(x: torch.Tensor, bits: int = 4) -> Tuple[torch.Tensor, torch.Tensor]:
    levels = normal_float_levels(bits).to(x)
    scale = x.abs().amax(-1, keepdim=True)
    mid = (levels[1:] + levels[:-1]) / 2
    return torch.bucketize(x / scale, mid), scale


def codebook_decode(idx: torch.Tensor, scale: torch.Tensor, bits: int = 4) -> torch.Tensor:
    levels = normal_float_levels(bits)[:, None]
    return F.embedding(idx, levels).squeeze(-1) * scale  # raises


def hadamard(n: int) -> torch.Tensor:
    h = torch.ones(1, 1)
    while len(h) < n:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)], 0)
    return h / math.sqrt(n)


def rotate(x: torch.Tensor, table: Dict[int, torch.Tensor] = {}) -> torch.Tensor:
    n = x.shape[-1]
    if n not in table:
        table[n] = hadamard(n)
    return x @ table[n]  # raises


class Pruner:
    """score() -> mask(); `apply` gives the pruned tensor."""
    def __init__(self, sparsity: float = 0.5):
        self.sparsity = sparsity
        self.masks: Dict[str, torch.Tensor] = {}

    def score(self, w: torch.Tensor) -> torch.Tensor:
        return w.abs()

    def mask(self, w: torch.Tensor) -> torch.Tensor:
        s = self.score(w.detach()).flatten()
        k = int(s.numel() * self.sparsity)
        m = torch.ones(s.shape)
        m[s.argsort()[:k].cpu()] = 0
        return m.view(w.shape)

    def apply(self, w: torch.Tensor) -> torch.Tensor:
        return w * self.mask(w).to(w.device)

    @torch.no_grad()
    def prune_(self, model: nn.Module) -> nn.Module:
        for name, p in model.named_parameters():
            if p.dim() > 1:
                self.masks[name] = self.mask(p)
                p.copy_(self.apply(p))
        return model

    @torch.no_grad()
    def reapply_(self, model: nn.Module) -> nn.Module:
        params = dict(model.named_parameters())
        for name, m in self.masks.items():
            params[name].mul_(m)  # raises
        return model


PRUNERS["magnitude"] = Pruner


@PRUNERS.add("nm")
class NMPruner(Pruner):
    def mask(self, w: torch.Tensor) -> torch.Tensor:
        blocks = self.score(w).reshape(-1, 4)
        m = torch.zeros(blocks.shape, device=w.device)
        return m.scatter(1, blocks.topk(2, -1).indices, 1.0).view_as(w)


@PRUNERS.add("nm_legacy")
class LegacyNMPruner(Pruner):
    def mask(self, w: torch.Tensor) -> torch.Tensor:
        blocks = self.score(w).reshape(-1, 4)
        m = torch.zeros_like(blocks, dtype=torch.bool, device="cpu")
        return m.scatter_(1, blocks.topk(2, -1).indices, True).view_as(w)  # raises


@PRUNERS.add("movement")
class MovementPruner(Pruner):
    def __init__(self, sparsity: float = 0.5):
        super().__init__(sparsity)
        self.totals: Dict[Tuple[int, ...], torch.Tensor] = defaultdict(lambda: torch.zeros(()))

    def track(self, w: torch.Tensor, grad: torch.Tensor) -> "MovementPruner":
        self.totals[tuple(w.shape)] = self.totals[tuple(w.shape)] - w * grad
        return self

    def score(self, w: torch.Tensor) -> torch.Tensor:
        return self.totals[tuple(w.shape)].expand_as(w)


class LowRank(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 2):
        super().__init__()
        u, s, v = torch.linalg.svd(base.weight.detach(), full_matrices=False)
        self.a = nn.Parameter(u[:, :rank] * s[:rank])
        self.b = nn.Parameter(v[:rank])
        self.register_buffer("bias", None if base.bias is None else base.bias.detach().clone())
        self.order = torch.randperm(rank)
        self.gate = torch.ones(rank)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(F.linear(x, self.b[self.order]), self.a[:, self.order], self.bias)

    def gated(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(F.linear(x, self.b) * self.gate, self.a, self.bias)  # raises


class LoRA(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.adapters: Dict[str, nn.Module] = {"default": nn.Identity()}

    def add(self, name: str) -> "LoRA":
        self.adapters[name] = nn.Sequential(OrderedDict(act=nn.Tanh(), proj=nn.Linear(len(self.down), len(self.down))))
        return self

    def forward(self, x: torch.Tensor, name: str = "default") -> torch.Tensor:
        inner = self.adapters[name](F.linear(x, self.down))  # raises
        return self.base(x) + F.linear(inner, self.up)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        out = nn.Linear(self.base.in_features, self.base.out_features)
        out.load_state_dict({k: v.clone() for k, v in self.base.state_dict().items()})
        out = out.to(self.up.device)
        out.weight += self.up @ self.down
        return out

    @torch.no_grad()
    def merged_copy(self) -> nn.Linear:
        out = nn.Linear(self.base.in_features, self.base.out_features)
        out.load_state_dict(self.base.state_dict())
        out.weight.add_(self.up @ self.down)  # raises
        return out


class TopKCompressor:
    """Gradient sparsification with an error memory for every name."""
    def __init__(self, ratio: float = 0.25):
        self.ratio = ratio
        self.residual: Dict[str, torch.Tensor] = {}

    def compress(self, name: str, g: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Size]:
        flat = g.flatten() + self.residual.get(name, torch.tensor(0.0))
        idx = flat.abs().topk(max(1, int(flat.numel() * self.ratio))).indices
        self.residual[name] = flat.index_fill(0, idx, 0.0)
        return flat[idx], idx, g.shape

    def decompress(self, vals: torch.Tensor, idx: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        return torch.zeros(shape).flatten().index_copy(0, idx, vals).view(shape)  # raises


class PowerSGD(TopKCompressor):
    def __init__(self, rank: int = 1):
        super().__init__()
        self.rank, self.q = rank, {}

    def compress(self, name, g):
        m = g.flatten(1)
        if name not in self.q:
            self.q[name] = torch.randn(m.shape[1], self.rank, generator=torch.Generator().manual_seed(0)).to(m)
        p, _ = torch.linalg.qr(m @ self.q[name])
        self.q[name] = m.T @ p
        return p, self.q[name], g.shape

    def decompress(self, p, q, shape):
        return (p @ q.T).reshape(shape)
