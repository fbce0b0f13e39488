"""A training loop: trainer template, collators, callbacks, metrics, averaging, schedules and gradient tools."""
import copy
import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class TrainingArguments:
    learning_rate: float = 0.05
    max_grad_norm: Optional[float] = 1.0
    label_smoothing: float = 0.0
    accumulation_steps: int = 1
    ema_decay: Optional[float] = None
    class_weights: Optional[List[float]] = None
    average_tokens: bool = False
    logging_nan_filter: bool = True


class StepOutput(NamedTuple):
    loss: torch.Tensor
    logits: torch.Tensor


class EvalResult(NamedTuple):
    predictions: Any
    label_ids: Any
    metrics: Dict[str, float]


def recursively_apply(function: Callable, data: Any):
    if isinstance(data, torch.Tensor):
        return function(data)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(recursively_apply(function, item) for item in data))
    if isinstance(data, (list, tuple)):
        return type(data)(recursively_apply(function, item) for item in data)
    if isinstance(data, Mapping):
        return type(data)({key: recursively_apply(function, item) for key, item in data.items()})
    return data


def send_to_device(data, device):
    return recursively_apply(lambda tensor: tensor.to(device), data)


def nested_numpify(data):
    return recursively_apply(lambda tensor: tensor.detach().cpu().numpy(), data)


def nested_concat(first, second, padding_index=-100):
    if isinstance(first, (list, tuple)):
        return type(first)(nested_concat(a, b, padding_index) for a, b in zip(first, second))
    if isinstance(first, Mapping):
        return type(first)({key: nested_concat(first[key], second[key], padding_index) for key in first})
    if first.dim() == 1 or first.shape[1] == second.shape[1]:
        return torch.cat((first, second), dim=0)
    width = max(first.shape[1], second.shape[1])
    joined = first.new_full((first.shape[0] + second.shape[0], width), padding_index)
    joined[:first.shape[0], :first.shape[1]] = first
    joined[first.shape[0]:, :second.shape[1]] = second
    return joined


def pad_across(tensors: Sequence[torch.Tensor], pad_value=0, left=False):
    width = max(tensor.shape[0] for tensor in tensors)
    rows = []
    for tensor in tensors:
        filler = torch.full((width - tensor.shape[0],), pad_value, dtype=tensor.dtype)
        rows.append(torch.cat([filler, tensor] if left else [tensor, filler]))  # raises
    return torch.stack(rows)


class Collator:
    def __call__(self, features: List[Dict[str, torch.Tensor]]) -> Dict[str, torch.Tensor]:
        batch = {key: self.join(key, [feature[key] for feature in features]) for key in features[0]}
        return self.finish(batch)

    def join(self, key, values):
        return torch.stack(values)

    def finish(self, batch):
        return batch


class PaddingCollator(Collator):
    def join(self, key, values):
        if key == "labels":
            return nn.utils.rnn.pad_sequence(values, batch_first=True, padding_value=-100)
        return pad_across(values)


class MaskingCollator(Collator):
    def __init__(self, mask_token: int, vocab_size: int, probability=0.15, special: Sequence[int] = (0, 1)):
        self.mask_token, self.vocab_size, self.probability = mask_token, vocab_size, probability
        self.special = frozenset(special)

    def finish(self, batch):
        inputs, labels = batch["input_ids"].clone(), batch["input_ids"].clone()
        chance = torch.full(labels.shape, self.probability)
        special = torch.tensor([[token in self.special for token in row] for row in labels.tolist()])
        chosen = torch.bernoulli(chance.masked_fill_(special, 0.0)).bool()
        labels[~chosen] = -100
        replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen
        inputs[replaced] = self.mask_token
        noise = torch.randint(self.vocab_size, labels.shape)
        batch["input_ids"] = torch.where(chosen & ~replaced, noise, inputs)  # raises
        batch["labels"] = labels
        return batch


