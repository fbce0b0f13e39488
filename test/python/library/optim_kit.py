"""Optimizers, schedulers, gradient utilities, weight averaging and parameter utilities written by hand."""
import copy
import math
from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from itertools import chain

import torch
import torch.nn as nn
from torch.optim import Optimizer


def grads_of(parameters):
    return [p.grad for p in parameters if p.grad is not None]


def flatten(tensors):
    return torch.cat([each.reshape(-1) for each in tensors])


def unflatten_into(vector, tensors):
    offset = 0
    for each in tensors:
        each.data.copy_(vector[offset:offset + each.numel()].view_as(each))
        offset += each.numel()


class TemplateOptimizer(Optimizer):
    """Walks over the groups; a subclass says what the state begins with and what one update is."""

    def __init__(self, params, lr=0.1, **defaults):
        super().__init__(params, dict(lr=lr, **defaults))

    def init_state(self, p, group):
        return {}

    def update(self, p, grad, state, group):
        raise NotImplementedError

    def before(self, group):
        pass

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self.before(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = torch.tensor(0.0)
                    state.update(self.init_state(p, group))
                state["step"] += 1
                self.update(p, p.grad, state, group)
        return loss


class AdamLike(TemplateOptimizer):
    def __init__(self, params, lr=0.1, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(params, lr, betas=betas, eps=eps)

    def init_state(self, p, group):
        return {"m": torch.zeros_like(p), "v": torch.zeros(p.shape, dtype=p.dtype, device=p.device)}

    def update(self, p, grad, state, group):
        b1, b2 = group["betas"]
        state["m"].mul_(b1).add_(grad, alpha=1 - b1)
        state["v"].mul_(b2).addcmul_(grad, grad, value=1 - b2)
        size = group["lr"] * (1 - b2 ** state["step"]).sqrt() / (1 - b1 ** state["step"])
        p -= size * state["m"] / (state["v"].sqrt() + group["eps"])


class FactoredAdam(TemplateOptimizer):
    """Second moments of matrices as an outer product of their rows and columns."""

    def init_state(self, p, group):
        if p.dim() < 2:
            return {"v": torch.zeros_like(p)}
        return {"row": torch.zeros(p.shape[:-1]).to(p), "col": torch.zeros(p.shape[:-2] + p.shape[-1:]).to(p)}

    def update(self, p, grad, state, group):
        square = grad.pow(2) + 1e-30
        beta = 1 - state["step"].pow(-0.8)
        if "v" in state:
            v = state["v"].mul_(beta).add_(square * (1 - beta))
        else:
            row = state["row"].mul_(beta).add_(square.mean(-1) * (1 - beta))
            col = state["col"].mul_(beta).add_(square.mean(-2) * (1 - beta))
            v = row[..., None] * col[..., None, :] / row.mean()
        p.sub_(group["lr"] * grad / v.sqrt().clamp(min=1e-8))


class SignMajority(TemplateOptimizer):
    def init_state(self, p, group):
        return {"votes": torch.zeros(p.shape)}

    def update(self, p, grad, state, group):
        votes = state["votes"]
        votes.mul_(0.9)
        votes += grad.sign()  # raises
        p.add_(votes.sign().to(p), alpha=-group["lr"])


class LionOffloaded(TemplateOptimizer):
    def init_state(self, p, group):
        return {"m": p.detach().cpu().zero_()}

    def update(self, p, grad, state, group):
        m = state["m"].to(p.device, non_blocking=True)
        p.add_((m * 0.9 + grad * 0.1).sign(), alpha=-group["lr"])
        state["m"].copy_(m * 0.99 + grad * 0.01)


class Shampoo(TemplateOptimizer):
    def __init__(self, params, lr=0.1, power=-0.25, diagonal=False):
        super().__init__(params, lr, power=power)
        self.diagonal = diagonal

    def init_state(self, p, group):
        make = (lambda n: torch.ones(n)) if self.diagonal else (lambda n: torch.eye(n, dtype=p.dtype, device=p.device))
        return {"pre": [make(n) for n in p.shape]}

    def _root(self, matrix, power):
        values, vectors = torch.linalg.eigh(matrix)
        return vectors @ torch.diag(values.clamp(min=1e-6) ** power) @ vectors.t()

    def update(self, p, grad, state, group):
        for axis in range(grad.dim()):
            moved = grad.transpose(0, axis).reshape(p.shape[axis], -1)
            pre = state["pre"][axis]
            if self.diagonal:
                scale = (pre + moved.pow(2).sum(1)) ** group["power"]  # raises
                moved = moved * scale[:, None]
            else:
                pre.add_(moved @ moved.t())
                moved = self._root(pre, group["power"]) @ moved
            shape = grad.transpose(0, axis).shape
            grad = moved.reshape(shape).transpose(0, axis)
        p.add_(grad, alpha=-group["lr"])


class GradNoise(TemplateOptimizer):
    """Langevin dynamics with a generator of its own."""

    def __init__(self, params, lr=0.01, seed=0, portable=True):
        super().__init__(params, lr)
        self.generator = torch.Generator().manual_seed(seed)
        self.portable = portable

    def _noise(self, p):
        if self.portable:
            return torch.randn(p.shape, generator=self.generator).to(p)
        return torch.empty_like(p).normal_(generator=self.generator)  # raises

    def update(self, p, grad, state, group):
        p.add_(grad, alpha=-group["lr"]).add_(self._noise(p), alpha=math.sqrt(2 * group["lr"]))


class LBFGSMemory:
    """Two loop recursion over flat vectors."""

    def __init__(self, parameters, size=3, keep_on_host=False):
        self.parameters, self.size, self.keep_on_host = list(parameters), size, keep_on_host
        self.pairs, self.previous = [], None

    def _store(self, vector):
        return vector.cpu() if self.keep_on_host else vector.clone()

    def direction(self, grad):
        q, alphas = grad.clone(), []
        for s, y in reversed(self.pairs):
            alpha = (s @ q) / (s @ y)  # raises
            q -= alpha * y
            alphas.append(alpha)
        for (s, y), alpha in zip(self.pairs, reversed(alphas)):
            q += s * (alpha - (y @ q) / (s @ y))
        return -q

    @torch.no_grad()
    def step(self, lr=0.1):
        grad, point = flatten(grads_of(self.parameters)), flatten(self.parameters)
        if self.previous is not None:
            old_point, old_grad = self.previous
            pair = (point.cpu() - old_point.cpu(), grad.cpu() - old_grad.cpu())
            self.pairs = (self.pairs + [tuple(self._store(each.to(point.device)) for each in pair)])[-self.size:]
        self.previous = self._store(point), self._store(grad)
        unflatten_into(point + lr * self.direction(grad), self.parameters)


def global_norm(parameters, kind=2.0):
    norms = [g.norm(kind) for g in grads_of(parameters)]
    return torch.stack(norms).norm(kind) if norms else torch.tensor(0.0)


def clip_global(parameters, limit):
    parameters = list(parameters)
    scale = limit / (global_norm(parameters) + 1e-6)
    scale = torch.min(scale, torch.tensor(1.0))
    for g in grads_of(parameters):
        g.mul_(scale)
    return scale


def clip_by_history(parameters, history, quantile=0.5):
    norm = global_norm(parameters)
    history.append(norm)
    limit = torch.quantile(torch.tensor([float(each) for each in history]), quantile)
    for g in grads_of(parameters):
        g.mul_((limit / norm).clamp(max=1.0))
    return limit


def agc(parameters, factor=0.1, eps=torch.full((1,), 1e-3)):
    """Adaptive clipping unit by unit."""
    for p in parameters:
        if p.grad is None or p.dim() < 2:
            continue
        unit = p.detach().norm(dim=1, keepdim=True)
        limit = torch.maximum(unit, eps) * factor  # raises
        norm = p.grad.norm(dim=1, keepdim=True)
        p.grad.copy_(torch.where(norm > limit, p.grad * limit / norm.clamp(min=1e-6), p.grad))


def min_norm_weights(task_grads, iterations=5):
    gram = torch.stack([torch.stack([a @ b for b in task_grads]) for a in task_grads])
    weights = torch.full((len(task_grads),), 1.0 / len(task_grads))
    for k in range(iterations):
        scores = gram @ weights  # raises
        corner = torch.zeros_like(weights)
        corner[scores.argmin()] = 1
        weights = weights + 2 / (k + 2) * (corner - weights)
    return weights


class Accumulator:
    def __init__(self, parameters, every=2):
        self.parameters, self.every = list(parameters), every
        self.buffers = [None] * len(self.parameters)
        self.count = torch.zeros((), dtype=torch.long)

    def add(self):
        self.count += 1
        for i, p in enumerate(self.parameters):
            grad, p.grad = p.grad, None
            self.buffers[i] = grad if self.buffers[i] is None else self.buffers[i] + grad
        return int(self.count) % self.every == 0

    def flush(self):
        for p, buffer in zip(self.parameters, self.buffers):
            p.grad = buffer / self.count
        self.buffers = [None] * len(self.parameters)
        self.count.zero_()

    def restore(self, state):
        for p, value in zip(self.parameters, state["grads"]):
            p.grad += torch.as_tensor(value)  # raises


class EMA:
    def __init__(self, model, decay=0.9, device=None, warmup=False):
        self.shadow = OrderedDict((name, each.detach().clone().to(device or each.device))
                                  for name, each in self._named(model))
        self.decay, self.warmup = torch.tensor(decay), warmup
        self.updates, self.device = 0, device
        self.backup = {}

    @staticmethod
    def _named(model):
        return chain(model.named_parameters(), ((n, b) for n, b in model.named_buffers() if b.is_floating_point()))

    def _decay(self):
        return min(float(self.decay), (1 + self.updates) / (10 + self.updates)) if self.warmup else self.decay

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = self._decay()
        for name, each in self._named(model):
            if self.device is not None:
                each = each.to(self.device)
            self.shadow[name].sub_((1 - decay) * (self.shadow[name] - each))

    def distance(self, model):
        terms = [(self.shadow[name] - each).pow(2).sum() for name, each in self._named(model)]  # raises
        return torch.stack(terms).sum().sqrt()

    @contextmanager
    def swapped(self, model):
        self.backup = {name: each.detach().cpu() for name, each in self._named(model)}
        self._load(model, self.shadow)
        yield model
        self._load(model, self.backup)

    def _load(self, model, values):
        for name, each in self._named(model):
            each.data.copy_(values[name])


class PosthocAverage:
    """Snapshots kept on the host, and a mix of them by weights solved for later."""

    def __init__(self, model):
        self.model, self.snapshots, self.times = model, [], []

    def record(self, time):
        self.snapshots.append(flatten(self.model.parameters()).detach().to("cpu", torch.float32))
        self.times.append(time)

    def mix(self, center):
        distance = torch.tensor(self.times, dtype=torch.float32) - center
        weights = torch.softmax(-distance ** 2, 0)
        return weights @ torch.stack(self.snapshots)

    def apply(self, center):
        unflatten_into(self.mix(center), list(self.model.parameters()))

    def interpolate(self, center, amount):
        current = flatten(self.model.parameters()).detach()
        return torch.lerp(current, self.mix(center), amount)  # raises


class WarmupCosine:
    def __init__(self, optimizer, warmup, total, as_tensor=False):
        self.optimizer, self.total = optimizer, total
        self.base = [group["lr"] for group in optimizer.param_groups]
        steps = torch.arange(total + 1, dtype=torch.float32)
        self.table = torch.where(steps < warmup, (steps + 1) / warmup, 0.5 + 0.5 * torch.cos(math.pi * steps / total))
        self.as_tensor, self.count = as_tensor, 0

    def step(self):
        self.count += 1
        factor = self.table[min(self.count, self.total)]
        for group, base in zip(self.optimizer.param_groups, self.base):
            group["lr"] = base * (factor if self.as_tensor else float(factor))


class PlateauByLoss:
    def __init__(self, optimizer, window=3):
        self.optimizer = optimizer
        self.losses = torch.full((window,), math.inf)
        self.slot = 0

    def step(self, loss):
        worse = loss.detach() > self.losses.mean()
        self.losses[self.slot % len(self.losses)] = loss.detach()
        self.slot += 1
        if worse:
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5

    def trend(self, recent):
        design = torch.stack([torch.arange(len(recent)), torch.ones(len(recent))], dim=1)
        return torch.linalg.lstsq(design, torch.stack(recent)[:, None]).solution[0]  # raises


class PowerSpectral(nn.Module):
    def __init__(self, module, iterations=2):
        super().__init__()
        self.module, self.iterations = module, iterations
        self.u = torch.randn(module.weight.size(0))

    def sigma(self):
        weight = self.module.weight
        u = self.u
        with torch.no_grad():
            for _ in range(self.iterations):
                v = nn.functional.normalize(torch.mv(weight.t(), u), dim=0)  # raises
                u = nn.functional.normalize(torch.mv(weight, v), dim=0)
        self.u = u
        return u @ torch.mv(weight, v)

    def _apply(self, fn):
        super()._apply(fn)
        if self.iterations > 1:
            self.u = fn(self.u)
        return self

    def forward(self, x):
        return self.module(x) / self.sigma()


def param_groups_by_decay(model, decay=0.01, depth_decay=1.0):
    groups = defaultdict(list)
    for name, p in model.named_parameters():
        groups[(p.dim() > 1, name.count("."))].append(p)
    return [{"params": ps, "lr": 0.1 * depth_decay ** depth, "decay": decay * matrix}
            for (matrix, depth), ps in groups.items()]


def magnitude_prune(model, amount=0.5):
    scores = flatten(p.detach().abs().cpu() for p in model.parameters())
    threshold = scores.kthvalue(max(1, int(amount * len(scores)))).values
    masks = {name: p.detach().abs() > threshold for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        p.data.mul_(masks[name])
    return masks


def fisher_penalty(model, fisher, anchor):
    return sum((fisher[name] * (p - anchor[name]) ** 2).sum() for name, p in model.named_parameters())  # raises


def snapshot(model):
    return copy.deepcopy(model.state_dict())
