"""A training framework: trainer, callbacks, metrics, checkpoints, loss scaling, model parallel layers, optimizers."""
import copy
import io
from collections import defaultdict
from dataclasses import dataclass
from typing import Dict
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class TrainConfig:
    device: str = "cuda:0"
    epochs: int = 1
    clip: float = 0.0
    lr: float = 0.1
    optimizer: str = "momentum"

OPTIMIZERS: Dict[str, type] = {}

def optimizer(name):
    def wrap(cls):
        OPTIMIZERS[name] = cls
        return cls
    return wrap

def move(thing, device):
    if isinstance(thing, dict):
        return {k: move(v, device) for k, v in thing.items()}
    if isinstance(thing, (list, tuple)):
        return type(thing)(move(v, device) for v in thing)
    return thing.to(device) if hasattr(thing, "to") else thing

class Optimizer:
    def __init__(self, params, lr):
        self.params, self.lr, self.state = list(params), lr, defaultdict(dict)
        self.setup()
    setup = lambda self: None  # noqa: E731
    def zero_grad(self):
        for p in self.params:
            p.grad = None
    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is not None:
                self.update(p, p.grad, self.state[i])
    def state_dict(self):
        return {"lr": self.lr, "state": {i: dict(s) for i, s in self.state.items()}}
    def load_state_dict(self, saved, cast=False):
        self.lr = saved["lr"]
        for i, s in saved["state"].items():
            self.state[i].update(move(s, self.params[i].device) if cast else s)

@optimizer("momentum")
class Momentum(Optimizer):
    def setup(self):
        for i, p in enumerate(self.params):
            self.state[i]["buffer"] = torch.zeros_like(p)
    def update(self, p, grad, state):
        state["buffer"].mul_(0.9).add_(grad)  # raises
        p.sub_(self.lr * state["buffer"])

