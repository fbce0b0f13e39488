import copy
import math
from dataclasses import dataclass
from typing import Dict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Beta

@dataclass
class SSLConfig:
    classes: int = 4
    width: int = 6
    feat: int = 5
    queue: int = 8
    momentum: float = 0.9
    device: str = "cuda:0"

class Registry(dict):
    def register(self, name):
        def add(obj):
            self[name] = obj
            return obj
        return add

    def build(self, name, *args, **kw):
        return self[name](*args, **kw)

LOSSES = Registry()

def encoder(cfg, out=None):
    return nn.Sequential(nn.Linear(cfg.width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, out or cfg.feat))

class Views:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def __call__(self, x, n=2):
        return [x + torch.as_tensor(self.rng.normal(0, 0.1, x.shape), dtype=x.dtype).to(x.device) for _ in range(n)]

class EMA:
    def __init__(self, student, momentum, total=4):
        self.student, self.base, self.total, self.steps = student, momentum, total, 0

    def momentum(self):
        self.steps += 1
        return 1 - (1 - self.base) * (math.cos(math.pi * self.steps / self.total) + 1) / 2

    def update(self):
        m = torch.tensor(self.momentum())
        with torch.no_grad():
            self.blend(m)

class ModuleEMA(EMA):
    def __init__(self, student, *args, **kw):
        super().__init__(student, *args, **kw)
        self.teacher = copy.deepcopy(student).requires_grad_(False)

    def blend(self, m):
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(m).add_(s * (1 - m))
        for t, s in zip(self.teacher.buffers(), self.student.buffers()):
            t.copy_(s)

class ShadowEMA(EMA):
    def __init__(self, student, *args, **kw):
        super().__init__(student, *args, **kw)
        self.shadow = {k: v.clone() for k, v in student.state_dict().items() if v.is_floating_point()}

    def blend(self, m):
        state = self.student.state_dict()
        for k, v in self.shadow.items():
            v.mul_(m).add_(state[k] * (1 - m))  # raises

    def __enter__(self):
        self.kept = {k: v.cpu() for k, v in self.student.state_dict().items()}
        self.student.load_state_dict(self.shadow, strict=False)
        return self.student

    def __exit__(self, *exc):
        self.student.load_state_dict(self.kept)

class KeyQueue(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.size = cfg.queue
        self.register_buffer("keys", F.normalize(torch.randn(cfg.queue, cfg.feat), dim=1))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    def push(self, keys):
        start = int(self.pointer)
        slots = torch.arange(start, start + len(keys)) % self.size
        self.keys[slots] = keys.detach()
        self.pointer[0] = (start + len(keys)) % self.size

    def negatives(self, q):
        return q @ self.keys.t()  # raises

    def resume(self, state, strict_buffers=True):
        if strict_buffers:
            return self.load_state_dict(state)
        self.keys, self.pointer = state["keys"], state["pointer"]

class MoCo:
    def __init__(self, cfg, state=None, **resume):
        self.student = encoder(cfg).to(cfg.device)
        self.ema, self.queue = ModuleEMA(self.student, cfg.momentum), KeyQueue(cfg).to(cfg.device)
        if state is not None:
            self.queue.resume(state, **resume)

    def step(self, x, views):
        a, b = views(x)
        q = F.normalize(self.student(a), dim=1)
        with torch.no_grad():
            k = F.normalize(self.ema.teacher(b), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), self.queue.negatives(q)], 1) / 0.2
        F.cross_entropy(logits, torch.zeros(len(x)).to(logits.device, torch.long)).backward()
        self.ema.update()
        self.queue.push(k)

class PairLoss:
    def __init__(self, temperature=0.5):
        self.temperature = torch.tensor(temperature)
        self.masks: Dict[int, torch.Tensor] = {}

    def mask(self, n):
        if n not in self.masks:
            self.masks[n] = torch.eye(n, dtype=torch.bool)
        return self.masks[n]

    def similarities(self, a, b):
        z = F.normalize(torch.cat([a, b]), dim=1)
        return z @ z.t() / self.temperature

@LOSSES.register("ntxent")
class NTXent(PairLoss):
    def __call__(self, a, b):
        sim = self.similarities(a, b).masked_fill(self.mask(2 * len(a)), -1e4)  # raises
        return F.cross_entropy(sim, torch.arange(2 * len(a), device=a.device).roll(len(a)))

@LOSSES.register("uniform")
class Uniformity(PairLoss):
    def __call__(self, a, b):
        sim = self.similarities(a, b)
        return sim[~self.mask(len(sim))].exp().mean().log() - sim.diagonal(len(a)).mean()

@LOSSES.register("vicreg")
class VICReg:
    def off_diagonal(self, c):
        return c.flatten()[:-1].view(len(c) - 1, len(c) + 1)[:, 1:].flatten()

    def __call__(self, a, b):
        loss = F.mse_loss(a, b)
        for z in (a, b):
            z = z - z.mean(0)
            loss = loss + F.relu(1 - z.std(0)).mean() + self.off_diagonal(z.t() @ z / len(z)).pow(2).mean()
        return loss

