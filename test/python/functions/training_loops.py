"""Training loops: schedules, accumulation, clipping, averaging of weights, checkpoints, early stopping."""
import contextlib
import copy
import io
import math
from collections import OrderedDict, defaultdict

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, TensorDataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Points(Dataset):
    def __init__(self, n=16, dim=6, classes=3, device=None):
        gen = torch.Generator().manual_seed(7)
        self.x = torch.randn(n, dim, generator=gen)
        self.y = torch.randint(0, classes, (n,), generator=gen)
        if device is not None:
            self.x, self.y = self.x.to(device), self.y.to(device)

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def _mlp(dim=6, hidden=8, out=3):
    return nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, out))


# ---------------------------------------------------------------- plain epochs


def case_epoch_with_cosine_schedule():
    net = _mlp().to(DEVICE)
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)
    criterion = nn.CrossEntropyLoss()
    seen = 0
    for epoch in range(2):
        total = 0.0
        for x, y in DataLoader(Points(), batch_size=4, shuffle=True):
            x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
            total += loss.detach()
            seen += len(x)
        sched.step()
    return total / seen, sched.get_last_lr()


def case_epoch_with_class_weights():
    data = Points()
    counts = torch.bincount(data.y, minlength=3).float()
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / counts.clamp(min=1))
    net = _mlp().to(DEVICE)
    opt = optim.Adam(net.parameters(), lr=1e-3)
    for x, y in DataLoader(data, batch_size=8):
        x, y = x.to(DEVICE), y.to(DEVICE)
        out = net(x)
        loss = criterion(out, y)  # raises
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def case_epoch_with_class_weights_in_module():
    data = Points()
    counts = torch.bincount(data.y, minlength=3).float()
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / counts.clamp(min=1)).to(DEVICE)
    net = _mlp().to(DEVICE)
    opt = optim.Adam(net.parameters(), lr=1e-3)
    for x, y in DataLoader(data, batch_size=8):
        out = net(x.to(DEVICE))
        loss = criterion(out, y.to(DEVICE))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


# ---------------------------------------------------------------- accumulation


class Accumulator:
    """Sums losses over micro batches and steps every `every` of them."""

    def __init__(self, optimizer, every=2):
        self.optimizer, self.every = optimizer, every
        self.count = 0
        self.running = torch.zeros(())

    def backward(self, loss):
        self.count += 1
        (loss / self.every).backward()
        self.running = self.running + loss.detach()
        if self.count % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


def case_accumulate_scalar_losses():
    net = _mlp().cuda()
    acc = Accumulator(optim.SGD(net.parameters(), lr=0.1))
    for x, y in DataLoader(Points(), batch_size=4):
        acc.backward(nn.functional.cross_entropy(net(x.cuda()), y.cuda()))
    return float(acc.running)


def case_accumulate_losses_per_class():
    net = _mlp().cuda()
    sums, hits = torch.zeros(3), torch.zeros(3)
    for x, y in DataLoader(Points(), batch_size=4):
        y = y.cuda()
        each = nn.functional.cross_entropy(net(x.cuda()), y, reduction="none")
        sums.index_add_(0, y, each.detach())  # raises
        hits.index_add_(0, y, torch.ones_like(each))
    return (sums / hits).tolist()


def case_accumulate_losses_per_class_on_host():
    net = _mlp().cuda()
    sums, hits = torch.zeros(3), torch.zeros(3)
    for x, y in DataLoader(Points(), batch_size=4):
        each = nn.functional.cross_entropy(net(x.cuda()), y.cuda(), reduction="none")
        sums.index_add_(0, y, each.detach().cpu())
        hits.index_add_(0, y, torch.ones_like(y, dtype=torch.float))
    return (sums / hits).tolist()


# ---------------------------------------------------------------- averaged weights


