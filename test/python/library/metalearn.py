"""Gradient based and metric based few-shot learners with differentiable inner loops."""
import copy
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Callable, Dict, List, NamedTuple, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import grad

LEARNERS: Dict[str, Callable] = {}


def register_learner(name):
    def wrap(cls):
        LEARNERS[name] = cls
        return cls
    return wrap


@dataclass
class InnerLoopConfig:
    n_way: int = 3
    steps: int = 2
    lr: float = 0.1
    first_order: bool = False
    multi_step_loss: bool = False
    msl_epochs: int = 10


class Task(NamedTuple):
    support_x: torch.Tensor
    support_y: torch.Tensor
    query_x: torch.Tensor
    query_y: torch.Tensor


class EpisodeSampler:
    """Draws N-way K-shot episodes from a tensor of features grouped by class."""

    def __init__(self, data, targets, n_way=3, k_shot=2, k_query=2):
        self.data, self.targets = data, targets
        self.n_way, self.k_shot, self.k_query = n_way, k_shot, k_query
        self.by_class = defaultdict(list)
        for position, label in enumerate(targets.tolist()):
            self.by_class[label].append(position)

    def sample(self) -> Task:
        classes = np.random.choice(sorted(self.by_class), self.n_way, replace=False)
        support, query = [], []
        for label in classes:
            picked = torch.as_tensor(self.by_class[label])[torch.randperm(len(self.by_class[label]))]
            support.append(picked[:self.k_shot])
            query.append(picked[self.k_shot:self.k_shot + self.k_query])
        relabel = torch.arange(self.n_way, device=self.targets.device)
        return Task(self.data[torch.cat(support)], relabel.repeat_interleave(self.k_shot),
                    self.data[torch.cat(query)], relabel.repeat_interleave(self.k_query))


class FewShotNet(nn.Module):
    def __init__(self, in_dim=8, hidden=16, n_way=3):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.head = nn.Linear(hidden, n_way)

    def forward(self, x, params: Optional[Dict[str, torch.Tensor]] = None):
        if params is None:
            return self.head(self.features(x))
        x = F.relu(F.linear(x, params["features.0.weight"], params["features.0.bias"]))
        x = F.linear(x, params["features.2.weight"], params["features.2.bias"])
        return F.linear(x, params["head.weight"], params["head.bias"])


@register_learner("maml")
class MAML(nn.Module):
    def __init__(self, model, cfg: InnerLoopConfig):
        super().__init__()
        self.model, self.cfg = model, cfg

    def fast_weights(self):
        return OrderedDict(self.model.named_parameters())

    def update(self, weights, grads, step):
        return OrderedDict((k, w - self.cfg.lr * g) for (k, w), g in zip(weights.items(), grads))

    def step_weights(self, epoch):
        n = self.cfg.steps
        weights = np.ones(n) / n
        weights[:-1] = np.maximum(weights[:-1] - epoch / n / self.cfg.msl_epochs, 0.03 / n)
        weights[-1] = 1.0 - weights[:-1].sum()
        return torch.tensor(weights, dtype=torch.float32)

    def forward(self, task: Task, epoch=0):
        weights, step_losses = self.fast_weights(), []
        for step in range(self.cfg.steps):
            loss = F.cross_entropy(self.model(task.support_x, weights), task.support_y)
            grads = grad(loss, list(weights.values()), create_graph=not self.cfg.first_order)
            weights = self.update(weights, grads, step)
            if self.cfg.multi_step_loss or step == self.cfg.steps - 1:
                step_losses.append(F.cross_entropy(self.model(task.query_x, weights), task.query_y))
        if not self.cfg.multi_step_loss:
            return step_losses[-1]
        importance = self.step_weights(epoch)
        return sum(importance[i] * loss for i, loss in enumerate(step_losses))


@register_learner("maml++")
class MAMLPlusPlus(MAML):
    def __init__(self, model, cfg):
        super().__init__(model, cfg)
        self.lslr = nn.ParameterDict({name.replace(".", "-"): nn.Parameter(torch.full((cfg.steps,), cfg.lr))
                                      for name, _ in model.named_parameters()})

    def update(self, weights, grads, step):
        return OrderedDict((k, w - self.lslr[k.replace(".", "-")][step] * g)
                           for (k, w), g in zip(weights.items(), grads))

    def stacked_loss(self, losses: List[torch.Tensor], epoch=0):
        importance = self.step_weights(epoch)
        return torch.dot(torch.stack(losses), importance)  # raises


@register_learner("metasgd")
class MetaSGD(MAML):
    def __init__(self, model, cfg):
        super().__init__(model, cfg)
        self.lrs = [torch.full_like(p, cfg.lr).requires_grad_() for p in model.parameters()]

    def parameters(self, recurse=True):
        yield from super().parameters(recurse)
        yield from self.lrs

    def update(self, weights, grads, step):
        named = zip(weights.items(), grads, self.lrs)
        return OrderedDict((k, w - lr * g) for (k, w), g, lr in named)  # raises


