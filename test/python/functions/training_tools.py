import copy
import io
import os
import tempfile
from collections import defaultdict, deque
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch import nn, optim
from torch.cuda.amp import GradScaler, autocast
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_data(n=12, d=6, k=3):
    return TensorDataset(torch.randn(n, d), torch.randint(0, k, (n,)))


def mlp(d=6, k=3):
    return nn.Sequential(nn.Linear(d, 8), nn.ReLU(), nn.Linear(8, k))


class ModelEMA:
    def __init__(self, model, decay=0.99):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.module.parameters(), model.parameters()):
            e.mul_(self.decay).add_(p, alpha=1 - self.decay)  # raises


def case_ema_made_before_cuda():
    model = mlp()
    ema = ModelEMA(model)
    model = model.cuda()
    x, y = make_data(4).tensors
    F.cross_entropy(model(x.cuda()), y.cuda()).backward()
    ema.update(model)
    return ema


def case_ema_made_after_cuda():
    model = mlp().cuda()
    ema = ModelEMA(model, decay=0.5)
    ema.update(model)
    return ema.module(torch.randn(2, 6, device="cuda"))


class HostEMA:
    """Shadow weights on the host, so that they cost no GPU memory."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}

    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].lerp_(v.detach().to(self.shadow[k].device), 1 - self.decay)

    @contextmanager
    def swapped(self, model):
        backup = {k: v.clone() for k, v in model.state_dict().items()}
        model.load_state_dict(self.shadow)
        yield model
        model.load_state_dict(backup)


def case_ema_on_host_swapped_in():
    model = mlp().to("cuda")
    ema = HostEMA(model)
    ema.update(model)
    x = torch.randn(3, 6, device="cuda")
    before = model(x)
    with ema.swapped(model) as m:
        return m(x) - before


def case_resume_optimizer_and_model():
    device = torch.device("cuda:0")
    model = mlp().to(device)
    opt = optim.AdamW(model.parameters(), 1e-3)
    x, y = (t.to(device) for t in make_data(4).tensors)
    F.cross_entropy(model(x), y).backward()
    opt.step()
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "last.pt"
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state()}, path)
        ckpt = torch.load(path, map_location="cpu")
    other = mlp().to(device)
    other.load_state_dict(ckpt["model"])
    opt2 = optim.AdamW(other.parameters(), 1e-3)
    opt2.load_state_dict(ckpt["opt"])
    torch.set_rng_state(ckpt["rng"])
    F.cross_entropy(other(x), y).backward()
    opt2.step()
    return other


def case_resume_running_statistics():
    device = torch.device("cuda:0")
    model = mlp().to(device)
    stats = {"mean": torch.zeros(6, device=device), "count": 0}
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "stats": stats}, buffer)
    buffer.seek(0)
    ckpt = torch.load(buffer, map_location=torch.device("cpu"))
    model.load_state_dict(ckpt["model"])
    stats = ckpt["stats"]
    for x, _ in DataLoader(make_data(8), batch_size=4):
        x = x.to(device)
        stats["count"] += len(x)
        stats["mean"] += (x.mean(0) - stats["mean"]) / stats["count"]  # raises
        model(x - stats["mean"])
    return stats


class SoupAverager(object):
    def __init__(self):
        self.total, self.n = None, 0

    def add(self, state):
        if self.total is None:
            self.total = {k: torch.zeros_like(v) for k, v in state.items()}
        for k in state:
            self.total[k] += state[k]
        self.n += 1

    def result(self):
        return {k: v / self.n for k, v in self.total.items()}


def case_model_soup_loaded_on_two_devices():
    soup = SoupAverager()
    for i in range(2):
        m = mlp().cuda(0)
        state = {k: v.cpu() for k, v in m.state_dict().items()}
        soup.add(state)
    final = mlp().cuda(1)
    final.load_state_dict(soup.result())
    return final(torch.ones(1, 6, device="cuda:1"))


class EarlyStopping:
    def __init__(self, patience=2, mode="min"):
        self.patience, self.wait = patience, 0
        self.op = torch.lt if mode == "min" else torch.gt
        self.best = torch.tensor(float("inf") if mode == "min" else -float("inf"))

    def __call__(self, metric):
        if self.op(metric, self.best):
            self.best, self.wait = metric, 0
        else:
            self.wait += 1
        return self.wait > self.patience


def case_early_stopping_scalar_metric():
    stopper = EarlyStopping()
    model = mlp().cuda()
    for x, y in DataLoader(make_data(), batch_size=4):
        with torch.no_grad():
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
        if stopper(loss):
            break
    return stopper.best


def case_best_per_class_tracker():
    best = torch.full((3,), float("inf"))
    model = mlp().cuda()
    for x, y in DataLoader(make_data(), batch_size=6):
        y = y.cuda()
        per = F.cross_entropy(model(x.cuda()), y, reduction="none")
        classwise = torch.stack([per[y == c].sum() for c in range(3)])
        best = torch.minimum(best, classwise)  # raises
    return best


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(AverageMeter)

    def update(self, **kw):
        for k, v in kw.items():
            if isinstance(v, torch.Tensor):
                v = v.detach()
            self.meters[k].update(v)

    def __getattr__(self, item):
        if item in self.__dict__.get("meters", {}):
            return self.meters[item]
        raise AttributeError(item)


def case_metric_logger_accumulates():
    log = MetricLogger()
    model = mlp().cuda()
    for x, y in DataLoader(make_data(), batch_size=4):
        out = model(x.cuda())
        log.update(loss=F.cross_entropy(out, y.to(out.device)), acc=(out.argmax(-1).cpu() == y).float().mean())
    return float(log.loss.avg), float(log.acc.avg)


def case_amp_gradient_accumulation():
    device = "cuda"
    model, scaler = mlp().to(device), GradScaler(enabled=False)
    opt = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    sched = optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=10)
    running = torch.zeros(1, device=device)
    for step, (x, y) in enumerate(DataLoader(make_data(), batch_size=3)):
        x, y = x.to(device), y.to(device)
        with autocast(enabled=False):
            loss = F.cross_entropy(model(x), y) / 2
        scaler.scale(loss).backward()
        running += loss.detach()
        if (step + 1) % 2 == 0:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            sched.step()
    return running.item()


def case_class_weights_from_dataset():
    device = torch.device("cuda")
    data = make_data(12)
    counts = torch.bincount(data.tensors[1], minlength=3).float() + 1
    weights = counts.sum() / counts
    criterion = nn.CrossEntropyLoss(weight=weights)
    model = mlp().to(device)
    for x, y in DataLoader(data, batch_size=6):
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)  # raises
        loss.backward()
    return loss


class Trainer:
    def __init__(self, model, criterion, device, lr=0.1, callbacks=()):
        self.device = device
        self.model = model
        self.criterion = criterion
        self.optimizer = optim.Adam(self.model.parameters(), lr=lr)
        self.callbacks = list(callbacks)
        self.model.to(self.device)
        self.step_no = 0

    def fire(self, event, **kw):
        for cb in self.callbacks:
            getattr(cb, event, lambda *a, **k: None)(self, **kw)

    def _prepare(self, batch):
        return [t.to(self.device) for t in batch]

    def training_step(self, batch):
        x, y = self._prepare(batch)
        out = self.model(x)
        loss = self.criterion(out, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.fire("on_step_end", out=out, target=y, loss=loss)
        self.step_no += 1
        return loss

    def fit(self, loader, epochs=1):
        for _ in range(epochs):
            self.fire("on_epoch_start")
            for batch in loader:
                self.training_step(batch)
            self.fire("on_epoch_end")
        return self


class ConfusionCallback:
    def __init__(self, k):
        self.matrix = torch.zeros(k * k, dtype=torch.long)
        self.k = k

    def on_step_end(self, trainer, out, target, loss):
        idx = target * self.k + out.argmax(-1)
        self.matrix += torch.bincount(idx, minlength=self.k ** 2)  # raises


class ConfidenceCallback:
    def __init__(self):
        self.history = []

    def on_epoch_start(self, trainer):
        self.history.append(torch.zeros(1))

    def on_step_end(self, trainer, out, target, loss):
        self.history[-1] += out.softmax(-1).max(-1).values.mean().item()


def case_trainer_optimizer_before_move():
    cb = ConfidenceCallback()
    t = Trainer(mlp(), nn.CrossEntropyLoss(), torch.device("cuda:1"), callbacks=[cb])
    t.fit(DataLoader(make_data(), batch_size=5), epochs=2)
    return torch.cat(cb.history).numpy()


def case_trainer_confusion_callback():
    t = Trainer(mlp(), F.cross_entropy, torch.device("cuda:1"), callbacks=[ConfidenceCallback(), ConfusionCallback(3)])
    return t.fit(DataLoader(make_data(), batch_size=5))


class FocalLoss(nn.Module):
    def __init__(self, alpha, gamma=2.0):
        super().__init__()
        self.gamma = gamma
        self.alpha = torch.tensor(alpha)

    def forward(self, logits, target):
        ce = F.cross_entropy(logits, target, reduction="none")
        pt = torch.exp(-ce)
        at = self.alpha.to(target.device).gather(0, target)
        return (at * (1 - pt) ** self.gamma * ce).mean()


class LabelSmoothing(nn.Module):
    def __init__(self, classes, eps=0.1):
        super().__init__()
        self.confidence, self.eps, self.classes = 1 - eps, eps, classes

    def forward(self, logits, target):
        dist = torch.full((target.size(0), self.classes), self.eps / (self.classes - 1))
        dist.scatter_(1, target.unsqueeze(1), self.confidence)  # raises
        return -(dist * logits.log_softmax(-1)).sum(-1).mean()


def case_trainer_focal_loss():
    trainer = Trainer(mlp(), FocalLoss([0.2, 0.3, 0.5]), "cuda")
    return trainer.fit(DataLoader(make_data(), batch_size=4))


def case_trainer_label_smoothing():
    trainer = Trainer(mlp(), LabelSmoothing(3), "cuda")
    return trainer.fit(DataLoader(make_data(), batch_size=4))


def distill(student, teacher, loader, device, T=2.0):
    opt = optim.SGD(student.parameters(), lr=0.1)
    cache = {}
    for i, (x, y) in enumerate(loader):
        if i not in cache:
            with torch.no_grad():
                cache[i] = teacher(x.to(device)).cpu()
        logits = student(x.to(device))
        soft = F.kl_div((logits / T).log_softmax(-1), (cache[i] / T).softmax(-1), reduction="batchmean")  # raises
        loss = F.cross_entropy(logits, y.to(device)) + soft * T * T
        opt.zero_grad()
        loss.backward()
        opt.step()


def case_distillation_cached_logits():
    device = torch.device("cuda")
    return distill(mlp().to(device), mlp().to(device), DataLoader(make_data(8), batch_size=4), device)


class Prefetcher:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __iter__(self):
        pending = None
        for batch in self.loader:
            moved = tuple(t.to(self.device, non_blocking=True) for t in batch)
            if pending is not None:
                yield pending
            pending = moved
        if pending is not None:
            yield pending

    def __len__(self):
        return len(self.loader)


def case_prefetcher_yields_moved():
    model = mlp().cuda(2)
    total = 0
    for x, y in Prefetcher(DataLoader(make_data(), batch_size=4), torch.device("cuda:2")):
        total += F.cross_entropy(model(x), y).item()
    return total


def case_prefetcher_then_plain_validation():
    train, valid = random_split(make_data(), [8, 4])
    model = mlp().cuda(2)
    for x, y in Prefetcher(DataLoader(train, batch_size=4), "cuda:2"):
        F.cross_entropy(model(x), y).backward()
    with torch.inference_mode():
        for x, y in DataLoader(valid, batch_size=4):
            out = model(x)  # raises
            print(F.cross_entropy(out, y))