@optimizer("adam")
class Adam(Optimizer):
    def update(self, p, grad, state):
        if not state:
            state.update(step=torch.tensor(0.0), m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["step"] += 1
        state["m"].mul_(0.9).add_(grad, alpha=0.1)
        state["v"].mul_(0.99).addcmul_(grad, grad, value=0.01)  # raises
        m, v = state["m"] / (1 - 0.9 ** state["step"]), state["v"] / (1 - 0.99 ** state["step"])
        p.addcdiv_(m, v.sqrt() + 1e-8, value=-self.lr)

@optimizer("lion")
class HostLion(Optimizer):
    def update(self, p, grad, state):
        m = state.setdefault("m", torch.zeros(p.shape))
        direction = (0.9 * m + 0.1 * grad.cpu()).sign()
        m.lerp_(grad.cpu(), 0.01)
        p.copy_(p.cpu() - self.lr * direction)

class Lookahead(Optimizer):
    def __init__(self, inner, every=2, alpha=0.5):
        self.inner, self.every, self.alpha, self.count = inner, every, alpha, 0
        self.slow = [p.detach().clone().cpu() for p in inner.params]
        self.params, self.state = inner.params, inner.state
    @torch.no_grad()
    def step(self):
        self.inner.step()
        self.count += 1
        if self.count % self.every == 0:
            for slow, p in zip(self.slow, self.params):
                slow.add_(self.alpha * (p - slow))  # raises
                p.copy_(slow)

class LossScaler:
    def __init__(self, scale=16.0, device=None, per_device=True):
        self.scale, self.device, self.per_device = torch.tensor(scale), device, per_device
        self.good = 0
    def __call__(self, loss):
        return loss * self.scale
    def found_inf(self, params):
        flags = {}
        for p in params:
            if p.grad is not None:
                bad = (~torch.isfinite(p.grad)).any().float()
                key = p.device if self.per_device else self.device
                flags[key] = flags[key] + bad if key in flags else bad  # raises
        return sum(float(f) for f in flags.values())
    def unscale(self, params):
        for p in params:
            if p.grad is not None:
                p.grad.div_(self.scale)
        return self.found_inf(params)

def clip_by_total_norm(params, limit):
    grads = [p.grad for p in params if p.grad is not None]
    total = torch.stack([g.norm().to(grads[0].device) for g in grads]).norm()
    factor = (limit / (total + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)  # raises
    return total

def clip_adaptively(params, limit=0.1):
    floor = torch.full((1,), 1e-3)
    for p in params:
        bound = torch.max(p.detach().norm(), floor.to(p.device)) * limit
        norm = p.grad.norm()
        p.grad.copy_(torch.where(norm > bound, p.grad * (bound / norm), p.grad))

class Stage(nn.Module):
    def __init__(self, inner, device, keep_skip=False):
        super().__init__()
        self.inner, self.device, self.keep_skip = inner.to(device), torch.device(device), keep_skip
    def forward(self, x):
        out = self.inner(x.to(self.device))
        return out + x if self.keep_skip else out  # raises

class TiedLM(nn.Module):
    def __init__(self, vocab, dim, devices, follow=True):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).to(devices[0])
        self.body = nn.Sequential(*[Stage(nn.Linear(dim, dim), d) for d in devices])
        self.follow = follow
    def forward(self, x):
        hidden = self.body(self.embed(x.to(self.embed.weight.device)))
        if self.follow:
            hidden = hidden.to(self.embed.weight.device)
        return F.linear(hidden, self.embed.weight)  # raises

class Replicas:
    def __init__(self, module, devices):
        self.devices = devices
        self.modules = [module.to(devices[0])] + [copy.deepcopy(module).to(d) for d in devices[1:]]
    def losses(self, batch, loss):
        chunks = zip(*[x.chunk(len(self.devices)) for x in batch])
        return [loss(m(x.to(d)), y.to(d)) for m, d, (x, y) in zip(self.modules, self.devices, chunks)]
    def reduce(self, via_first=True):
        for group in zip(*[m.parameters() for m in self.modules]):
            for other in group[1:]:
                grad = other.grad.to(group[0].device) if via_first else other.grad
                group[0].grad += grad  # raises
            for other in group[1:]:
                other.grad.copy_(group[0].grad)

class SmoothLoss(nn.Module):
    def __init__(self, classes, smoothing=0.1, class_weight=None):
        super().__init__()
        table = torch.full((classes, classes), smoothing / (classes - 1)).fill_diagonal_(1 - smoothing)
        self.table, self.class_weight = table, class_weight
    def forward(self, logits, target):
        goal = self.table[target.cpu()].to(logits)
        losses = -(goal * logits.log_softmax(-1)).sum(-1)
        if self.class_weight is not None:
            losses = losses * self.class_weight[target]  # raises
        return losses.mean()

class Metric:
    def __init__(self, **states):
        self.defaults = {k: torch.as_tensor(v, dtype=torch.float) for k, v in states.items()}
        self.reset()
    def reset(self):
        for name, value in self.defaults.items():
            setattr(self, name, value.clone())
    def to(self, device):
        for name in self.defaults:
            setattr(self, name, getattr(self, name).to(device))
        return self

class Accuracy(Metric):
    def __init__(self):
        super().__init__(hits=0.0, seen=0.0)
    def update(self, logits, target):
        self.hits += (logits.argmax(-1) == target).sum()  # raises
        self.seen += len(target)
    def compute(self):
        return (self.hits / self.seen).item()

class Confusion(Metric):
    def __init__(self, classes):
        super().__init__(matrix=np.zeros((classes, classes)))
        self.classes = classes
    def update(self, logits, target):
        flat = target * self.classes + logits.argmax(-1)
        counts = torch.bincount(flat, minlength=self.classes ** 2).view(self.classes, -1)
        self.matrix = self.matrix + counts.to(self.matrix.device)
    def compute(self):
        return (self.matrix.diagonal().sum() / self.matrix.sum()).numpy()

class Callback:
    def on_epoch_start(self, trainer):
        pass
    on_backward = on_epoch_end = on_epoch_start

class Histograms(Callback):
    def __init__(self, values="weight"):
        self.values, self.records = values, []
    def on_backward(self, trainer):
        for p in trainer.model.parameters():
            data = p.detach().cpu() if self.values == "weight" else p.grad.flatten()
            self.records.append(np.histogram(data, bins=4)[0])  # raises

class EpochMetrics(Callback):
    def __init__(self, metrics, fresh=False):
        self.metrics, self.fresh, self.results = metrics, fresh, []
    def on_epoch_start(self, trainer):
        for m in self.metrics:
            m.reset()
            if self.fresh:
                m.to(trainer.cfg.device)
    def on_backward(self, trainer):
        for m in self.metrics:
            m.update(trainer.output.detach(), trainer.target)
    def on_epoch_end(self, trainer):
        self.results.append([m.compute() for m in self.metrics])

class KeepBest(Callback):
    def __init__(self, by_data=False):
        self.by_data, self.best, self.weights = by_data, float("inf"), None
    def on_epoch_end(self, trainer):
        if trainer.loss < self.best:
            self.best, self.weights = trainer.loss, {k: v.cpu().clone() for k, v in trainer.model.state_dict().items()}
        if not self.by_data:
            trainer.model.load_state_dict(self.weights)
            return
        for name, p in trainer.model.named_parameters():
            p.data = self.weights[name]

class ElasticPenalty(Callback):
    def __init__(self, model, strength=1.0, on="cpu"):
        self.anchor = {k: p.detach().clone().to(on) for k, p in model.named_parameters()}
        self.fisher = {k: torch.ones_like(v) for k, v in self.anchor.items()}
        self.strength = torch.tensor(strength)
    def __call__(self, model):
        terms = [(self.fisher[k] * (p - self.anchor[k]) ** 2).sum() for k, p in model.named_parameters()]  # raises
        return self.strength * sum(terms)

class Classifier(nn.Module):
    def __init__(self, dim=6, classes=3):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(dim, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, classes)
    def forward(self, x):
        return self.head(self.body(x))  # raises

class Trainer:
    def __init__(self, model, cfg=None, loss=F.cross_entropy, callbacks=(), penalty=None, scaler=None, place=True):
        self.cfg, self.loss_fn, self.callbacks = cfg or TrainConfig(), loss, list(callbacks)
        self.model, self.penalty, self.scaler = model.to(self.cfg.device) if place else model, penalty, scaler
        self.optimizer = OPTIMIZERS[self.cfg.optimizer](self.model.parameters(), self.cfg.lr)
    def call(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)
    def batch(self, batch):
        return move(batch, self.cfg.device)
    def train_step(self, batch):
        x, self.target = self.batch(batch)
        self.output = self.model(x)
        loss = self.loss_fn(self.output, self.target)
        if self.penalty is not None:
            loss = loss + self.penalty(self.model)
        self.optimizer.zero_grad()
        (loss if self.scaler is None else self.scaler(loss)).backward()
        bad = self.scaler.unscale(self.optimizer.params) if self.scaler is not None else 0.0
        self.call("on_backward")
        if self.cfg.clip:
            clip_by_total_norm(self.optimizer.params, self.cfg.clip)
        if not bad:
            self.optimizer.step()
        return loss.item()
    def fit(self, data):
        for _ in range(self.cfg.epochs):
            self.call("on_epoch_start")
            self.loss = float(np.mean([self.train_step(b) for b in data]))
            self.call("on_epoch_end")
        return self.loss
    def save(self):
        stream = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, stream)
        return stream.getvalue()
    def load(self, raw, map_location=None, cast=False):
        saved = torch.load(io.BytesIO(raw), map_location=map_location)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"], cast)
        return self