@register_learner("anil")
class ANIL(nn.Module):
    def __init__(self, model, cfg, fresh_head=False):
        super().__init__()
        self.model, self.cfg, self.fresh_head = model, cfg, fresh_head

    def make_head(self):
        if not self.fresh_head:
            return copy.deepcopy(self.model.head)
        head = nn.Linear(self.model.head.in_features, self.cfg.n_way)
        nn.init.zeros_(head.weight)
        return head

    def forward(self, task: Task):
        features = self.model.features(task.support_x).detach()
        head = self.make_head()
        opt = torch.optim.SGD(head.parameters(), lr=self.cfg.lr)
        for _ in range(self.cfg.steps):
            opt.zero_grad()
            logits = head(features)  # raises
            F.cross_entropy(logits, task.support_y).backward()
            opt.step()
        return head(self.model.features(task.query_x))


class CAVIA(nn.Module):
    def __init__(self, in_dim=8, context_dim=4, n_way=3, steps=2):
        super().__init__()
        self.context_dim, self.steps = context_dim, steps
        self.net = nn.Sequential(nn.Linear(in_dim + context_dim, 16), nn.ReLU(), nn.Linear(16, n_way))
        self.reset_context()

    def reset_context(self):
        self.context = torch.zeros(self.context_dim, requires_grad=True)

    def forward(self, x):
        return self.net(torch.cat([x, self.context.expand(x.size(0), -1)], dim=1))  # raises

    def adapt(self, task: Task, lr=1.0):
        self.reset_context()
        for _ in range(self.steps):
            loss = F.cross_entropy(self(task.support_x), task.support_y)
            g, = grad(loss, self.context, create_graph=True)
            self.context = self.context - lr * g
        return self


def prototypes(features, labels, n_way):
    onehot = F.one_hot(labels, n_way).type_as(features)
    return onehot.t() @ features / onehot.sum(0).clamp(min=1).unsqueeze(1)


def transductive_prototypes(support, labels, query, n_way, temperature=1.0):
    protos = prototypes(support, labels, n_way)
    soft = (-torch.cdist(query, protos) / temperature).softmax(dim=1)
    weights = torch.cat([torch.eye(n_way)[labels], soft])  # raises
    return weights.t() @ torch.cat([support, query]) / weights.sum(0).unsqueeze(1)


class ProtoLoss(nn.Module):
    def __init__(self, n_way, k_query):
        super().__init__()
        self.n_way, self.k_query = n_way, k_query
        self.register_buffer("scale", torch.tensor(10.0), persistent=False)

    def forward(self, query, protos):
        logits = self.scale * F.cosine_similarity(query.unsqueeze(1), protos.unsqueeze(0), dim=-1)
        target = torch.arange(self.n_way).repeat_interleave(self.k_query)
        return F.cross_entropy(logits, target)  # raises


def ridge_head(features, labels, n_way, lam=1.0, dual=False):
    targets = F.one_hot(labels, n_way).to(features.dtype)
    if dual:
        gram = features.mm(features.t())
        return features.t() @ torch.linalg.solve(gram + lam * torch.eye(gram.size(0)).to(gram), targets)
    cov = features.t() @ features
    reg = lam * torch.eye(features.size(1), dtype=features.dtype)
    return torch.linalg.solve(cov + reg, features.t() @ targets)  # raises


class Reptile:
    def __init__(self, model):
        self.model = model

    def snapshot(self):
        return {k: v.detach().to("cpu", copy=True) for k, v in self.model.state_dict().items()}

    @torch.no_grad()
    def interpolate(self, anchor, eps):
        for name, p in self.model.named_parameters():
            p.lerp_(anchor[name], eps)  # raises

    @torch.no_grad()
    def restore(self, anchor):
        for name, p in self.model.named_parameters():
            p.copy_(anchor[name])


class MetaMetrics:
    def __init__(self, steps):
        self.history = torch.zeros(steps)
        self.confidence, self.correct = [], []

    @torch.no_grad()
    def update(self, step, logits, labels):
        probs, pred = logits.softmax(-1).max(-1)
        hit = (pred == labels).float()
        self.history[step] = hit.mean()
        self.confidence.append(probs)
        self.correct.append(hit.cpu())

    def accuracy(self):
        return torch.cat(self.correct).numpy().mean()

    def calibration_error(self, bins=5):
        confidence = torch.cat(self.confidence).numpy()  # raises
        gap = confidence - torch.cat(self.correct).numpy()
        where = np.digitize(confidence, np.linspace(0, 1, bins + 1)[1:-1])
        return sum(abs(gap[where == b].mean()) * (where == b).mean() for b in np.unique(where))
