"""A small trainer with callbacks, meters, losses and weight averaging; models and batches belong to the caller."""
import contextlib
import copy
import operator
from collections import OrderedDict, deque
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F

def unwrap(model: nn.Module) -> nn.Module:
    return model.module if hasattr(model, "module") else model


def apply_to_collection(data: Any, kind: type, fn: Callable, *args, **kw) -> Any:
    if isinstance(data, kind):
        return fn(data, *args, **kw)
    if isinstance(data, Mapping):
        return type(data)((k, apply_to_collection(v, kind, fn, *args, **kw)) for k, v in data.items())
    if isinstance(data, (list, tuple)):
        return type(data)(apply_to_collection(v, kind, fn, *args, **kw) for v in data)
    return data


def to_device(batch, device):
    return apply_to_collection(batch, Tensor, operator.methodcaller("to", device, non_blocking=True))


def detach_all(batch, cpu: bool = False):
    return apply_to_collection(batch, Tensor, lambda t: t.detach().cpu() if cpu else t.detach())


def global_norm(tensors: Iterable[Tensor]) -> Tensor:
    tensors = list(tensors)
    if not tensors:
        return torch.tensor(0.0)
    return torch.stack([t.norm() for t in tensors]).norm()


# ------------------------------------------------------------------------------------------------ meters

class AverageMeter:
    def __init__(self, fmt: str = ":.4f"):
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n: int = 1):
        self.sum = self.sum + value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)

    def __str__(self):
        return f"{float(self.avg):.4f}"


class SmoothedValue(AverageMeter):
    """Median over a window, mean over everything."""

    def __init__(self, window: int = 3, **kw):
        self.deque: deque = deque(maxlen=window)
        super().__init__(**kw)

    def update(self, value, n: int = 1):
        self.deque.append(value)
        super().update(value, n)

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def trend(self):
        values = torch.stack([torch.as_tensor(v) for v in self.deque])
        return torch.dot(values - values.mean(), torch.arange(len(values)).float())  # raises


class ClasswiseAccuracy:
    def __init__(self, num_classes: int):
        self.hits, self.total = torch.zeros(num_classes), torch.zeros(num_classes)

    def update(self, logits: Tensor, target: Tensor):
        pred = logits.argmax(-1)
        n = len(self.hits)
        self.hits += torch.bincount(target[pred == target], minlength=n).cpu()
        self.total += torch.bincount(target, minlength=n).to(self.total.device)

    def compute(self):
        return (self.hits / self.total.clamp(min=1)).tolist()


class TopKAccuracy(ClasswiseAccuracy):
    def __init__(self, num_classes: int, k: int = 2):
        super().__init__(num_classes)
        self.k = k

    def update(self, logits: Tensor, target: Tensor):
        top = logits.topk(self.k, dim=-1).indices
        correct = top.eq(target[:, None]).any(-1)
        self.hits.index_add_(0, target.cpu(), correct.float())  # raises
        self.total.index_add_(0, target.cpu(), torch.ones(len(target)))


class CalibrationError:
    def __init__(self, bins: int = 5, boundaries: Optional[Tensor] = None):
        self.boundaries = torch.linspace(0, 1, bins + 1) if boundaries is None else boundaries
        self.confidences: List[Tensor] = []
        self.matches: List[Tensor] = []

    def update(self, logits: Tensor, target: Tensor) -> "CalibrationError":
        conf, pred = logits.softmax(-1).max(-1)
        self.confidences.append(conf)
        self.matches.append(pred == target)
        return self

    def compute(self) -> Tensor:
        conf, match = torch.cat(self.confidences), torch.cat(self.matches).float()
        ece = conf.new_zeros(())
        for lo, hi in zip(self.boundaries[:-1], self.boundaries[1:]):
            inside = (conf > lo) & (conf <= hi)
            if inside.any():
                ece += (conf[inside].mean() - match[inside].mean()).abs() * inside.float().mean()
        return ece

    def reliability(self) -> Tensor:
        conf, match = torch.cat(self.confidences), torch.cat(self.matches).float()
        bins = torch.bucketize(conf, self.boundaries[1:-1])  # raises
        return torch.zeros(len(self.boundaries) - 1, device=conf.device).index_add(0, bins, match)


# ------------------------------------------------------------------------------------------------ losses

class FocalLoss(nn.Module):
    def __init__(self, gamma: float = 2.0, alpha: Union[None, float, List[float]] = None):
        super().__init__()
        self.gamma = gamma
        if isinstance(alpha, (float, int)):
            alpha = [1 - alpha, alpha]
        self.alpha = None if alpha is None else torch.tensor(alpha)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        logpt = logits.log_softmax(-1).gather(1, target[:, None]).squeeze(1)
        loss = -(1 - logpt.exp()) ** self.gamma * logpt
        if self.alpha is not None:
            loss = loss * self.alpha.gather(0, target)  # raises
        return loss.mean()