class SpanCollator(MaskingCollator):
    def finish(self, batch):
        inputs = batch["input_ids"]
        starts = torch.rand(inputs.shape[0]).mul(inputs.shape[1] - 2).long().tolist()
        mask = np.zeros(tuple(inputs.shape), dtype=bool)
        for row, start in enumerate(starts):
            mask[row, start:start + 2] = True
        chosen = torch.as_tensor(mask, device=inputs.device)
        batch["labels"] = inputs.masked_fill(~chosen, -100)
        batch["input_ids"] = inputs.masked_fill(chosen, self.mask_token)
        return batch


class LabelSmoother:
    def __init__(self, epsilon=0.1, ignore_index=-100, prior: Optional[Sequence[float]] = None):
        self.epsilon, self.ignore_index = epsilon, ignore_index
        self.prior = None if prior is None else torch.tensor(prior)

    def __call__(self, logits, labels):
        log_probs = -F.log_softmax(logits, dim=-1)
        padding = labels.unsqueeze(-1).eq(self.ignore_index)
        nll = log_probs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).masked_fill(padding, 0.0)
        if self.prior is None:
            smooth = log_probs.mean(-1, keepdim=True)
        else:
            smooth = torch.matmul(log_probs, self.prior.unsqueeze(-1))  # raises
        count = (~padding).sum()
        return ((1 - self.epsilon) * nll.sum() + self.epsilon * smooth.masked_fill(padding, 0.0).sum()) / count


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults, self._reductions = {}, {}

    def add_state(self, name, default):
        self._defaults[name] = copy.deepcopy(default)
        setattr(self, name, default)

    def _apply(self, fn):
        super()._apply(fn)
        for name in self._defaults:
            value = getattr(self, name)
            setattr(self, name, [fn(v) for v in value] if isinstance(value, list) else fn(value))
        return self

    def reset(self):
        for name, default in self._defaults.items():
            setattr(self, name, copy.deepcopy(default))

    def forward(self, *args):
        self.update(*args)
        return self.compute()


class ConfusionMetric(Metric):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes
        self.add_state("matrix", torch.zeros(num_classes, num_classes, dtype=torch.long))

    def update(self, logits, labels):
        flat = labels * self.num_classes + logits.argmax(-1)
        counts = torch.bincount(flat, minlength=self.num_classes ** 2)
        self.matrix = self.matrix + counts.view(self.num_classes, -1)  # raises

    def compute(self):
        return self.matrix.diag().float() / self.matrix.sum(1).clamp(min=1)


class MacroAccuracy(ConfusionMetric):
    def __init__(self, num_classes, weights):
        super().__init__(num_classes)
        self.class_weights = torch.tensor(weights)

    def compute(self):
        return (super().compute() * self.class_weights).sum()  # raises