class Shadow:
    """Exponential average of a model's floating point state."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.state = OrderedDict((k, v.detach().clone()) for k, v in model.state_dict().items())

    @torch.no_grad()
    def update(self, model):
        for name, value in model.state_dict().items():
            if not value.dtype.is_floating_point:
                self.state[name] = value.clone()
                continue
            self.state[name].mul_(self.decay).add_(value, alpha=1 - self.decay)  # raises

    def to(self, device):
        self.state = OrderedDict((k, v.to(device)) for k, v in self.state.items())
        return self


def case_shadow_after_move():
    net = nn.Sequential(_mlp(), nn.BatchNorm1d(3)).to(DEVICE)
    shadow = Shadow(net)
    net(torch.randn(4, 6, device=DEVICE))
    shadow.update(net)
    net.load_state_dict(shadow.state)
    return net(torch.randn(4, 6, device=DEVICE)).mean().item()


def case_shadow_before_move():
    net = _mlp()
    shadow = Shadow(net)
    net.to(DEVICE)
    net(torch.randn(4, 6, device=DEVICE))
    shadow.update(net)
    return len(shadow.state)


def case_shadow_before_move_then_sent():
    net = _mlp()
    shadow = Shadow(net, decay=0.5)
    net.to(DEVICE)
    shadow.to(DEVICE).update(net)
    return sum(v.sum() for v in shadow.state.values()).item()


def case_averaged_model_of_library():
    net = _mlp().to(DEVICE)
    averaged = optim.swa_utils.AveragedModel(net)
    for x, y in DataLoader(Points(), batch_size=8):
        loss = nn.functional.cross_entropy(net(x.to(DEVICE)), y.to(DEVICE))
        loss.backward()
        averaged.update_parameters(net)
    return averaged(x.to(DEVICE)).argmax(-1).eq(y.to(DEVICE)).float().mean()


# ---------------------------------------------------------------- checkpoints


def _saved(obj):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return buffer


def case_resume_from_mapped_checkpoint():
    net = _mlp().to(DEVICE)
    opt = optim.Adam(net.parameters())
    net(torch.randn(4, 6, device=DEVICE)).sum().backward()
    opt.step()
    stored = torch.load(_saved({"model": net.state_dict(), "opt": opt.state_dict(), "epoch": 1}), map_location="cpu")
    fresh = _mlp()
    fresh.load_state_dict(stored["model"])
    fresh.to(DEVICE)
    again = optim.Adam(fresh.parameters())
    again.load_state_dict(stored["opt"])
    fresh(torch.randn(4, 6, device=DEVICE)).sum().backward()
    again.step()
    return stored["epoch"]


def case_resume_with_drift_penalty():
    net = _mlp().to(DEVICE)
    anchor = torch.load(_saved(net.state_dict()), map_location="cpu")
    x, y = (each.to(DEVICE) for each in Points()[:8])
    loss = nn.functional.cross_entropy(net(x), y)
    for name, p in net.named_parameters():
        loss = loss + 0.1 * (p - anchor[name]).pow(2).sum()  # raises
    loss.backward()
    return loss.item()


def case_resume_with_drift_penalty_mapped():
    net = _mlp().to(DEVICE)
    anchor = torch.load(_saved(net.state_dict()), map_location=DEVICE)
    x, y = (each.to(DEVICE) for each in Points()[:8])
    loss = nn.functional.cross_entropy(net(x), y)
    for name, p in net.named_parameters():
        loss = loss + 0.1 * (p - anchor[name]).pow(2).sum()
    loss.backward()
    return loss.item()


class Trainer:
    def __init__(self, model, device="cuda:0", patience=2):
        self.device = torch.device(device)
        self.model = model
        self.best, self.best_state = math.inf, None
        self.patience, self.bad = patience, 0
        self.history = defaultdict(list)

    def evaluate(self, loader):
        self.model.eval()
        losses = []
        with torch.no_grad():
            for x, y in loader:
                out = self.model(x.to(self.device))
                losses.append(nn.functional.cross_entropy(out, y.to(self.device), reduction="none"))
        return torch.cat(losses)

    def should_stop(self, value):
        self.history["val"].append(value)
        if value < self.best:
            self.best, self.bad = value, 0
            self.best_state = copy.deepcopy({k: v.cpu() for k, v in self.model.state_dict().items()})
        else:
            self.bad += 1
        return self.bad >= self.patience

    def restore(self):
        self.model.load_state_dict(self.best_state)
        return self.model

    def distance_from_best(self):
        moved = [(p.detach() - self.best_state[k]).norm() for k, p in self.model.named_parameters()]  # raises
        return torch.stack(moved).max()


def case_trainer_stops_early():
    trainer = Trainer(_mlp().to("cuda:0"))
    loader = DataLoader(Points(), batch_size=4)
    for _ in range(5):
        if trainer.should_stop(trainer.evaluate(loader).mean()):
            break
    restored = trainer.restore()
    return restored(torch.zeros(1, 6, device=trainer.device)).shape, min(trainer.history["val"]).item()


def case_trainer_distance_from_best():
    trainer = Trainer(_mlp().to("cuda:0"))
    trainer.should_stop(trainer.evaluate(DataLoader(Points(), batch_size=4)).mean().item())
    return trainer.distance_from_best()


def case_trainer_history_as_array():
    trainer = Trainer(_mlp().to("cuda:0"))
    for _ in range(3):
        losses = trainer.evaluate(DataLoader(Points(), batch_size=8))
        trainer.history["p90"].append(np.percentile(losses, 90))  # raises
    return trainer.history["p90"]


def case_trainer_history_as_numbers():
    trainer = Trainer(_mlp().to("cuda:0"))
    for _ in range(3):
        losses = trainer.evaluate(DataLoader(Points(), batch_size=8))
        trainer.history["p90"].append(np.percentile(losses.tolist(), 90))
    return np.mean(trainer.history["p90"])


# ---------------------------------------------------------------- scaling and clipping


class LossScale:
    """A scaler in the manner of mixed precision."""

    def __init__(self, start=2.0 ** 8, lazy=True, device="cpu"):
        self.start = start
        self._scale = None if lazy else torch.full((1,), start, device=device)

    def scale(self, loss):
        if self._scale is None:
            self._scale = torch.full((1,), self.start, device=loss.device)
        return loss * self._scale

    @torch.no_grad()
    def unscale(self, params):
        inverse = self._scale.reciprocal()
        for p in params:
            if p.grad is not None:
                p.grad.mul_(inverse)

    def step(self, optimizer, params):
        self.unscale(params)
        norm = nn.utils.clip_grad_norm_(params, 1.0)
        if torch.isfinite(norm):
            optimizer.step()
        else:
            self._scale.div_(2)
        return norm


def _scaled_step(scaler):
    net = _mlp().cuda()
    params = list(net.parameters())
    opt = optim.SGD(params, lr=0.1)
    x, y = next(iter(DataLoader(Points(), batch_size=8)))
    loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda()).unsqueeze(0)
    scaled = scaler.scale(loss) + torch.zeros(1, device=x.device).sum()
    scaled.sum().backward()
    return scaler.step(opt, params).item()


def case_scale_made_at_first_loss():
    return _scaled_step(LossScale())


def case_scale_made_where_told():
    return _scaled_step(LossScale(lazy=False, device=DEVICE))


def case_scale_limits_gradients():
    net = _mlp().cuda()
    scaler = LossScale(lazy=False)
    inverse = 1.0 / scaler._scale
    net(torch.randn(4, 6).cuda()).mean().backward()
    grads = [p.grad for p in net.parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    limit = inverse.expand_as(flat)
    clipped = torch.minimum(flat, limit)  # raises
    return clipped.norm().item()


def case_total_norm_over_two_devices():
    first, second = nn.Linear(6, 4).to("cuda:0"), nn.Linear(4, 2).to("cuda:1")
    second(first(torch.randn(3, 6, device="cuda:0")).to("cuda:1")).sum().backward()
    norms = [p.grad.norm() for p in [*first.parameters(), *second.parameters()]]
    return torch.stack(norms).norm()  # raises


def case_total_norm_over_two_devices_gathered():
    first, second = nn.Linear(6, 4).to("cuda:0"), nn.Linear(4, 2).to("cuda:1")
    second(first(torch.randn(3, 6, device="cuda:0")).to("cuda:1")).sum().backward()
    norms = [p.grad.norm() for p in [*first.parameters(), *second.parameters()]]
    target = norms[0].device
    return torch.stack([n.to(target) for n in norms]).norm().item()


@contextlib.contextmanager
def _swapped(model, state):
    backup = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    try:
        yield backup
    finally:
        model.load_state_dict(backup)


def case_swap_weights_for_validation():
    net = _mlp().to(DEVICE)
    shadow = Shadow(net)
    x = Points(4).x.to(DEVICE)
    with _swapped(net, shadow.state), torch.no_grad():
        inside = net(x)
    return (net(x) - inside).abs().max().item()


def case_swap_weights_and_compare():
    net = _mlp().to(DEVICE)
    shadow = Shadow(net)
    with _swapped(net, shadow.state) as backup:
        gaps = {k: torch.dist(v, backup[k]) for k, v in net.state_dict().items()}  # raises
    return max(gaps.values())


def case_warmup_as_tensor_table():
    net = _mlp().to(DEVICE)
    table = torch.linspace(0.1, 1.0, 4)
    opt = optim.SGD(net.parameters(), lr=1.0)
    sched = optim.lr_scheduler.LambdaLR(opt, lambda step: table[min(step, 3)].item())
    for x, y in DataLoader(Points(device=DEVICE), batch_size=8):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        for p in net.parameters():
            p.grad.mul_(table[sched.last_epoch])
        opt.step()
        sched.step()
    return opt.param_groups[0]["lr"]


def case_curriculum_weights_by_sample():
    data = Points()
    difficulty = torch.rand(len(data))
    net = _mlp().to(DEVICE)
    loader = DataLoader(TensorDataset(torch.arange(len(data)), data.x, data.y), batch_size=4)
    for index, x, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        each = nn.functional.cross_entropy(net(x), y, reduction="none")
        loss = (each * difficulty[index]).mean()  # raises
        loss.backward()
    return loss.item()


def case_curriculum_updates_difficulty():
    data = Points()
    difficulty = torch.zeros(len(data))
    net = _mlp().to(DEVICE)
    loader = DataLoader(TensorDataset(torch.arange(len(data)), data.x, data.y), batch_size=4)
    for index, x, y in loader:
        each = nn.functional.cross_entropy(net(x.to(DEVICE)), y.to(DEVICE), reduction="none")
        weight = difficulty[index].to(each)
        (each * weight).mean().backward()
        difficulty[index] = each.detach().cpu()
    return difficulty.max().item()


def case_confusion_over_epoch():
    net = _mlp().to(DEVICE)
    matrix = torch.zeros(3, 3, dtype=torch.long)
    for x, y in DataLoader(Points(), batch_size=8):
        guess = net(x.to(DEVICE)).argmax(1)
        flat = y * 3 + guess  # raises
        matrix += torch.bincount(flat, minlength=9).view(3, 3)
    return matrix


def case_confusion_over_epoch_on_host():
    net = _mlp().to(DEVICE)
    matrix = torch.zeros(3, 3, dtype=torch.long)
    for x, y in DataLoader(Points(), batch_size=8):
        guess = net(x.to(DEVICE)).argmax(1).cpu()
        matrix += torch.bincount(y * 3 + guess, minlength=9).view(3, 3)
    return matrix.diag().sum().item() / matrix.sum().item()