class EarlyTrainer(Trainer):
    def __init__(self, model, cfg, **kwargs):
        super().__init__(model, cfg, place=False, **kwargs)
        self.model.to(self.cfg.device)

def data(n=2, size=4, classes=3):
    torch.manual_seed(0)
    return [(torch.randn(size, 6), torch.randint(0, classes, (size,))) for _ in range(n)]

def pipeline(devices=("cuda:0", "cuda:1"), **kwargs):
    return nn.Sequential(Stage(nn.Linear(6, 6), devices[0]), Stage(nn.Linear(6, 6), devices[1], **kwargs), nn.ReLU())

def case_fit_on_second_gpu():
    return Trainer(Classifier(), TrainConfig("cuda:1", epochs=2, clip=1.0), scaler=LossScaler()).fit(data())
def case_momentum_made_before_placing():
    return EarlyTrainer(Classifier(), TrainConfig()).fit(data())
def case_adam_made_before_placing():
    return EarlyTrainer(Classifier(), TrainConfig(optimizer="adam")).fit(data())
def case_lion_with_state_on_host():
    return EarlyTrainer(Classifier(), TrainConfig(optimizer="lion")).fit(data())
def case_resumed_adam():
    first = Trainer(Classifier(), TrainConfig(optimizer="adam"))
    first.fit(data())
    return Trainer(Classifier(), TrainConfig("cuda:2", optimizer="adam")).load(first.save(), "cpu", cast=True).fit(data())