class Centered:
    def __init__(self, dim, momentum=0.9, lazy=True):
        self.center = None if lazy else torch.zeros(1, dim)
        self.momentum = momentum

    def targets(self, teacher):
        if self.center is None:
            self.center = teacher.new_zeros(1, teacher.shape[1])
        probs = ((teacher - self.center) / 0.04).softmax(-1)  # raises
        self.center = self.center * self.momentum + teacher.mean(0, keepdim=True) * (1 - self.momentum)
        return probs

    def __call__(self, student, teacher):
        return -(self.targets(teacher.detach()) * (student / 0.1).log_softmax(-1)).sum(-1).mean()

class Prototypes(nn.Module):
    def __init__(self, cfg, marginals="like"):
        super().__init__()
        self.head, self.marginals = nn.Linear(cfg.feat, cfg.classes, bias=False), marginals

    @torch.no_grad()
    def assign(self, scores, rounds=2):
        q = torch.exp(scores / 0.5).t()
        q /= q.sum()
        rows = q.new_full((q.shape[0],), 1 / q.shape[0])
        cols = torch.full((q.shape[1],), 1 / q.shape[1]) if self.marginals == "full" else q.new_full(q.shape[1:], 0.25)
        for _ in range(rounds):
            q *= (rows / q.sum(1))[:, None]
            q *= (cols / q.sum(0))[None]  # raises
        return (q / q.sum(0, keepdim=True)).t()

    def forward(self, a, b):
        sa, sb = self.head(F.normalize(a, dim=1)), self.head(F.normalize(b, dim=1))
        return -(self.assign(sa) * sb.log_softmax(1) + self.assign(sb) * sa.log_softmax(1)).sum(1).mean()

class TemporalEnsemble:
    def __init__(self, n, cfg, alpha=0.6, host_probs=True):
        self.store, self.seen = torch.zeros(n, cfg.classes), torch.zeros(n)
        self.alpha, self.host_probs = alpha, host_probs

    def update(self, index, probs):
        probs = probs.detach().cpu() if self.host_probs else probs.detach()
        self.store[index] = self.alpha * self.store[index] + (1 - self.alpha) * probs  # raises
        self.seen[index] += 1
        return self.store[index] / (1 - self.alpha ** self.seen[index])[:, None]

class Thresholds:
    def __init__(self, cfg, top=0.5):
        self.cfg, self.top = cfg, top

    def mask(self, confidence, pseudo):
        return (confidence >= self.top).float()

class CurriculumThresholds(Thresholds):
    def __init__(self, cfg, top=0.5):
        super().__init__(cfg, top)
        self.status = torch.zeros(cfg.classes)

    def mask(self, confidence, pseudo):
        counts = torch.bincount(pseudo.cpu(), minlength=self.cfg.classes).float()
        self.status = 0.5 * self.status + 0.5 * counts / counts.max()
        return (confidence >= self.top * self.status[pseudo]).float()  # raises

class ScalarThresholds(Thresholds):
    level = torch.tensor(0.2)

    def mask(self, confidence, pseudo):
        self.level = self.level * 0.9 + confidence.mean() * 0.1
        return (confidence >= self.level).float()

class FixMatch:
    def __init__(self, cfg, thresholds=Thresholds):
        self.cfg, self.thresholds = cfg, thresholds(cfg)
        self.model = encoder(cfg, cfg.classes).to(cfg.device)

    def step(self, labeled, target, unlabeled, views):
        weak, strong = views(unlabeled.to(self.cfg.device))
        n = len(labeled)
        logits = self.model(torch.cat([labeled.to(self.cfg.device), weak, strong]))
        weak_logits, strong_logits = logits[n:].chunk(2)
        confidence, pseudo = weak_logits.detach().softmax(1).max(1)
        mask = self.thresholds.mask(confidence, pseudo)
        unsup = F.cross_entropy(strong_logits, pseudo, reduction="none") * mask
        (F.cross_entropy(logits[:n], target.to(self.cfg.device)) + unsup.mean()).backward()
        return pseudo

def merged_targets(target, pseudo, classes, follow=True):
    both = torch.cat([target.to(pseudo.device) if follow else target, pseudo])  # raises
    return F.one_hot(both, classes).float()

def mixup(x, y, per_sample, alpha=0.75):
    beta = Beta(torch.tensor(alpha), torch.tensor(alpha))
    lam = beta.sample((len(x), 1)) if per_sample else beta.sample()
    lam = torch.max(lam, 1 - lam)
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], lam * y + (1 - lam) * y[perm]  # raises

class PatchMasker:
    def __init__(self, ratio=0.5, seed=0):
        self.ratio = ratio
        self.generator = torch.Generator().manual_seed(seed)

    def indices(self, x):
        order = torch.rand(x.shape[:2], generator=self.generator).argsort(1)
        return order[:, : int(x.shape[1] * (1 - self.ratio))]

    def gathered(self, x):
        keep = self.indices(x)
        return x.gather(1, keep[..., None].expand(-1, -1, x.shape[2]))  # raises

    def picked(self, x):
        keep = self.indices(x)
        return x[torch.arange(len(x))[:, None], keep]

