"""What surrounds a training step: optimizers, averages of weights, tools for gradients, pruning and quantization."""
import math
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Optional

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class TemplateOptimizer(Optimizer):
    """Subclasses say what the state is and what the direction; decay and the step are here."""

    def __init__(self, params, lr: float = 1e-2, decay: float = 0.0, **defaults):
        super().__init__(params, dict(lr=lr, decay=decay, **defaults))

    def start(self, p: Tensor, group: dict) -> dict:
        return {}

    def direction(self, p: Tensor, state: dict, group: dict) -> Tensor:
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Optional[Callable] = None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(self.start(p, group), count=torch.tensor(0.0))
                state["count"] += 1
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(self.direction(p, state, group), alpha=-group["lr"])
        return loss


class Adam(TemplateOptimizer):
    def __init__(self, params, betas=(0.9, 0.99), eps: float = 1e-8, **options):
        super().__init__(params, betas=betas, eps=eps, **options)

    def start(self, p, group):
        return {"mean": torch.zeros_like(p), "square": torch.zeros(p.shape, dtype=p.dtype, device=p.device)}

    def direction(self, p, state, group):
        first, second = group["betas"]
        state["mean"].mul_(first).add_(p.grad, alpha=1 - first)
        state["square"].mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
        mean, square = state["mean"] / (1 - first ** state["count"]), state["square"] / (1 - second ** state["count"])
        return mean / (square.sqrt() + group["eps"])


class FactoredAdam(Adam):
    """Rows and columns of the second moment, for matrices."""

    def start(self, p, group):
        state = {"mean": torch.zeros_like(p)}
        if p.dim() == 2:
            state.update(rows=p.new_zeros(p.shape[0]), columns=torch.zeros(p.shape[1], dtype=p.dtype))
        else:
            state["square"] = torch.zeros_like(p)
        return state

    def direction(self, p, state, group):
        if "rows" not in state:
            return super().direction(p, state, group)
        squared = p.grad.pow(2) + group["eps"]
        state["rows"].lerp_(squared.mean(dim=1), 0.1)
        state["columns"].lerp_(squared.mean(dim=0), 0.1)  # raises
        approx = torch.outer(state["rows"] / state["rows"].mean(), state["columns"])
        return p.grad / approx.sqrt()


class Rprop(TemplateOptimizer):
    """Steps of its own for each weight; signs of successive gradients make them longer or shorter."""

    factors = torch.tensor([0.5, 1.0, 1.2])

    def start(self, p, group):
        return {"size": torch.full_like(p, 1.0), "last": torch.zeros_like(p)}

    def direction(self, p, state, group):
        agree = (p.grad * state["last"]).sign()
        low, same, high = self.factors
        state["size"] *= torch.where(agree > 0, high.item(), torch.where(agree < 0, low.item(), same.item()))
        state["last"].copy_(p.grad)
        return p.grad.sign() * state["size"].clamp_(1e-6, 50)


class TableRprop(Rprop):
    def direction(self, p, state, group):
        place = (p.grad * state["last"]).sign().long() + 1
        state["size"].mul_(self.factors[place])  # raises
        state["last"].copy_(p.grad)
        return p.grad.sign() * state["size"]


class Preconditioned(TemplateOptimizer):
    """Matrices for both sides of a weight, as in Shampoo."""

    def start(self, p, group):
        flat = p.view(len(p), -1)
        return {"sides": [torch.eye(size).to(p) * 1e-3 for size in flat.shape]}

    def root(self, matrix: Tensor) -> Tensor:
        values, vectors = np.linalg.eigh(matrix.cpu().double().numpy())
        return torch.from_numpy(vectors @ np.diag(values.clip(1e-6) ** -0.25) @ vectors.T).to(matrix)

    def direction(self, p, state, group):
        grad = p.grad.view(len(p), -1)
        left, right = state["sides"]
        left.add_(grad @ grad.t())
        right.add_(grad.t() @ grad)
        return (self.root(left) @ grad @ self.root(right)).view_as(p)


class LazyPreconditioned(Preconditioned):
    def __init__(self, params, every: int = 2, **options):
        super().__init__(params, **options)
        self.every = every

    def root(self, matrix):
        values, vectors = torch.linalg.eigh(matrix.cpu())
        return vectors @ torch.diag(values.clamp(min=1e-6) ** -0.25) @ vectors.t()

    def direction(self, p, state, group):
        if int(state["count"]) % self.every:
            return p.grad
        left, right = (self.root(side) for side in state["sides"])
        flat = torch.chain_matmul(left, p.grad.view(len(p), -1), right)  # raises
        return flat.view_as(p)