def case_resumed_adam_from_another_gpu():
    first = Trainer(Classifier(), TrainConfig(optimizer="adam"))
    first.fit(data())
    second = Trainer(Classifier(), TrainConfig("cuda:2", optimizer="adam")).load(first.save())
    for state in second.optimizer.state.values():
        state["m"], state["v"] = state["m"].to("cuda:2"), state["v"]
    return second.fit(data())
def case_resumed_adam_same_gpu():
    first = Trainer(Classifier(), TrainConfig(optimizer="adam"))
    first.fit(data())
    return Trainer(Classifier(), first.cfg).load(first.save()).fit(data())
def case_lookahead():
    trainer = Trainer(Classifier())
    trainer.optimizer = Lookahead(trainer.optimizer)
    return trainer.fit(data(3))
def case_lookahead_not_reached():
    trainer = Trainer(Classifier())
    trainer.optimizer = Lookahead(trainer.optimizer, every=5)
    return trainer.fit(data(3))
def case_pipeline_scaled():
    cfg = TrainConfig("cuda:1")
    return Trainer(pipeline(), cfg, place=False, scaler=LossScaler()).fit(data())
def case_pipeline_scaled_one_flag():
    cfg = TrainConfig("cuda:1")
    return Trainer(pipeline(), cfg, place=False, scaler=LossScaler(per_device=False)).fit(data())
def case_pipeline_clipped():
    return Trainer(pipeline(), TrainConfig("cuda:1", clip=0.5), place=False).fit(data())
def case_pipeline_skip():
    return Trainer(pipeline(keep_skip=True), TrainConfig("cuda:1"), place=False).fit(data())
def case_pipeline_skip_on_one_gpu():
    model = pipeline(("cuda:3", "cuda:3"), keep_skip=True)
    loss = F.mse_loss(model(data()[0][0]), torch.zeros(4, 6).to("cuda:3"))
    loss.backward()
    return clip_adaptively(list(model.parameters()))
def case_tied_embedding():
    return TiedLM(7, 4, ["cuda:0", "cuda:1"])(torch.arange(5)).sum().backward()
def case_tied_embedding_not_followed():
    return TiedLM(7, 4, ["cuda:0", "cuda:1"], follow=False)(torch.arange(5))
def case_replicas():
    replicas = Replicas(Classifier(), ["cuda:0", "cuda:1"])
    for loss in replicas.losses(data(1, 8)[0], SmoothLoss(3)):
        loss.backward()
    return replicas.reduce()
def case_replicas_reduced_in_place():
    replicas = Replicas(Classifier(), ["cuda:0", "cuda:1"])
    for loss in replicas.losses(data(1, 8)[0], F.cross_entropy):
        loss.backward()
    return replicas.reduce(via_first=False)
def case_smooth_loss_weighted():
    return Trainer(Classifier(), loss=SmoothLoss(3, class_weight=torch.tensor([1.0, 2.0, 0.5]))).fit(data())
def case_metrics_without_device():
    return Trainer(Classifier(), callbacks=[EpochMetrics([Confusion(3), Accuracy()])]).fit(data())
def case_metrics_placed():
    callback = EpochMetrics([Accuracy()], fresh=True)
    Trainer(Classifier(), TrainConfig(epochs=2), callbacks=[callback]).fit(data())
    return callback.results
def case_histograms_and_confusion():
    return Trainer(Classifier(), callbacks=[Histograms(), EpochMetrics([Confusion(3)])]).fit(data())
def case_histograms_of_gradients():
    return Trainer(Classifier(), callbacks=[Histograms("grad")]).fit(data())
def case_best_weights_loaded():
    return Trainer(Classifier(), TrainConfig(epochs=3), callbacks=[KeepBest()]).fit(data())
def case_best_weights_assigned():
    return Trainer(Classifier(), TrainConfig(epochs=2), callbacks=[KeepBest(by_data=True)]).fit(data())
def case_elastic_penalty():
    model = Classifier().cuda()
    return Trainer(model, penalty=ElasticPenalty(model, on="cuda")).fit(data())
def case_elastic_penalty_on_host():
    model = Classifier().cuda()
    return Trainer(model, penalty=ElasticPenalty(model)).fit(data())
