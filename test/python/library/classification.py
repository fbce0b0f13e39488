"""Training and evaluation utilities for image classification."""
import copy
from collections import defaultdict

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

_OPTIMIZERS = {
    "sgd": lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9, nesterov=True),
    "adamw": lambda params, lr: torch.optim.AdamW(params, lr=lr),
    "adagrad": lambda params, lr: torch.optim.Adagrad(params, lr=lr),
}


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum = self.sum + val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def accuracy(output, target, topk=(1,)):
    maxk = min(max(topk), output.size(1))
    _, pred = output.topk(maxk, 1, True, True)
    correct = pred.t().eq(target.reshape(1, -1).expand_as(pred.t()))
    return [correct[:min(k, maxk)].reshape(-1).float().sum(0) * 100.0 / target.size(0) for k in topk]


def one_hot(x, num_classes, on_value=1.0, off_value=0.0):
    return torch.full((x.size(0), num_classes), off_value).scatter_(1, x.view(-1, 1), on_value)  # raises


class Mixup:
    def __init__(self, mixup_alpha=0.8, label_smoothing=0.1, num_classes=10):
        self.mixup_alpha, self.label_smoothing, self.num_classes = mixup_alpha, label_smoothing, num_classes

    def mix(self, x):
        lam = float(np.random.beta(self.mixup_alpha, self.mixup_alpha))
        perm = torch.randperm(x.size(0))
        return x * lam + x[perm] * (1.0 - lam), perm, lam

    def pairwise_loss(self, criterion, logits, target, perm, lam):
        return lam * criterion(logits, target) + (1.0 - lam) * criterion(logits, target[perm])

    def __call__(self, x, target):
        x, perm, lam = self.mix(x)
        off = self.label_smoothing / self.num_classes
        y1 = one_hot(target, self.num_classes, 1.0 - self.label_smoothing + off, off)
        return x, y1 * lam + y1[perm] * (1.0 - lam)


class GpuNormalize:
    def __init__(self, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        self.mean = torch.tensor([m * 255 for m in mean]).view(1, 3, 1, 1)
        self.std = torch.tensor([s * 255 for s in std]).view(1, 3, 1, 1)

    def denormalize(self, images):
        mean, std = self.mean.to(images), self.std.to(images)
        return images.mul(std).add_(mean).clamp_(0, 255)

    def __call__(self, images):
        return images.float().sub_(self.mean).div_(self.std)  # raises


class FocalLoss(nn.Module):
    def __init__(self, alpha, gamma=2.0):
        super().__init__()
        self.register_buffer("alpha", torch.as_tensor(alpha, dtype=torch.float32))
        self.gamma = gamma

    def forward(self, logits, target):
        logp = F.log_softmax(logits, dim=-1).gather(1, target[:, None]).squeeze(1)
        return -(self.alpha[target] * (1 - logp.exp()) ** self.gamma * logp).mean()


class ClassBalancedLoss(nn.Module):
    def __init__(self, samples_per_class, beta=0.999):
        super().__init__()
        weights = (1.0 - beta) / (1.0 - np.power(beta, np.asarray(samples_per_class, dtype=np.float32)))
        self.weights = torch.from_numpy(weights / weights.sum() * len(weights)).float()

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.weights)  # raises


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.999, device=None):
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.module.parameters(), model.parameters()):
            ema_p.mul_(self.decay).add_(p.detach(), alpha=1.0 - self.decay)  # raises
        for ema_b, b in zip(self.module.buffers(), model.buffers()):
            ema_b.copy_(b)


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = None

    @torch.no_grad()
    def update(self, target, pred):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64, device=target.device)
        keep = (target >= 0) & (target < n)
        self.mat += torch.bincount(n * target[keep] + pred[keep], minlength=n ** 2).reshape(n, n)

    def recalls(self):
        return (torch.diag(self.mat) / self.mat.sum(1).clamp(min=1)).tolist()


