"""Optimizers, averaging of weights, gradient tools and learning rate schedules."""
import math
from collections import deque
from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
from torch.optim.optimizer import Optimizer


class Adafactor(Optimizer):
    """Factored second moments; statistics are kept in float32 (fairseq)."""

    def __init__(self, params, lr=1e-2, eps=1e-30, decay_rate=-0.8, clip_threshold=1.0):
        super().__init__(params, dict(lr=lr, eps=eps, decay_rate=decay_rate, clip_threshold=clip_threshold))

    @staticmethod
    def _approx(row, col):
        r = (row / row.mean(dim=-1, keepdim=True)).rsqrt_().unsqueeze(-1)
        return torch.mul(r, col.unsqueeze(-2).rsqrt())

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad.float(), self.state[p]
                if not state:
                    state["step"] = 0
                    if grad.dim() >= 2:
                        state["row"] = torch.zeros(grad.shape[:-1]).to(grad)
                        state["col"] = torch.zeros(grad.shape[:-2] + grad.shape[-1:]).to(grad)
                    else:
                        state["sq"] = torch.zeros_like(grad)
                state["step"] += 1
                beta = 1.0 - math.pow(state["step"], group["decay_rate"])
                update = grad ** 2 + group["eps"]
                if "row" in state:
                    state["row"].mul_(beta).add_(update.mean(dim=-1), alpha=1 - beta)
                    state["col"].mul_(beta).add_(update.mean(dim=-2), alpha=1 - beta)
                    update = self._approx(state["row"], state["col"]).mul_(grad)
                else:
                    update = state["sq"].mul_(beta).add_(update, alpha=1 - beta).rsqrt().mul_(grad)
                rms = update.norm(2) / update.numel() ** 0.5
                p.sub_(update.div_((rms / group["clip_threshold"]).clamp_(min=1.0)), alpha=group["lr"])


class Lamb(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, trust_clip=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, trust_clip=trust_clip))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                exp_avg = state["exp_avg"].lerp_(p.grad, 1 - beta1)
                exp_avg_sq = state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                update = exp_avg / exp_avg_sq.sqrt().add_(group["eps"])
                w_norm, g_norm = p.norm(2.0), update.norm(2.0)
                one = torch.ones_like(w_norm)
                trust_ratio = torch.where(w_norm > 0, torch.where(g_norm > 0, w_norm / g_norm, one), one)
                if group["trust_clip"]:
                    trust_ratio = torch.minimum(trust_ratio, torch.tensor(1.0))
                p.add_(update.mul_(trust_ratio), alpha=-group["lr"])


class AdaHessian(Optimizer):
    def __init__(self, params, lr=0.1, seed=2147483647):
        super().__init__(params, dict(lr=lr))
        self.generator = torch.Generator().manual_seed(seed)

    def set_hessian(self):
        params = [p for g in self.param_groups for p in g["params"] if p.grad is not None]
        zs = [self.rademacher(p) for p in params]
        h_zs = torch.autograd.grad([p.grad for p in params], params, grad_outputs=zs)
        for h_z, z, p in zip(h_zs, zs, params):
            p.hess = h_z * z

    def rademacher(self, p):
        return torch.randint(0, 2, p.size(), generator=self.generator, device=p.device) * 2.0 - 1.0  # raises

    def step(self, closure=None):
        self.set_hessian()
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad / p.hess.abs().sqrt().add_(1e-4), alpha=group["lr"])


class Shampoo(Optimizer):
    def __init__(self, params, lr=1e-1, epsilon=1e-4, on_host=True):
        super().__init__(params, dict(lr=lr, epsilon=epsilon, on_host=on_host))

    @staticmethod
    def inverse_root(matrix, power, on_host):
        work = matrix.double().cpu() if on_host else matrix.double()
        values, vectors = torch.linalg.eigh(work)
        return (vectors * values.clamp(min=1e-12).pow(-1.0 / power)) @ vectors.t()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad, state, order = p.grad, self.state[p], p.dim()
                for dim_id, dim in enumerate(grad.size()):
                    key = f"precond_{dim_id}"
                    if key not in state:
                        state[key] = group["epsilon"] * torch.eye(dim, out=grad.new(dim, dim))
                    grad = grad.transpose(0, dim_id)
                    shape, grad = grad.size(), grad.reshape(dim, -1)
                    state[key].add_(grad @ grad.t())
                    inv = self.inverse_root(state[key], 2 * order, group["on_host"]).float()
                    grad = torch.mm(inv, grad).view(shape).transpose(0, dim_id)  # raises
                p.add_(grad, alpha=-group["lr"])


