"""A small trainer: callbacks, moving averages of the weights, gradient accumulation, distillation, checkpoints."""
import copy
import math
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import List, NamedTuple, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Batch(NamedTuple):
    inputs: Tensor
    targets: Tensor


@dataclass
class TrainerConfig:
    device: str = "cuda:0"
    lr: float = 1e-3
    accumulate: int = 2
    max_norm: float = 1.0
    ema_decay: float = 0.999
    class_counts: Optional[List[int]] = None


def to_device(data, device):
    if torch.is_tensor(data):
        return data.to(device, non_blocking=True)
    if isinstance(data, dict):
        return {key: to_device(value, device) for key, value in data.items()}
    if isinstance(data, list):
        return [to_device(value, device) for value in data]
    return data


class ModelEma(nn.Module):
    """As timm's: a copy of the module, on a device of its own where one is asked for."""

    def __init__(self, model, decay=0.999, device=None):
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.decay, self.device = decay, device
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if self.device is not None:
                model_v = model_v.to(device=self.device)
            ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)


class ShadowWeights:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self, model):
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name].mul_(self.decay).add_(param, alpha=1 - self.decay)  # raises


class Callback:
    def on_fit_start(self, trainer): ...
    def on_step_end(self, trainer, loss): ...
    def on_epoch_end(self, trainer): ...


class LossHistory(Callback):
    def __init__(self, window=20):
        self.recent = deque(maxlen=window)
        self.mean = math.nan

    def on_step_end(self, trainer, loss):
        self.recent.append(loss.detach())

    def on_epoch_end(self, trainer):
        self.mean = np.mean(self.recent)  # raises


class LossTracker(Callback):
    """The average without a synchronization in each step."""

    def __init__(self):
        self.total, self.steps = torch.tensor(0.0), 0

    def on_step_end(self, trainer, loss):
        self.total = self.total + loss.detach()
        self.steps += 1

    def on_epoch_end(self, trainer):
        trainer.logs["loss"].append((self.total / max(self.steps, 1)).item())
        self.total, self.steps = torch.tensor(0.0), 0


class SpikeGuard(Callback):
    def __init__(self, factor=4.0):
        self.factor = factor
        self.smooth, self.spikes = torch.tensor(float("inf")), torch.tensor(0)

    def on_step_end(self, trainer, loss):
        spike = loss.detach() > self.factor * self.smooth
        self.spikes += spike  # raises
        self.smooth = torch.minimum(self.smooth, loss.detach())


class WeightHistograms(Callback):
    def __init__(self, bins=16):
        self.bins, self.histograms = bins, {}

    def on_epoch_end(self, trainer):
        for name, param in trainer.model.named_parameters():
            self.histograms[name] = np.histogram(param.detach().numpy(), bins=self.bins)  # raises


class GradientHistograms(WeightHistograms):
    def on_epoch_end(self, trainer):
        for name, param in trainer.model.named_parameters():
            values = np.zeros(1) if param.grad is None else param.grad.float().cpu().numpy()
            self.histograms[name] = np.histogram(values, bins=self.bins)


class GradientAccumulator:
    """Sums gradients of micro batches apart from .grad, so that each may be clipped by itself."""

    def __init__(self, params):
        self.params = [p for p in params if p.requires_grad]
        self.sums = [torch.zeros(p.shape, dtype=torch.float32) for p in self.params]
        self.count = 0

    def collect(self):
        for total, param in zip(self.sums, self.params):
            if param.grad is not None:
                total.add_(param.grad.float())  # raises
        self.count += 1

    def write_back(self):
        for total, param in zip(self.sums, self.params):
            param.grad = (total / self.count).to(param)
            total.zero_()


def clip_gradients(params, max_norm: float) -> Tensor:
    grads = [p.grad for p in params if p.grad is not None]
    norm = torch.norm(torch.stack([torch.norm(g) for g in grads]))  # raises
    for grad in grads:
        grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1.0).to(grad.device))
    return norm


def gradient_norm(params) -> float:
    return math.sqrt(sum(float(p.grad.pow(2).sum()) for p in params if p.grad is not None))


class Distiller(nn.Module):
    """Student with a teacher that shall be in neither parameters() nor the checkpoint."""

    def __init__(self, student, teacher, temperature=2.0):
        super().__init__()
        self.student = student
        self._teacher = [teacher.eval()]
        self.temperature = temperature

    def forward(self, inputs):
        logits = self.student(inputs)
        with torch.no_grad():
            soft = self._teacher[0](inputs).div(self.temperature).softmax(-1)  # raises
        return F.kl_div(F.log_softmax(logits / self.temperature, -1), soft, reduction="batchmean")


class Trainer:
    def __init__(self, model, config: TrainerConfig, callbacks=()):
        self.config, self.device = config, torch.device(config.device)
        self.model, self.callbacks = model, list(callbacks)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
        self.shadow = ShadowWeights(model, config.ema_decay)
        weight = None
        if config.class_counts:
            counts = torch.tensor(config.class_counts, dtype=torch.float32)
            weight = counts.sum() / (len(counts) * counts)
        self.criterion = nn.CrossEntropyLoss(weight=weight)
        self.logs, self.should_stop = defaultdict(list), False

    def emit(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def loss_of(self, batch):
        logits = self.model(batch["inputs"])
        return self.criterion(logits, batch["targets"])  # raises

    def fit(self, loader, epochs=1, average=False):
        self.model.to(self.device).train()
        self.emit("on_fit_start")
        for _ in range(epochs):
            for step, batch in enumerate(loader, 1):
                loss = self.loss_of(to_device(batch, self.device)) / self.config.accumulate
                loss.backward()
                self.emit("on_step_end", loss)
                if step % self.config.accumulate == 0:
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
                    self.optimizer.step()  # raises
                    self.optimizer.zero_grad(set_to_none=True)
                    if average:
                        self.shadow.update(self.model)
            self.emit("on_epoch_end")
        return self.logs

    @torch.no_grad()
    def evaluate(self, loader) -> float:
        self.model.to(self.device).eval()
        predictions, truth = [], []
        for batch in loader:
            predictions.append(self.model(batch["inputs"].to(self.device)).argmax(-1))
            truth.append(batch["targets"])
        return (torch.cat(predictions) == torch.cat(truth)).float().mean().item()  # raises

    @torch.no_grad()
    def predict(self, loader) -> Tensor:
        outputs = [self.model(to_device(batch, self.device)["inputs"]).cpu() for batch in loader]
        return torch.cat(outputs)

    @torch.no_grad()
    def embed(self, batches: List[Batch]):
        self.model.to(self.device).eval()
        for batch in batches:
            batch = to_device(batch, self.device)
            yield self.model(batch.inputs)  # raises

    def state_dict(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "rng": torch.get_rng_state()}

    def resume(self, path):
        state = torch.load(path, map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])

    def warm_start(self, path):
        self.model.load_state_dict(torch.load(path, map_location="cpu")["model"])

    def soup(self, paths):
        """Averages the weights of checkpoints with those of the model."""
        average = {key: value.clone() for key, value in self.model.state_dict().items()}
        for path in paths:
            for key, value in torch.load(path, map_location="cpu")["model"].items():
                average[key] += value / len(paths)  # raises
        self.model.load_state_dict({key: value / 2 for key, value in average.items()})