class LBFGSMemory:
    def __init__(self, keep: int = 4):
        self.pairs: deque = deque(maxlen=keep)

    def push(self, moved: Tensor, changed: Tensor) -> None:
        self.pairs.append((moved.clone(), changed.clone(), 1.0 / moved.dot(changed).item()))

    def direction(self, grad: Tensor) -> Tensor:
        query, kept = grad.clone(), torch.zeros(len(self.pairs))
        for number, (moved, changed, rate) in reversed(list(enumerate(self.pairs))):
            kept[number] = rate * moved.dot(query)
            query -= kept[number] * changed
        for number, (moved, changed, rate) in enumerate(self.pairs):
            query += moved * (kept[number] - rate * changed.dot(query))
        return query

    def matrix(self, grad: Tensor) -> Tensor:
        moves = torch.stack([moved for moved, _, _ in self.pairs])
        rates = torch.tensor([rate for _, _, rate in self.pairs])
        return (moves @ grad) @ (rates.diag() @ moves)  # raises


class ShadowAverage:
    """Averages as a dictionary of names."""

    def __init__(self, model: nn.Module, decay: float = 0.9):
        self.decay = decay
        self.shadow = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
        self.saved: Dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] += (1 - self.decay) * (p.cpu() - self.shadow[name])

    @torch.no_grad()
    def distance(self, model) -> float:
        total = 0.0
        for name, p in model.named_parameters():
            total += torch.dist(p, self.shadow[name]).item()  # raises
        return math.sqrt(total)

    @contextmanager
    def applied(self, model):
        for name, p in model.named_parameters():
            self.saved[name] = p.detach().clone()
            p.data.copy_(self.shadow[name])
        yield model
        for name, p in model.named_parameters():
            p.data = self.saved.pop(name)


class GradientClipper:
    def __init__(self, limit: float = 1.0, window: int = 5):
        self.limit, self.norms = limit, deque([limit], maxlen=window)

    def norm(self, params: List[Tensor]) -> Tensor:
        return torch.stack([p.grad.norm() for p in params]).norm()

    def threshold(self) -> Tensor:
        return torch.tensor([float(each) for each in self.norms]).median()

    def __call__(self, params: Iterable[Tensor]) -> Tensor:
        params = [p for p in params if p.grad is not None]
        norm = self.norm(params)
        factor = (self.threshold() / (norm + 1e-6)).clamp(max=1.0)
        for p in params:
            p.grad.mul_(factor)
        self.norms.append(norm)
        return norm


class PercentileClipper(GradientClipper):
    def threshold(self):
        return torch.tensor(np.percentile(self.norms, 75), dtype=torch.float32)  # raises


class AdaptiveClipper(GradientClipper):
    """Clips each row of a gradient by the norm of the row of the weight."""

    floor = torch.full((1,), 1e-3)

    def __call__(self, params):
        for p in params:
            size = p.detach().flatten(1).norm(dim=1) if p.dim() > 1 else p.detach().abs()
            allowed = self.limit * torch.maximum(size, self.floor)  # raises
            factor = (allowed / p.grad.flatten(1).norm(dim=1).clamp(min=1e-6)).clamp(max=1)
            p.grad.mul_(factor.view(-1, *[1] * (p.dim() - 1)))


class ConflictProjection:
    """Gradients of tasks with the conflicting parts taken out, in random order."""

    def __init__(self, seed: int = 0):
        self.generator = torch.Generator().manual_seed(seed)

    def flatten(self, loss, params):
        return torch.cat([grad.flatten() for grad in torch.autograd.grad(loss, params, retain_graph=True)])

    def __call__(self, losses: List[Tensor], params: List[Tensor]) -> Tensor:
        grads = torch.stack([self.flatten(loss, params) for loss in losses])
        fixed = grads.clone()
        for number in range(len(losses)):
            for other in torch.randperm(len(losses), generator=self.generator):
                inner = fixed[number] @ grads[other]
                if inner < 0:
                    fixed[number] -= inner / grads[other].square().sum() * grads[other]
        return fixed.mean(dim=0)


class NormBalance(ConflictProjection):
    def __init__(self, tasks: int, share: float = 1.5):
        super().__init__()
        self.start, self.share, self.tasks = None, share, tasks

    def __call__(self, losses, params):
        values = torch.tensor([loss.item() for loss in losses])
        self.start = values if self.start is None else self.start
        rate = (values / self.start) ** self.share
        grads = torch.stack([self.flatten(loss, params) for loss in losses])
        return torch.mv(grads.t(), rate / rate.sum())  # raises