def cluster(features, k, rounds=2):
    centroids = features[torch.randperm(len(features))[:k]]
    for _ in range(rounds):
        assign = torch.cdist(features, centroids).argmin(1)
        sums = torch.zeros_like(centroids).index_add_(0, assign, features)
        centroids = sums / torch.bincount(assign, minlength=k).clamp(min=1)[:, None]
    return assign, centroids

def cluster_purity(assign, labels, k):
    table = torch.eye(k)[assign].t() @ F.one_hot(labels, k).float()  # raises
    return float(table.max(1).values.sum() / len(labels))

def start(n=6, **kw):
    cfg = SSLConfig(**kw)
    torch.manual_seed(0)
    return cfg, torch.randn(n, cfg.width), torch.arange(n) % cfg.classes

def case_moco():
    cfg, x, _ = start()
    moco, views = MoCo(cfg), Views()
    for _ in range(2):
        moco.step(x.to(cfg.device), views)

def case_moco_resumed():
    cfg, x, _ = start(device="cuda:1")
    MoCo(cfg, KeyQueue(cfg).state_dict()).step(x.to(cfg.device), Views())

def case_moco_resumed_loosely():
    cfg, x, _ = start(device="cuda:1")
    MoCo(cfg, KeyQueue(cfg).state_dict(), strict_buffers=False).step(x.to(cfg.device), Views())

def shadowed(before):
    cfg, x, _ = start()
    student = encoder(cfg)
    ema = ShadowEMA(student, cfg.momentum) if before else None
    student.to(cfg.device)
    ema = ema or ShadowEMA(student, cfg.momentum)
    ema.update()
    with ema as model:
        return model(x.to(cfg.device)).mean().item()

def case_shadow_before_move():
    shadowed(before=True)

def case_shadow_after_move():
    shadowed(before=False)

def pair_loss(name):
    cfg, x, _ = start()
    model = encoder(cfg).to(cfg.device)
    LOSSES.build(name)(*map(model, Views()(x.to(cfg.device)))).backward()

def case_ntxent():
    pair_loss("ntxent")

def case_uniformity():
    pair_loss("uniform")

def case_vicreg():
    pair_loss("vicreg")

def distilled(lazy):
    cfg, x, _ = start()
    ema = ModuleEMA(encoder(cfg).to(cfg.device), cfg.momentum)
    a, b = Views()(x.to(cfg.device))
    Centered(cfg.feat, lazy=lazy)(ema.student(a), ema.teacher(b)).backward()

def case_center_lazy():
    distilled(lazy=True)

def case_center_eager():
    distilled(lazy=False)

def case_prototypes():
    cfg, x, _ = start()
    Prototypes(cfg).to(cfg.device)(*map(encoder(cfg).to(cfg.device), Views()(x.to(cfg.device)))).backward()

def case_prototypes_full_marginals():
    cfg, x, _ = start()
    Prototypes(cfg, "full").to(cfg.device)(*map(encoder(cfg).to(cfg.device), Views()(x.to(cfg.device))))

def ensembled(**kw):
    cfg, x, _ = start()
    ensemble = TemporalEnsemble(10, cfg, **kw)
    probs = encoder(cfg, cfg.classes).to(cfg.device)(x.to(cfg.device)).softmax(1)
    F.mse_loss(probs, ensemble.update(torch.arange(6) + 2, probs).to(cfg.device)).backward()

def case_ensemble_on_host():
    ensembled()

def case_ensemble_mixed():
    ensembled(host_probs=False)

def matched(**kw):
    cfg, x, y = start()
    return y, FixMatch(cfg, **kw).step(x, y, torch.randn(6, cfg.width), Views())

def case_fixmatch():
    y, pseudo = matched(thresholds=ScalarThresholds)
    x = torch.randn(12, 3).to(pseudo.device)
    mixup(x, merged_targets(y, pseudo, 4), per_sample=False)

def case_fixmatch_curriculum():
    matched(thresholds=CurriculumThresholds)

def case_targets_merged_as_loaded():
    y, pseudo = matched()
    merged_targets(y, pseudo, 4, follow=False)

def case_mixup_per_sample():
    y, pseudo = matched()
    mixup(torch.randn(6, 3, device="cuda"), F.one_hot(pseudo, 4).float(), per_sample=True)

def case_patches_gathered():
    PatchMasker().gathered(torch.randn(2, 6, 3, device="cuda:2"))

def case_patches_picked():
    PatchMasker().picked(torch.randn(2, 6, 3, device="cuda:2"))

def case_clusters():
    _, x, y = start(n=10)
    return cluster_purity(cluster(x.cuda(), 4)[0].cpu(), y, 4)

def case_clusters_scored_on_device():
    _, x, y = start(n=10)
    cluster_purity(cluster(x.cuda(), 4)[0], y.cuda(), 4)