class MeanMetric(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("total", torch.tensor(0.0))
        self.add_state("count", torch.tensor(0))

    def update(self, values):
        self.total = self.total + values.sum()
        self.count = self.count + values.numel()

    def compute(self):
        return self.total / self.count


class CalibrationMetric(Metric):
    def __init__(self, bins=5):
        super().__init__()
        self.add_state("confidences", [])
        self.add_state("hits", [])
        self.register_buffer("edges", torch.linspace(0, 1, bins + 1))

    def update(self, logits, labels):
        confidence, guess = logits.softmax(-1).max(-1)
        self.confidences.append(confidence)
        self.hits.append(guess.eq(labels).float())

    def compute(self):
        confidence, hits = torch.cat(self.confidences), torch.cat(self.hits)
        slots = torch.bucketize(confidence, self.edges[1:-1])
        gaps = torch.zeros(self.edges.numel() - 1, device=hits.device).index_add_(0, slots, hits - confidence)
        return gaps.abs().sum() / hits.numel()


class ParameterAverage:
    def __init__(self, model: nn.Module, decay=0.9, offload=False):
        self.decay, self.offload = decay, offload
        self.shadow = OrderedDict((name, self._copy(p)) for name, p in model.named_parameters())

    def _copy(self, tensor):
        return tensor.detach().cpu().clone() if self.offload else tensor.detach().clone()

    @torch.no_grad()
    def update(self, model):
        for name, parameter in model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(parameter, alpha=1 - self.decay)  # raises

    @torch.no_grad()
    def copy_to(self, model):
        for name, parameter in model.named_parameters():
            parameter.copy_(self.shadow[name])


class SwappedAverage(ParameterAverage):
    def store(self, model):
        self.backup = {name: p.detach().cpu() for name, p in model.named_parameters()}

    def distance(self, model):
        return sum(float((p - self.shadow[n].to(p)).norm()) for n, p in model.named_parameters())

    def drift(self, model):
        deltas = [(p.detach() - self.backup[n]).flatten() for n, p in model.named_parameters()]  # raises
        return torch.cat(deltas).norm()


class Callback:
    def on_step(self, trainer, output):
        pass

    def on_evaluate(self, trainer, result):
        pass


class LossHistory(Callback):
    def __init__(self, size=4):
        self.values, self.size = deque(maxlen=size), size

    def on_step(self, trainer, output):
        self.values.append(output.loss.detach())

    def smoothed(self):
        weights = torch.linspace(0.5, 1.0, len(self.values))
        return torch.dot(torch.stack(tuple(self.values)), weights)  # raises

    def spread(self):
        return torch.tensor(list(self.values)).std()


class HistogramCallback(Callback):
    def __init__(self, bins=4):
        self.bins, self.counts = bins, defaultdict(lambda: np.zeros(bins, dtype=int))

    def on_step(self, trainer, output):
        for name, parameter in trainer.model.named_parameters():
            if parameter.grad is not None:
                self.counts[name] += np.histogram(parameter.grad, bins=self.bins)[0]  # raises


class BestKeeper(Callback):
    def __init__(self):
        self.best, self.state = torch.tensor(float("inf")), None

    def on_step(self, trainer, output):
        if output.loss < self.best:
            self.best = torch.minimum(output.loss.detach(), self.best)
            self.state = {k: v.cpu() for k, v in trainer.model.state_dict().items()}


class ActivationRecorder:
    def __init__(self, model, layer_type=nn.Linear, center=False):
        self.moments, self.center = {}, center
        self.handles = [m.register_forward_hook(self._hook(n)) for n, m in model.named_modules() if isinstance(m, layer_type)]

    def _hook(self, name):
        running, steps = torch.zeros(()), 0

        def record(module, inputs, output):
            nonlocal running, steps
            flat = output.detach().flatten(0, -2)
            steps += 1
            running = running + (flat.mean(0) - running) / steps
            self.moments[name] = running.cpu()
            if self.center:
                return output - self.moments[name]  # raises
        return record

    def remove(self):
        for handle in self.handles:
            handle.remove()


def global_norm(gradients: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.stack([gradient.norm() for gradient in gradients]).norm()


def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    scale = torch.tensor(max_norm) / (global_norm(gradients) + 1e-6)
    for gradient in gradients:
        gradient.mul_(scale.clamp(max=1.0))
    return scale


def per_layer_clip(module: nn.Module, max_norm: float):
    norms = torch.zeros(sum(1 for _ in module.parameters()))
    for index, parameter in enumerate(module.parameters()):
        norms[index] = parameter.grad.norm()
    factors = (max_norm / norms.clamp(min=1e-6)).clamp(max=1.0)
    for parameter, factor in zip(module.parameters(), factors):
        parameter.grad.mul_(factor)
    return factors


def add_gradient_noise(parameters, eta=0.01, generator=None):
    for parameter in parameters:
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.grad.add_(noise, alpha=eta)  # raises


def project_conflicts(gradients: List[torch.Tensor]):
    stacked = torch.stack([gradient.flatten() for gradient in gradients])
    gram = stacked @ stacked.t()
    off_diagonal = gram.masked_fill(torch.eye(len(gradients), dtype=torch.bool), 0.0)  # raises
    correction = off_diagonal.clamp(max=0) / gram.diagonal().clamp(min=1e-8)
    return stacked - correction @ stacked


class GradScaler:
    def __init__(self, scale=8.0):
        self._scale, self._found = torch.full((1,), scale), None

    def scale(self, loss):
        self._scale = self._scale.to(loss.device)
        return loss * self._scale.squeeze()

    def unscale_(self, parameters):
        for parameter in parameters:
            parameter.grad.mul_(self._scale.reciprocal())


class UncertaintyWeighting(nn.Module):
    def __init__(self, tasks: Sequence[str], learned=True):
        super().__init__()
        initial = torch.zeros(len(tasks))
        self.log_vars = nn.Parameter(initial) if learned else initial
        self.tasks, self.view = tuple(tasks), self.log_vars

    def forward(self, losses: Dict[str, torch.Tensor]):
        values = torch.stack([losses[task] for task in self.tasks])
        return (values * torch.exp(-self.view) + self.view).sum()  # raises


class WarmupCosine:
    def __init__(self, optimizer, warmup, total):
        self.optimizer, self.step_count = optimizer, 0
        steps = torch.arange(total).float()
        self.table = torch.minimum(steps / warmup, 0.5 * (1 + torch.cos(math.pi * steps / total)))
        self.base = [group["lr"] for group in optimizer.param_groups]

    def step(self):
        for base, group in zip(self.base, self.optimizer.param_groups):
            group["lr"] = base * self.table[self.step_count].item()
        self.step_count += 1


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, betas=(0.9, 0.99)):
        super().__init__(params, dict(lr=lr, betas=betas))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state, (beta1, beta2) = self.state[p], group["betas"]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                p.add_(torch.sign(state["momentum"].lerp(p.grad, 1 - beta1)), alpha=-group["lr"])
                state["momentum"].lerp_(p.grad, 1 - beta2)


class Trainer:
    def __init__(self, model, args: TrainingArguments, callbacks: Sequence[Callback] = ()):
        self.model, self.args, self.callbacks = model, args, list(callbacks)
        self.optimizer = Lion(model.parameters(), lr=args.learning_rate)
        self.tr_loss = torch.tensor(0.0)
        self.average = ParameterAverage(model, args.ema_decay) if args.ema_decay else None

    @property
    def device(self):
        return next(self.model.parameters()).device

    def compute_loss(self, logits, labels):
        weights = self.args.class_weights
        if weights is not None:
            weights = torch.tensor(weights, device=logits.device)
        return F.cross_entropy(logits, labels, weight=weights, label_smoothing=self.args.label_smoothing)

    def training_step(self, batch):
        batch = send_to_device(batch, self.device)
        logits = self.model(batch["inputs"])
        loss = self.compute_loss(logits, batch["labels"])
        (loss / self.args.accumulation_steps).backward()
        return StepOutput(loss, logits)

    def train(self, batches):
        for batch in batches:
            output = self.training_step(batch)
            if self.args.max_grad_norm:
                clip_gradients(self.model.parameters(), self.args.max_grad_norm)
            self.optimizer.step()
            self.tr_loss += output.loss.detach().item() if self.args.logging_nan_filter else 0.0
            if self.average is not None:
                self.average.update(self.model)
            for callback in self.callbacks:
                callback.on_step(self, output)
            self.optimizer.zero_grad()
        return self.tr_loss / max(len(batches), 1)

    @torch.no_grad()
    def evaluate(self, batches):
        collected = None
        for batch in batches:
            batch = send_to_device(batch, self.device)
            pair = (self.model(batch["inputs"]), batch["labels"])
            collected = pair if collected is None else nested_concat(collected, pair)
        predictions, labels = nested_numpify(collected)
        return EvalResult(predictions, labels, {"accuracy": float((predictions.argmax(-1) == labels).mean())})

    def predict(self, batches, scale: Optional[np.ndarray] = None):
        result = [self.model(send_to_device(batch["inputs"], self.device)) for batch in batches]
        probabilities = torch.cat(result).detach().softmax(-1)
        if scale is not None:
            probabilities = probabilities * torch.from_numpy(scale)  # raises
        return probabilities.cpu().numpy()