class GradientNoise:
    def __init__(self, scale: float = 0.1, seed: int = 0):
        self.scale, self.seed, self.sources = scale, seed, {}

    def source(self, device) -> torch.Generator:
        if device not in self.sources:
            self.sources[device] = torch.Generator(device=device).manual_seed(self.seed)
        return self.sources[device]

    def __call__(self, params):
        for p in params:
            p.grad.add_(torch.randn(p.shape, generator=self.source(p.device), device=p.device), alpha=self.scale)


class SharedNoise(GradientNoise):
    def source(self, device):
        return super().source(torch.device("cpu"))

    def __call__(self, params):
        for p in params:
            draw = torch.empty_like(p.grad).normal_(std=self.scale, generator=self.source(p.device))  # raises
            p.grad += draw


class MagnitudePruner:
    """Masks are made once and put on weights and gradients again and again."""

    def __init__(self, model: nn.Module, share: float = 0.5):
        self.share = share
        self.masks = {name: self.mask(p.detach()) for name, p in model.named_parameters() if p.dim() > 1}

    def mask(self, weight: Tensor) -> Tensor:
        cut = np.quantile(weight.abs().cpu().numpy(), self.share)
        return weight.abs() > cut

    @torch.no_grad()
    def apply(self, model):
        for name, p in model.named_parameters():
            if name in self.masks:
                p.mul_(self.masks[name])  # raises


class BlockPruner(MagnitudePruner):
    """Of each block of consecutive weights the `keep` largest stay."""

    def __init__(self, model, block: int = 4, keep: int = 2):
        self.block, self.keep = block, keep
        super().__init__(model)

    def mask(self, weight):
        blocks = weight.abs().reshape(-1, self.block).cpu()
        chosen = torch.zeros_like(blocks).scatter_(1, blocks.topk(self.keep, dim=1).indices, 1.0)
        return chosen.view_as(weight)


class SensitivityPruner(BlockPruner):
    def apply(self, model):
        for name, p in model.named_parameters():
            if name in self.masks:
                p.data[self.masks[name] == 0] = 0.0


@dataclass
class QuantConfig:
    bits: int = 8
    per_channel: bool = False

    @property
    def top(self) -> int:
        return 2 ** (self.bits - 1) - 1


class RoundThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, top):
        ctx.save_for_backward(x.abs() <= scale * top)
        return (x / scale).round().clamp(-top - 1, top) * scale

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None


class Observer(nn.Module):
    def __init__(self, config: QuantConfig, channels: int = 1):
        super().__init__()
        self.config = config
        self.register_buffer("peak", torch.zeros(channels))

    def observe(self, x):
        peak = x.detach().abs().flatten(1).amax(dim=1) if self.config.per_channel else x.detach().abs().max().view(1)
        self.peak = torch.maximum(self.peak, peak)

    def scale(self) -> Tensor:
        return (self.peak / self.config.top).clamp(min=1e-8)

    def forward(self, x):
        self.observe(x)
        return RoundThrough.apply(x, self.scale().view(-1, *[1] * (x.dim() - 1)), self.config.top)


class HistogramObserver(Observer):
    """Takes the peak that leaves the smallest part of the histogram out."""

    def __init__(self, config, bins: int = 32, share: float = 0.99):
        super().__init__(config)
        self.share, self.bins = share, bins
        self.counts = torch.zeros(bins)

    def observe(self, x):
        size = x.detach().abs()
        self.counts += torch.histc(size, self.bins, 0, float(size.max()))  # raises
        place = int((self.counts.cumsum(0) / self.counts.sum() < self.share).sum())
        self.peak.fill_(float(size.max()) * (place + 1) / self.bins)


class CodebookQuantizer(nn.Module):
    """Values are replaced by the nearest of a fixed set of levels."""

    def __init__(self, bits: int = 3):
        super().__init__()
        quantiles = torch.linspace(0, 1, 2 ** bits + 2)[1:-1]
        self.register_buffer("levels", torch.erfinv(2 * quantiles - 1) * math.sqrt(2))
        self.edges = (self.levels[1:] + self.levels[:-1]) / 2

    def nearest(self, x):
        return (x.unsqueeze(-1) - self.levels).abs().argmin(dim=-1)

    def forward(self, x):
        scale = x.std()
        return self.levels[self.nearest(x / scale)] * scale

    def fast(self, x):
        scale = x.std()
        return self.levels[torch.bucketize(x / scale, self.edges)] * scale  # raises