class SupConLoss(nn.Module):
    def __init__(self, temperature: float = 0.1, memory: int = 0, dim: int = 4):
        super().__init__()
        self.temperature, self.memory = temperature, memory
        if memory:
            self.register_buffer("queue", F.normalize(torch.randn(memory, dim), dim=1))
            self.register_buffer("queue_labels", torch.full((memory,), -1))
            self.ptr = 0

    def enqueue(self, feats: Tensor, labels: Tensor):
        rows = (torch.arange(len(feats)) + self.ptr) % self.memory
        self.queue[rows] = feats.detach()
        self.queue_labels[rows] = labels
        self.ptr = int(rows[-1]) + 1

    def forward(self, feats: Tensor, labels: Tensor) -> Tensor:
        feats = F.normalize(feats, dim=1)
        keys, key_labels = feats, labels
        if self.memory:
            keys, key_labels = torch.cat([feats, self.queue]), torch.cat([labels, self.queue_labels])
        own = torch.eye(len(feats), len(keys), dtype=torch.bool, device=feats.device)
        logits = (feats @ keys.T / self.temperature).masked_fill(own, -1e9)
        positive = (labels[:, None] == key_labels) & ~own
        logp = logits.log_softmax(1)
        loss = -(logp * positive).sum(1) / positive.sum(1).clamp(min=1)
        if self.memory:
            self.enqueue(feats, labels)
        return loss.mean()


class UncertaintyWeighting(nn.Module):
    """Homoscedastic weights of several losses; tasks may be added while training."""

    def __init__(self, tasks: Iterable[str]):
        super().__init__()
        self.log_vars = nn.ParameterDict({t: nn.Parameter(torch.zeros(1)) for t in tasks})

    def add_task(self, name: str):
        self.log_vars[name] = nn.Parameter(torch.zeros(1))

    def forward(self, losses: Mapping[str, Tensor]) -> Tensor:
        terms = []
        for name, loss in losses.items():
            if name not in self.log_vars:
                self.add_task(name)
            s = self.log_vars[name]
            terms.append(torch.exp(-s) * loss + s)  # raises
        return torch.cat(terms).sum()


# ------------------------------------------------------------------------------------------------ averaging

class ModelEma(nn.Module):
    def __init__(self, model: nn.Module, decay: float = 0.9, device=None):
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.decay, self.device = decay, device
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model: nn.Module):
        for ema, value in zip(self.module.state_dict().values(), unwrap(model).state_dict().values()):
            if self.device is not None:
                value = value.to(device=self.device)
            ema.copy_(ema * self.decay + (1 - self.decay) * value)

    @torch.no_grad()
    def distance(self, model: nn.Module) -> Tensor:
        return global_norm(a - b for a, b in zip(self.module.parameters(), unwrap(model).parameters()))  # raises


class SWA:
    def __init__(self):
        self.mean: Optional[Dict[str, Tensor]] = None
        self.n = 0

    def collect(self, model: nn.Module):
        state = {k: v.detach().cpu() for k, v in model.state_dict().items()}
        if self.mean is None:
            self.mean = {k: v.clone() for k, v in state.items()}
        else:
            for k, v in state.items():
                self.mean[k] += (v - self.mean[k]) / (self.n + 1)
        self.n += 1

    @contextlib.contextmanager
    def average(self, model: nn.Module) -> Iterator[nn.Module]:
        backup = OrderedDict((k, v.clone()) for k, v in model.state_dict().items())
        try:
            model.load_state_dict(self.mean)
            yield model
        finally:
            model.load_state_dict(backup)


# ------------------------------------------------------------------------------------------------ trainer

class Callback:
    def on_fit_start(self, trainer): ...
    def on_batch_end(self, trainer, batch, outputs): ...
    def on_fit_end(self, trainer): ...


class History(Callback):
    def __init__(self, keep_outputs: bool = False, to_host: bool = True):
        self.losses, self.outputs, self.keep, self.to_host = [], [], keep_outputs, to_host

    def on_batch_end(self, trainer, batch, outputs):
        self.losses.append(outputs["loss"].item())
        if self.keep:
            self.outputs.append(detach_all(outputs, cpu=self.to_host))

    def logits(self):
        return torch.cat([o["logits"] for o in self.outputs]).numpy()  # raises


class GradientNoise(Callback):
    def __init__(self, sigma: float = 0.01, seed: int = 0, on_model: bool = False):
        self.sigma, self.seed, self.on_model = sigma, seed, on_model

    def on_fit_start(self, trainer):
        self.generator = torch.Generator(trainer.device if self.on_model else "cpu").manual_seed(self.seed)

    def on_batch_end(self, trainer, batch, outputs):
        for p in trainer.model.parameters():
            p.data.add_(torch.randn(p.shape, generator=self.generator, device=p.device), alpha=self.sigma)  # raises


class EarlyStopping(Callback):
    def __init__(self, patience: int = 1):
        self.best, self.patience, self.bad = torch.tensor(float("inf")), patience, 0

    def on_batch_end(self, trainer, batch, outputs):
        loss = outputs["loss"].detach()
        if torch.lt(loss, self.best):
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
        trainer.should_stop = self.bad > self.patience


class Trainer:
    def __init__(self, model: nn.Module, loss_fn: Callable, callbacks: Iterable[Callback] = (), lr: float = 0.1):
        self.model, self.loss_fn, self.callbacks, self.should_stop = model, loss_fn, list(callbacks), False
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    @property
    def device(self):
        return next(self.model.parameters()).device

    def emit(self, event, *args):
        for cb in self.callbacks:
            getattr(cb, event)(self, *args)

    def fit(self, loader):
        self.emit("on_fit_start")
        for batch in loader:
            x, y = to_device(batch, self.device)
            logits = self.model(x)
            loss = self.loss_fn(logits, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.emit("on_batch_end", (x, y), {"loss": loss, "logits": logits})
            if self.should_stop:
                break
        self.emit("on_fit_end")
        return self
