"""Teacher-student training utilities."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class KDLoss(nn.Module):
    def __init__(self, T=4.0, class_weights=None):
        super().__init__()
        self.T, self.class_weights = T, class_weights

    def forward(self, s, t):
        p, q = F.log_softmax(s / self.T, dim=1), F.softmax(t / self.T, dim=1)
        if self.class_weights is None:
            return F.kl_div(p, q, reduction="batchmean") * self.T ** 2
        w = torch.tensor(self.class_weights)
        return (F.kl_div(p, q, reduction="none") * w).sum(1).mean()  # raises


class RelationalLoss(nn.Module):
    @staticmethod
    def pdist(x):
        d = torch.cdist(x, x)
        off = ~torch.eye(len(x), dtype=torch.bool)
        return d / d[off].mean()

    def forward(self, s, t):
        return F.smooth_l1_loss(self.pdist(s), self.pdist(t))


class AngularLoss(RelationalLoss):
    def forward(self, s, t):
        a, b = (F.normalize(x) @ F.normalize(x).t() for x in (s, t))
        diag = torch.eye(len(s), dtype=torch.bool)
        return ((a - b) ** 2).masked_fill(diag, 0.0).mean()  # raises


class FeatureMimic(nn.Module):
    def __init__(self, s_dims, t_dims):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(t) for t in t_dims])
        self.proj = [nn.Linear(s, t) if s != t else nn.Identity() for s, t in zip(s_dims, t_dims)]

    def forward(self, s_feats, t_feats):
        loss = 0.0
        for proj, norm, s, t in zip(self.proj, self.norms, s_feats, t_feats):
            loss = loss + F.mse_loss(norm(proj(s)), norm(t))  # raises
        return loss


class FeatureTap:
    def __init__(self, model, names, offload=False):
        self.store, self.offload = {}, offload
        self.handles = [model.get_submodule(n).register_forward_hook(self._hook(n)) for n in names]

    def _hook(self, name):
        def fn(module, inputs, output):
            self.store[name] = output.detach().cpu() if self.offload else output
        return fn

    def close(self):
        for h in self.handles:
            h.remove()

    def matching_loss(self, other):
        return sum(F.mse_loss(self.store[k], other.store[k]) for k in self.store)  # raises


class ShadowEMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(self.decay).add_(p, alpha=1 - self.decay)  # raises

    def copy_to(self, model):
        for n, p in model.named_parameters():
            p.data.copy_(self.shadow[n])


class DinoCenter(nn.Module):
    def __init__(self, dim, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("center", torch.zeros(1, dim))

    def resume(self, path):
        self.center = torch.load(path, map_location="cpu")["center"]

    def resume_into(self, path):
        self.load_state_dict(torch.load(path, map_location="cpu"))

    def forward(self, t):
        out = F.softmax((t - self.center) / 0.04, dim=-1)  # raises
        self.center = self.center * self.momentum + t.mean(0, keepdim=True) * (1 - self.momentum)
        return out


def mixup(x, y, alpha=0.4):
    lam, index = np.random.beta(alpha, alpha), torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index], y, y[index], lam


def mixup_elementwise(x, alpha=0.4):
    lam = torch.from_numpy(np.random.beta(alpha, alpha, size=len(x))).to(dtype=x.dtype).view(-1, 1)
    return lam * x + (1 - lam) * x.flip(0)  # raises


class Trainer:
    def __init__(self, student, teacher_fn, ckpt=None, device="cuda", ema=False):
        self.device = torch.device(device)
        self.student = student
        self.teacher = self.load_teacher(teacher_fn, ckpt) if ckpt else copy.deepcopy(teacher_fn())
        self.ema = ShadowEMA(self.student) if ema else None
        self.student.to(self.device)
        self.kd = KDLoss()
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.1, momentum=0.9)

    def load_teacher(self, fn, path):
        teacher = fn()
        teacher.load_state_dict(torch.load(path, map_location="cpu"))
        return teacher.eval().to(self.device)

    def fit(self, loader, distill=True):
        for x, y in loader:
            x = x.to(self.device, non_blocking=True)
            loss = self.kd(self.student(x), self.soft_targets(x)) if distill else self.hard_loss(x, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if self.ema is not None:
                self.ema.update(self.student)

    @torch.no_grad()
    def soft_targets(self, x):
        return self.teacher(x)  # raises

    def hard_loss(self, x, y):
        y.to(self.device, non_blocking=True)
        return F.cross_entropy(self.student(x), y)  # raises

    @torch.no_grad()
    def evaluate(self, loader):
        pred = torch.cat([self.student(x.to(self.device)).argmax(1).cpu() for x, _ in loader])
        return (pred.numpy() == torch.cat([y for _, y in loader]).numpy()).mean()
