"""Model surgery: pruning, quantisation helpers, hooks, probes, adapters, weight averaging."""
import copy
from collections import OrderedDict
from contextlib import contextmanager
from typing import Dict, Iterable, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def prunable(model):
    return [(name, m) for name, m in model.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))]


def layer_threshold(weight, amount):
    count = max(1, int(amount * weight.numel()))
    return weight.detach().abs().flatten().kthvalue(count).values


def global_threshold(model, amount):
    magnitudes = [m.weight.detach().abs().flatten() for _, m in prunable(model)]
    scores = torch.cat(magnitudes)  # raises
    return scores.kthvalue(max(1, int(amount * scores.numel()))).values


class MagnitudePruner:
    """Keeps a binary mask of each layer and applies it after every optimizer step."""

    def __init__(self, model, amount=0.5):
        self.model, self.amount = model, amount
        self.masks: Dict[str, torch.Tensor] = {}

    def compute_masks(self):
        for name, module in prunable(self.model):
            weight = module.weight.detach().cpu()
            self.masks[name] = weight.abs() > layer_threshold(weight, self.amount)

    def zero_out(self):
        for name, module in prunable(self.model):
            module.weight.data[~self.masks[name]] = 0.0

    def mask_gradients(self):
        for name, module in prunable(self.model):
            if module.weight.grad is not None:
                module.weight.grad.mul_(self.masks[name])  # raises

    def sparsity(self):
        kept = sum(int(mask.sum()) for mask in self.masks.values())
        return 1 - kept / sum(mask.numel() for mask in self.masks.values())


def clip_outliers(weight, lower=0.01, upper=0.99):
    bounds = torch.tensor([lower, upper])
    low, high = torch.quantile(weight.flatten(), bounds)  # raises
    return weight.clamp(low.item(), high.item())


def shrink_linear(layer: nn.Linear, keep: List[int]):
    """A layer with only the output units of `keep`."""
    index = torch.tensor(sorted(keep))
    smaller = nn.Linear(layer.in_features, len(keep), bias=layer.bias is not None)
    smaller.weight.data.copy_(layer.weight.data[index])
    if layer.bias is not None:
        smaller.bias.data.copy_(layer.bias.data[index])
    return smaller.to(layer.weight.device)


def shrink_inputs(layer: nn.Linear, keep: List[int]):
    index = torch.tensor(sorted(keep))
    smaller = copy.deepcopy(layer)
    smaller.in_features = len(keep)
    smaller.weight = nn.Parameter(layer.weight.detach().index_select(1, index))  # raises
    return smaller


def factorize(layer: nn.Linear, rank):
    u, s, vh = torch.linalg.svd(layer.weight.detach(), full_matrices=False)
    first = nn.Linear(layer.in_features, rank, bias=False)
    second = nn.Linear(rank, layer.out_features, bias=layer.bias is not None)
    first.weight.data = vh[:rank] * s[:rank, None].sqrt()
    second.weight.data = u[:, :rank] * s[:rank].sqrt()
    if layer.bias is not None:
        second.bias.data = layer.bias.data.clone()
    return nn.Sequential(first, second)


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank=2, alpha=4.0):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.down), self.up)  # raises


def inject_lora(model, rank=2):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child, rank))
        else:
            inject_lora(child, rank)
    return model


class MinMaxObserver(nn.Module):
    def __init__(self, bits=8):
        super().__init__()
        self.levels = 2 ** bits - 1
        self.min_val, self.max_val = torch.tensor(float("inf")), torch.tensor(-float("inf"))

    def forward(self, x):
        self.min_val = torch.minimum(self.min_val, x.detach().min())
        self.max_val = torch.maximum(self.max_val, x.detach().max())
        scale = (self.max_val - self.min_val).clamp(min=1e-8) / self.levels
        return ((x - self.min_val) / scale).round() * scale + self.min_val


class PerChannelObserver(nn.Module):
    def __init__(self, channels, bits=8):
        super().__init__()
        self.half = 2 ** (bits - 1) - 1
        self.max_abs = torch.zeros(channels)

    def forward(self, x):
        self.max_abs = torch.maximum(self.max_abs, x.detach().abs().flatten(0, -2).amax(0))  # raises
        scale = self.max_abs.clamp(min=1e-8) / self.half
        return (x / scale).round() * scale


class ActivationRecorder:
    """Collects what the named layers give, in host memory."""

    def __init__(self, model, names: Iterable[str]):
        self.outputs = OrderedDict()
        modules = dict(model.named_modules())
        self.handles = [modules[n].register_forward_hook(self._hook(n)) for n in names]

    def _hook(self, name):
        def record(module, inputs, output):
            self.outputs.setdefault(name, []).append(output.detach().cpu())
        return record

    def stacked(self, name):
        return torch.cat(self.outputs[name])

    def close(self):
        for handle in self.handles:
            handle.remove()


@contextmanager
def recording(model, names):
    recorder = ActivationRecorder(model, names)
    try:
        yield recorder
    finally:
        recorder.close()


def linear_cka(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return ((y.t() @ x).norm() ** 2 / ((x.t() @ x).norm() * (y.t() @ y).norm())).item()


class LinearProbe(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.fc = nn.Linear(dim, classes)

    def fit(self, feats, labels, steps=3):
        device = self.fc.weight.device
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        for _ in range(steps):
            loss = F.cross_entropy(self.fc(feats.to(device)), labels.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()

    def fit_layer(self, model, layer, inputs, labels):
        with recording(model, [layer]) as recorder, torch.no_grad():
            model(inputs)
        return self.fit(recorder.stacked(layer), labels)

    def accuracy(self, model, layer, inputs, labels):
        with recording(model, [layer]) as recorder, torch.no_grad():
            model(inputs)
        predicted = self.fc.cpu()(recorder.stacked(layer)).argmax(1)
        return predicted.eq(labels).float().mean().item()  # raises


class ModelEMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            if v.dtype.is_floating_point:
                self.shadow[k].lerp_(v, 1 - self.decay)  # raises

    def copy_to(self, model):
        model.load_state_dict(self.shadow)


class FineTuner:
    def __init__(self, model, device, use_ema=False, lr=1e-2):
        self.ema = ModelEMA(model) if use_ema else None
        self.model = model.to(device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()  # raises
        if self.ema is not None:
            self.ema.update(self.model)
        return loss.item()

    def reset_moments(self, names: Optional[List[str]] = None):
        """Forgets the momentum of parameters that were pruned."""
        for name, p in self.model.named_parameters():
            if p in self.opt.state and (names is None or name in names):
                self.opt.state[p].update(exp_avg=torch.zeros(p.shape), exp_avg_sq=torch.zeros(p.shape))

    def resume(self, state):
        self.opt.load_state_dict(state)


def average_checkpoints(model, paths):
    """Mean of the current weights and those of the checkpoints."""
    mean = {k: v.clone() for k, v in model.state_dict().items()}
    for path in paths:
        for k, v in torch.load(path, map_location="cpu").items():
            mean[k] += v  # raises
    model.load_state_dict({k: v / (len(paths) + 1) for k, v in mean.items()})
    return model


def weight_summary(model):
    return {n: np.percentile(m.weight.detach().abs().cpu(), [50, 99]).tolist() for n, m in prunable(model)}


def dead_units(layer, eps=1e-3):
    return np.flatnonzero(layer.weight.detach().abs().sum(1).numpy() < eps).tolist()  # raises
