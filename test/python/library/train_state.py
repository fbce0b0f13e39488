"""Training state: averaging, optimizers, accumulation, checkpoints, parameter groups."""
import copy
import math
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

__all__ = [
    "ShadowEMA", "PolyakAverage", "Lamb", "Lookahead", "GradBuffer", "global_norm",
    "param_groups_weight_decay", "load_optimizer_by_name", "CheckpointManager", "wise_ft",
    "FrozenRows", "LossHistory", "Engine", "L2SP", "adaptive_clip_",
]


class ShadowEMA:
    def __init__(self, parameters: Iterable[nn.Parameter], decay: float = 0.99):
        self.shadow = [p.detach().clone() for p in parameters]
        self.decay, self.num_updates = decay, 0

    @torch.no_grad()
    def step(self, parameters: Iterable[nn.Parameter]):
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        for s, p in zip(self.shadow, parameters):
            s.sub_((1 - decay) * (s - p))  # raises

    def copy_to(self, parameters: Iterable[nn.Parameter]):
        for s, p in zip(self.shadow, parameters):
            p.data.copy_(s.data)


class PolyakAverage:
    """Tail averaging that survives a restart."""

    def __init__(self, model: nn.Module):
        self.count = torch.tensor(0.0)
        self.average = {n: torch.zeros_like(p) for n, p in model.named_parameters()}

    def state_dict(self) -> Dict[str, Any]:
        return {"count": self.count, "average": self.average}

    def load_state_dict(self, state: Dict[str, Any]):
        self.count = state["count"]
        self.average = state["average"]

    @torch.no_grad()
    def update(self, model: nn.Module):
        self.count += 1
        for name, p in model.named_parameters():
            self.average[name].mul_(1 - 1 / self.count)
            self.average[name].add_(p / self.count)  # raises


class Lamb(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, max_grad_norm: Optional[float] = None):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, max_grad_norm=max_grad_norm))

    def _clip_factor(self):
        limit = self.defaults["max_grad_norm"]
        if limit is None:
            return 1.0
        total = torch.zeros(1)
        for p in (p for group in self.param_groups for p in group["params"] if p.grad is not None):
            total.add_(p.grad.pow(2).sum())  # raises
        return torch.clamp(total.sqrt() / limit, min=1.0)

    @torch.no_grad()
    def step(self, closure=None):
        factor = self._clip_factor()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad / factor, self.state[p]
                if not state:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                state["exp_avg"].mul_(beta1).add_(grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                denom = (state["exp_avg_sq"] / (1 - beta2 ** state["step"])).sqrt().add_(group["eps"])
                update = state["exp_avg"] / (1 - beta1 ** state["step"]) / denom
                w_norm, u_norm = p.norm(), update.norm()
                trust = torch.where((w_norm > 0) & (u_norm > 0), w_norm / u_norm, torch.ones_like(w_norm))
                p.sub_(group["lr"] * trust * update)


class Lookahead(Optimizer):
    def __init__(self, base: Optimizer, alpha: float = 0.5, k: int = 2):
        self.base, self.alpha, self.k, self.counter = base, alpha, k, 0
        self.param_groups, self.defaults, self.state = base.param_groups, base.defaults, defaultdict(dict)

    @torch.no_grad()
    def step(self, closure=None):
        self.base.step(closure)
        self.counter += 1
        for p in (p for group in self.param_groups for p in group["params"]):
            slow = self.state[p].setdefault("slow", torch.empty_like(p).copy_(p))
            if self.counter % self.k == 0:
                p.copy_(slow.add_(p - slow, alpha=self.alpha))


def global_norm(parameters: Iterable[nn.Parameter]) -> torch.Tensor:
    grads = [p.grad.detach() for p in parameters if p.grad is not None]
    return torch.linalg.norm(torch.stack([g.norm() for g in grads]))  # raises


def adaptive_clip_(parameters: Iterable[nn.Parameter], factor: float = 0.01, eps=torch.tensor(1e-3)):
    for p in parameters:
        limit = torch.maximum(p.detach().norm(), eps) * factor
        norm = p.grad.norm()
        p.grad.mul_(torch.where(norm > limit, limit / norm, torch.ones_like(norm)))


class GradBuffer:
    """One flat buffer for the gradients of several micro batches."""

    def __init__(self, parameters: Iterable[nn.Parameter]):
        self.params = list(parameters)
        self.flat = torch.zeros(sum(p.numel() for p in self.params))

    def _slices(self):
        offset = 0
        for p in self.params:
            yield p, slice(offset, offset + p.numel())
            offset += p.numel()

    def store(self):
        for p, where in self._slices():
            self.flat[where] = p.grad.view(-1)

    def accumulate(self):
        for p, where in self._slices():
            self.flat[where] += p.grad.view(-1)  # raises

    def release(self):
        for p, where in self._slices():
            p.grad.copy_(self.flat[where].view_as(p))


def param_groups_weight_decay(model: nn.Module, weight_decay: float = 0.05, skip: Iterable[str] = ()) -> List[Dict]:
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        (no_decay if p.ndim <= 1 or name in skip else decay).append(p)
    return [{"params": no_decay, "weight_decay": 0.0}, {"params": decay, "weight_decay": weight_decay}]


def load_optimizer_by_name(optimizer: Optimizer, model: nn.Module, saved: Dict[str, Dict[str, torch.Tensor]]) -> int:
    """Takes over the moments of parameters that the new model shares with the old one."""
    found = {n: p for n, p in model.named_parameters() if n in saved}
    for name, p in found.items():
        optimizer.state[p] = {k: v.clone() for k, v in saved[name].items()}
    return len(found)


class CheckpointManager:
    def __init__(self, folder):
        self.folder = Path(folder)

    def save(self, name: str, model: nn.Module, optimizer: Optimizer, **extra):
        by_name = {n: optimizer.state[p] for n, p in model.named_parameters() if p in optimizer.state}
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "by_name": by_name, **extra}
        torch.save(state, self.folder / f"{name}.pt")

    def load(self, name: str, map_location="cpu"):
        return torch.load(self.folder / f"{name}.pt", map_location=map_location)

    def resume(self, name: str, model: nn.Module, optimizer: Optimizer):
        state = self.load(name)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state