def expected_calibration_error(logits, target, n_bins=15):
    boundaries = torch.linspace(0, 1, n_bins + 1)
    conf, pred = logits.softmax(-1).max(-1)
    ece = logits.new_zeros(())
    for lower, upper in zip(boundaries[:-1], boundaries[1:]):
        in_bin = conf.gt(lower) & conf.le(upper)
        if in_bin.any():
            gap = (pred[in_bin].eq(target[in_bin]).float().mean() - conf[in_bin].mean()).abs()
            ece += gap * in_bin.float().mean()
    return ece.item()


def reliability_histogram(logits, n_bins=15):
    conf = logits.softmax(-1).amax(-1)
    bins = torch.bucketize(conf, torch.linspace(0, 1, n_bins + 1)[1:-1])  # raises
    return torch.bincount(bins, minlength=n_bins)


@torch.no_grad()
def predict(model, loader):
    model.eval()
    device = next(model.parameters()).device
    logits, labels = [], []
    for images, target in loader:
        logits.append(model(images.to(device, non_blocking=True)).cpu())
        labels.append(target)
    return torch.cat(logits), torch.cat(labels).cpu()


@torch.no_grad()
def export_scores(model, loader):
    model.eval()
    device = next(model.parameters()).device
    scores = [model(images.to(device)).softmax(dim=-1) for images, _ in loader]
    return np.concatenate(scores, axis=0)  # raises


class TemperatureScaling(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.temperature = nn.Parameter(torch.ones(1) * 1.5)

    def forward(self, images):
        return self.model(images) / self.temperature

    def calibrate(self, loader, max_iter=20):
        logits, labels = predict(self.model, loader)
        optimizer = torch.optim.LBFGS([self.temperature], lr=0.01, max_iter=max_iter)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(logits / self.temperature, labels)  # raises
            loss.backward()
            return loss

        optimizer.step(closure)
        return self.temperature.item()


class KnnEvaluator:
    def __init__(self, backbone, k=5, temperature=0.07):
        self.backbone, self.k, self.t = backbone, k, temperature

    @torch.no_grad()
    def fit(self, loader, targets):
        device = next(self.backbone.parameters()).device
        self.bank = torch.cat([F.normalize(self.backbone(x.to(device)), dim=1) for x, _ in loader]).t().contiguous()
        self.labels = torch.tensor(targets)
        return self

    @torch.no_grad()
    def neighbours(self, images):
        return (F.normalize(self.backbone(images), dim=1) @ self.bank).topk(self.k, dim=-1)

    def predict(self, images, num_classes):
        weight, indices = self.neighbours(images)
        votes = torch.gather(self.labels.expand(images.size(0), -1), dim=-1, index=indices)  # raises
        weight = (weight / self.t).exp()
        return torch.zeros(len(images), num_classes, device=weight.device).scatter_add_(1, votes, weight).argmax(1)


class Trainer:
    def __init__(self, model, device="cuda:0", opt="sgd", lr=0.1, clip_grad=None):
        self.optimizer = _OPTIMIZERS[opt](model.parameters(), lr)
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.clip_grad = clip_grad
        self.history = defaultdict(list)

    def step(self, images, target, criterion=F.cross_entropy):
        loss = criterion(self.model(images), target)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.clip_grad:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_grad)
        self.optimizer.step()  # raises
        return loss.detach()

    def train_one_epoch(self, loader):
        self.model.train()
        losses = AverageMeter()
        for images, target in loader:
            images, target = images.to(self.device), target.to(self.device)
            losses.update(self.step(images, target), images.size(0))
        self.history["loss"].append(float(losses.avg))
        return self.history["loss"][-1]

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        correct = 0
        for images, target in loader:
            output = self.model(images.to(self.device))
            loss = F.cross_entropy(output, target.to(self.device))
            self.history["val_loss"].append(loss.item())
            correct += output.argmax(dim=1).eq(target).sum().item()  # raises
        return correct / len(loader.dataset)


def reduce_metrics(loss, hits, n):
    loss = loss.detach().clone()
    dist.all_reduce(loss)
    totals = torch.tensor([hits, n])
    dist.all_reduce(totals)  # raises
    return loss.item() / dist.get_world_size(), (totals[0] / totals[1]).item()


def resume(trainer, path):
    state = torch.load(path, map_location="cpu")
    trainer.model.load_state_dict(state["model"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    return state.get("epoch", 0)