class SGLD(Optimizer):
    def __init__(self, params, lr=1e-2, temperature=1e-4, alpha=0.99):
        super().__init__(params, dict(lr=lr, temperature=temperature, alpha=alpha))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            std = math.sqrt(2 * group["lr"] * group["temperature"])
            for p in group["params"]:
                square = self.state[p].setdefault("square_avg", torch.zeros_like(p))
                square.mul_(group["alpha"]).addcmul_(p.grad, p.grad, value=1 - group["alpha"])
                noise = torch.normal(mean=0.0, std=std, size=p.shape)
                p.addcdiv_(p.grad, square.sqrt().add_(1e-5), value=-group["lr"]).add_(noise)  # raises


class Lookahead:
    def __init__(self, base, alpha=0.5, k=2):
        self.base, self.alpha, self.k, self.count = base, alpha, k, 0
        self.slow = {}

    def step(self):
        self.base.step()
        self.count += 1
        return self.pull() if self.count % self.k == 0 else None

    @torch.no_grad()
    def pull(self):
        for p in (p for group in self.base.param_groups for p in group["params"]):
            slow = self.slow.setdefault(p, p.detach().clone())
            slow.add_(p - slow, alpha=self.alpha)  # raises
            p.copy_(slow)

    def state_dict(self):
        return {"base": self.base.state_dict(), "slow": [v.cpu() for v in self.slow.values()], "count": self.count}

    def load_state_dict(self, state):
        self.base.load_state_dict(state["base"])
        params = [p for group in self.base.param_groups for p in group["params"]]
        self.slow, self.count = dict(zip(params, state["slow"])), state["count"]


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.9, device=None):
        super().__init__()
        self.module, self.decay, self.device = deepcopy(model).eval(), decay, device
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        for ema_v, v in zip(self.module.state_dict().values(), model.state_dict().values()):
            v = v if self.device is None else v.to(device=self.device)
            ema_v.copy_(ema_v * self.decay + (1.0 - self.decay) * v)

    @torch.no_grad()
    def distance(self, model):
        flat = nn.utils.parameters_to_vector(self.module.parameters())
        return torch.dist(flat, nn.utils.parameters_to_vector(model.parameters()))  # raises


def global_norm(parameters):
    return torch.stack([p.grad.detach().norm() for p in parameters]).norm()  # raises


class AutoClip:
    """Clips to a percentile of the gradient norms that were seen (history in host memory)."""

    def __init__(self, percentile=0.5, window=8):
        self.percentile, self.history, self.count = percentile, torch.zeros(window), 0

    def __call__(self, parameters):
        parameters = list(parameters)
        norm = nn.utils.clip_grad_norm_(parameters, float("inf"))
        self.history[self.count % len(self.history)] = norm
        self.count += 1
        limit = torch.quantile(self.history[:self.count], self.percentile)
        if norm > limit:
            torch._foreach_mul_([p.grad for p in parameters], (limit / norm).item())
        return norm


class FlatAccumulator:
    def __init__(self, parameters):
        self.params = list(parameters)
        self.buffer = torch.zeros(sum(p.numel() for p in self.params))
        self.offsets = np.cumsum([0] + [p.numel() for p in self.params])

    def store(self):
        for p, begin, end in zip(self.params, self.offsets, self.offsets[1:]):
            self.buffer[begin:end].copy_(p.grad.view(-1))

    def accumulate(self):
        for p, begin, end in zip(self.params, self.offsets, self.offsets[1:]):
            self.buffer[begin:end] += p.grad.view(-1)  # raises

    def write_back(self):
        for p, begin, end in zip(self.params, self.offsets, self.offsets[1:]):
            p.grad = self.buffer[begin:end].view_as(p).to(p.device)


class PlateauLR:
    def __init__(self, optimizer, patience=1, window=4, factor=0.5):
        self.optimizer, self.patience, self.factor = optimizer, patience, factor
        self.recent, self.best, self.bad = deque(maxlen=window), torch.tensor(float("inf")), 0

    def slope(self):
        y = torch.stack(list(self.recent))
        t = torch.arange(len(y), dtype=y.dtype)
        return (t - t.mean()).dot(y - y.mean()) / (t - t.mean()).square().sum()  # raises

    def step(self, loss):
        self.recent.append(loss.detach())
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = torch.minimum(self.best, loss.detach())
        if self.bad > self.patience:
            for group in self.optimizer.param_groups:
                group["lr"] *= self.factor


class LRFinder:
    def __init__(self, optimizer, start=1e-5, end=1.0, steps=4):
        self.optimizer, self.lrs, self.losses = optimizer, np.geomspace(start, end, steps), []

    def run(self, closure):
        for lr in self.lrs:
            for group in self.optimizer.param_groups:
                group["lr"] = float(lr)
            loss = closure()
            self.optimizer.step()
            self.losses.append(loss.detach())

    def suggestion(self):
        losses = np.array([loss.item() for loss in self.losses])
        return self.lrs[np.gradient(losses).argmin()]

    def curve(self, beta=0.9):
        return np.convolve(torch.stack(self.losses).numpy(), [1 - beta, beta], "valid")  # raises