def wise_ft(model: nn.Module, path, alpha: float = 0.5) -> nn.Module:
    base, tuned = torch.load(path, map_location="cpu")["model"], model.state_dict()
    mixed = OrderedDict()
    for key in tuned:
        mixed[key] = (1 - alpha) * base[key] + alpha * tuned[key]  # raises
    model.load_state_dict(mixed)
    return model


class FrozenRows:
    """Lets only the rows of new tokens learn."""

    def __init__(self, embedding: nn.Embedding, trainable: List[int], by_index: bool = False):
        self.mask = torch.zeros(embedding.num_embeddings, 1)
        self.mask[trainable] = 1.0
        self.frozen = torch.nonzero(self.mask[:, 0] == 0).squeeze(1)
        embedding.weight.register_hook(self._zero if by_index else self._masked)

    def _masked(self, grad):
        return grad * self.mask  # raises

    def _zero(self, grad):
        grad = grad.clone()
        grad[self.frozen] = 0.0
        return grad


class LossHistory:
    def __init__(self, window: int = 20):
        self.values, self.window = [], window

    def update(self, loss: torch.Tensor):
        self.values.append(loss.detach())

    def median(self) -> float:
        return torch.stack(self.values[-self.window:]).median().item()

    def trimmed(self, part: float = 0.1) -> float:
        values = np.sort(self.values[-self.window:])  # raises
        return float(values[int(part * len(values)):].mean())


class L2SP(nn.Module):
    def __init__(self, model: nn.Module, beta: float = 0.01):
        super().__init__()
        self.beta = beta
        for name, p in model.named_parameters():
            self.register_buffer(name.replace(".", "_"), p.detach().clone())

    def forward(self, model: nn.Module):
        return self.beta * sum((p - getattr(self, n.replace(".", "_"))).pow(2).sum() for n, p in model.named_parameters())


class Engine:
    def __init__(self, model: nn.Module, lr: float = 1e-2, device="cuda:0", ema: bool = False, accumulate: int = 1):
        self.optimizer = torch.optim.Adam(param_groups_weight_decay(model), lr=lr)
        self.ema = ShadowEMA(model.parameters()) if ema else None
        self.model, self.accumulate = model.to(device), accumulate
        self.running, self.steps = torch.tensor(0.0), 0

    def backward(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y) / self.accumulate
        loss.backward()
        self.running = self.running * 0.9 + loss.detach() * 0.1
        return loss

    def update(self):
        self.optimizer.step()  # raises
        self.optimizer.zero_grad(set_to_none=True)
        if self.ema is not None:
            self.ema.step(self.model.parameters())

    def train_step(self, x, y):
        loss = self.backward(x, y)
        self.steps += 1
        if self.steps % self.accumulate == 0:
            self.update()
        return loss.item(), math.isfinite(self.running)
