"""Optimizers, averages of weights, clipping, accumulation and schedules that look at tensors."""

import copy
import math
from collections import defaultdict
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


def all_grads(parameters: Iterable[Tensor]) -> List[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def total_norm(parameters: Iterable[Tensor], kind: float = 2.0) -> Tensor:
    grads = all_grads(parameters)
    if not grads:
        return torch.tensor(0.0)
    return torch.stack([g.norm(kind) for g in grads]).norm(kind)


def clip_total(parameters: Iterable[Tensor], limit: float) -> Tensor:
    parameters = list(parameters)
    norm = total_norm(parameters)
    factor = torch.minimum(torch.tensor(limit) / (norm + 1e-6), torch.ones_like(norm))
    for g in all_grads(parameters):
        g.mul_(factor)
    return norm


def clip_by_quantile(parameters: Iterable[Tensor], q: float = 0.9) -> None:
    for g in all_grads(parameters):
        limit = torch.quantile(g.abs().flatten(), torch.tensor([q, 1.0]))  # raises
        g.clamp_(-limit[0], limit[0])


def clip_by_quantile_each(parameters, q: float = 0.9):
    for g in all_grads(parameters):
        limit = g.abs().flatten().kthvalue(max(1, int(q * g.numel()))).values.item()
        g.clamp_(-limit, limit)


class Signed(Optimizer):
    """The sign of a momentum."""

    def __init__(self, params, lr=1e-2, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    def momentum(self, p: Tensor) -> Tensor:
        state = self.state[p]
        if "momentum" not in state:
            state["momentum"] = torch.zeros(p.shape, dtype=p.dtype)
        return state["momentum"]

    @torch.no_grad()
    def step(self, closure: Optional[Callable] = None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for p in filter(lambda each: each.grad is not None, group["params"]):
                momentum = self.momentum(p)
                momentum.mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])  # raises
                p.add_(momentum.sign(), alpha=-group["lr"])
        return loss


class SignedLike(Signed):
    def momentum(self, p):
        return self.state[p].setdefault("momentum", torch.zeros_like(p, memory_format=torch.preserve_format))


class Damped(Optimizer):
    """Adaptive steps whose count is a tensor, so that it can be saved."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, bounded=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, bounded=bounded))

    def fresh(self, p: Tensor, bounded: bool) -> Dict[str, Tensor]:
        state = {"step": torch.tensor(0.0), "first": torch.zeros_like(p), "second": torch.zeros_like(p)}
        if bounded:
            state["bound"] = torch.zeros(p.size())
        return state

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state.update(self.fresh(p, group["bounded"]))
                state["step"] += 1
                state["first"].lerp_(p.grad, 1 - b1)
                state["second"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                scale = (1 - b2 ** state["step"]).sqrt() / (1 - b1 ** state["step"])
                second = state["second"]
                if group["bounded"]:
                    second = torch.max(state["bound"], second)  # raises
                    state["bound"] = second
                p.sub_(group["lr"] * scale * state["first"] / (second.sqrt() + group["eps"]))


class Factored(Optimizer):
    """Second moments of matrices by rows and columns only."""

    def __init__(self, params, lr=1e-2, decay=0.8, relative=False):
        super().__init__(params, dict(lr=lr, decay=decay, relative=relative))

    @staticmethod
    def _rms(x: Tensor) -> Tensor:
        return x.norm(2) / math.sqrt(x.numel())

    def _moments(self, p: Tensor, decay: float) -> Tensor:
        state, square = self.state[p], p.grad.square() + 1e-30
        if p.dim() < 2:
            state["all"] = square if "all" not in state else decay * state["all"] + (1 - decay) * square
            return state["all"]
        row = state.setdefault("row", square.new_zeros(p.shape[:-1]))
        column = state.setdefault("column", square.new_zeros(p.shape[-1]))
        row.mul_(decay).add_(square.mean(-1), alpha=1 - decay)
        column.mul_(decay).add_(square.mean(0), alpha=1 - decay)
        return torch.outer(row / row.mean(), column)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                update = p.grad * self._moments(p, group["decay"]).rsqrt()
                scale = torch.full((1,), group["lr"])
                if group["relative"]:
                    scale = scale * self._rms(p)  # raises
                p.add_(update, alpha=-float(scale))


class Lookahead:
    """Slow weights follow the fast ones of another optimizer."""

    def __init__(self, inner: Optimizer, every: int = 2, rate: float = 0.5):
        self.inner, self.every, self.rate = inner, every, rate
        self.slow = [[p.detach().clone() for p in group["params"]] for group in inner.param_groups]
        self.count = 0

    @property
    def param_groups(self):
        return self.inner.param_groups

    @torch.no_grad()
    def step(self, closure=None):
        loss = self.inner.step(closure)
        self.count += 1
        if self.count % self.every == 0:
            for group, slow in zip(self.param_groups, self.slow):
                for p, s in zip(group["params"], slow):
                    s.add_(p - s, alpha=self.rate)
                    p.copy_(s)
        return loss

    def state_dict(self) -> Dict[str, Any]:
        return {"inner": self.inner.state_dict(), "slow": [[s.cpu() for s in slow] for slow in self.slow], "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
        self.count = state["count"]
        for mine, theirs in zip(self.slow, state["slow"]):
            for s, t in zip(mine, theirs):
                s.copy_(t)


class Average:
    """A running average of a model's weights, in host memory to save the GPU's."""

    def __init__(self, model: nn.Module, decay: float = 0.99):
        self.decay = decay
        self.shadow = {name: p.detach().cpu().clone() for name, p in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for name, value in model.state_dict().items():
            if value.dtype.is_floating_point:
                self.shadow[name].mul_(self.decay).add_(value.cpu(), alpha=1 - self.decay)
            else:
                self.shadow[name].copy_(value)

    def copy_to(self, model: nn.Module) -> None:
        model.load_state_dict(self.shadow)

    def distance(self, model: nn.Module) -> Tensor:
        gaps = []
        for name, p in model.named_parameters():
            gaps.append((p.detach() - self.shadow[name]).square().sum())  # raises
        return torch.stack(gaps).sum().sqrt()


class ModelAverage(nn.Module):
    """The same as a model, that may be called."""

    def __init__(self, model: nn.Module, decay: float = 0.99):
        super().__init__()
        self.module = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.updates += 1
        rate = torch.clamp(self.updates / (self.updates + 10.0), max=self.decay)
        for mine, theirs in zip(self.module.parameters(), model.parameters()):
            mine.mul_(rate).add_(theirs.detach() * (1 - rate))

    def forward(self, *args):
        return self.module(*args)


class Accumulator:
    """Sums gradients of several backward passes, flat."""

    def __init__(self, model: nn.Module):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.flat = torch.zeros(sum(p.numel() for p in self.parameters))
        self.passes = 0

    def add(self) -> None:
        self.flat += torch.cat([p.grad.flatten() for p in self.parameters])  # raises
        self.passes += 1

    def put(self) -> None:
        parts = self.flat.split([p.numel() for p in self.parameters])
        for p, part in zip(self.parameters, parts):
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            p.grad.copy_((part / max(self.passes, 1)).view_as(p))


class Projector:
    """Keeps directions of the past; new gradients lose what lies along them."""

    def __init__(self, limit: int = 4):
        self.basis: List[Tensor] = []
        self.limit = limit

    def remember(self, gradient: Tensor) -> None:
        vector = gradient.detach().flatten()
        for each in self.basis:
            vector = vector - vector.dot(each) * each
        self.basis = (self.basis + [vector / vector.norm()])[-self.limit:]

    def free(self, gradient: Tensor) -> Tensor:
        if not self.basis:
            return gradient
        basis = torch.stack(self.basis)
        return (gradient.flatten() - basis.t() @ (basis @ gradient.flatten())).view_as(gradient)

    def mixed(self, gradient: Tensor) -> Tensor:
        basis = torch.stack(self.basis)
        weight = torch.softmax(torch.arange(len(self.basis), dtype=torch.float), 0)
        return torch.mv(basis.t(), weight).view_as(gradient) + gradient  # raises


class Noisy(Optimizer):
    """Langevin steps, which may be repeated from a seed."""

    def __init__(self, params, lr=1e-2, heat=1e-3, seed: Optional[int] = None):
        super().__init__(params, dict(lr=lr, heat=heat))
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)

    def drawn(self, p: Tensor) -> Tensor:
        if self.generator is None:
            return torch.randn_like(p)
        return torch.randn(p.shape, generator=self.generator, device=p.device)  # raises

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            size = math.sqrt(2 * group["lr"] * group["heat"])
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(group["lr"] * p.grad).add_(self.drawn(p), alpha=size)


class NoisyOnHost(Noisy):
    def drawn(self, p):
        return torch.randn(p.shape, generator=self.generator).to(p, non_blocking=True)


class Sharpness:
    """Climbs before it descends."""

    def __init__(self, inner: Optimizer, radius: float = 0.05, adaptive: bool = False):
        self.inner, self.radius, self.adaptive = inner, radius, adaptive
        self.moved: Dict[Tensor, Tensor] = {}

    def _parameters(self) -> List[Tensor]:
        return [p for group in self.inner.param_groups for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def climb(self) -> None:
        norms = torch.zeros(len(self._parameters()))
        for i, p in enumerate(self._parameters()):
            norms[i] = (p.abs() * p.grad if self.adaptive else p.grad).norm()
        for p in self._parameters():
            move = p.grad * (self.radius / (norms.norm() + 1e-12))
            self.moved[p] = move
            p.add_(move)

    @torch.no_grad()
    def descend(self) -> None:
        for p, move in self.moved.items():
            p.sub_(move)
        self.moved.clear()
        self.inner.step()

    def worst(self) -> Tensor:
        norms = torch.tensor([p.grad.norm() for p in self._parameters()])
        share = torch.stack([p.grad.mean() for p in self._parameters()])
        return (norms * share).max()  # raises


class Plateau:
    """Less and less of the rate while the best loss does not improve."""

    def __init__(self, optimizer: Optimizer, patience: int = 2, factor: float = 0.5):
        self.optimizer, self.patience, self.factor = optimizer, patience, factor
        self.best, self.bad = torch.tensor(float("inf")), 0

    def step(self, loss: Tensor) -> None:
        if loss < self.best:
            self.best, self.bad = loss.detach(), 0
            return
        self.bad += 1
        if self.bad > self.patience:
            for group in self.optimizer.param_groups:
                group["lr"] *= self.factor
            self.bad = 0


class LossWeights(nn.Module):
    """Weights of several tasks, by their uncertainty or by how fast they learn."""

    def __init__(self, tasks: int, window: int = 2):
        super().__init__()
        self.log_variance = nn.Parameter(torch.zeros(tasks))
        self.past: Dict[int, List[Tensor]] = defaultdict(list)
        self.window = window

    def forward(self, losses: List[Tensor]) -> Tensor:
        stacked = torch.stack(losses)
        return (stacked * (-self.log_variance).exp() + self.log_variance).sum()

    def averaged(self, losses: List[Tensor], heat: float = 2.0) -> Tensor:
        for index, loss in enumerate(losses):
            self.past[index].append(float(loss.detach()))
        speed = torch.tensor([past[-1] / past[max(0, len(past) - self.window)] for past in self.past.values()])
        weight = len(losses) * (speed / heat).softmax(0)
        return sum(w * loss for w, loss in zip(weight, losses))

    def averaged_together(self, losses: List[Tensor], heat: float = 2.0) -> Tensor:
        speed = torch.tensor([sum(past) + 1.0 for past in self.past.values()] or [1.0] * len(losses))
        return torch.dot((speed / heat).softmax(0), torch.stack(losses))  # raises
