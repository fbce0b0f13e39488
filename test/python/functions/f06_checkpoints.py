import copy
import io
import os
import tempfile
from contextlib import contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU())
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        return self.head(self.body(x))


class EMA:
    """yolo-style moving average of a model's state."""

    def __init__(self, model, decay=0.9, device=None):
        self.ema = copy.deepcopy(model).eval()
        if device is not None:
            self.ema.to(device)
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        msd = model.state_dict()
        for k, v in self.ema.state_dict().items():
            if v.dtype.is_floating_point:
                v *= self.decay
                v += (1 - self.decay) * msd[k].detach()


class ShadowEMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.data.clone() for n, p in model.named_parameters() if p.requires_grad}
        self.backup = {}

    def update(self, model):
        for name, param in model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                new = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]  # raises
                self.shadow[name] = new.clone()

    def apply(self, model):
        for name, param in model.named_parameters():
            if name in self.shadow:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self, model):
        for name, param in model.named_parameters():
            if name in self.backup:
                param.data = self.backup.pop(name)


def _step(model, optimizer, device):
    x, y = torch.randn(4, 6, device=device), torch.randint(0, 2, (4,), device=device)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def ema_after_the_move():
    device = torch.device("cuda", 0)
    model = Model().to(device)
    ema = EMA(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        _step(model, opt, device)
        ema.update(model)
    return ema.ema(torch.randn(2, 6, device=device))


def shadow_before_the_move():
    model = Model()
    ema = ShadowEMA(model)
    model.cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    _step(model, opt, "cuda")
    ema.update(model)
    ema.apply(model)
    ema.restore(model)


def resume_with_map_location():
    device = torch.device("cuda:1")
    path = os.path.join(tempfile.mkdtemp(), "last.pt")
    model = Model().to(device)
    opt = torch.optim.AdamW(model.parameters())
    _step(model, opt, device)
    torch.save({"model": model.state_dict(), "optimizer": opt.state_dict(), "epoch": 3}, path)

    model2 = Model().to("cuda:0")
    opt2 = torch.optim.AdamW(model2.parameters())
    ckpt = torch.load(path, map_location="cpu")
    model2.load_state_dict(ckpt["model"])
    opt2.load_state_dict(ckpt["optimizer"])
    return _step(model2, opt2, "cuda:0"), ckpt["epoch"] + 1


def resume_momentum_by_hand():
    device = torch.device("cuda:0")
    model = nn.Linear(6, 2).to(device)
    path = os.path.join(tempfile.mkdtemp(), "momentum.pt")
    torch.save([torch.zeros(p.shape) for p in model.parameters()], path)
    velocity = torch.load(path)
    x, y = torch.randn(4, 6, device=device), torch.randint(0, 2, (4,), device=device)
    F.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for p, v in zip(model.parameters(), velocity):
            v.mul_(0.9).add_(p.grad)  # raises
            p.sub_(v, alpha=0.1)


def _load_weights(path, device):
    return torch.load(path)


def _load_on(path, device):
    return torch.load(path, map_location=lambda storage, loc: storage.cuda(torch.device(device).index))


def features_from_a_checkpoint():
    path = os.path.join(tempfile.mkdtemp(), "bank.pth")
    torch.save({"bank": torch.randn(10, 6, device="cuda:0")}, path)
    device = "cuda:1"
    bank = _load_weights(path, device)["bank"]
    query = torch.randn(2, 6, device=device)
    return (F.normalize(query, dim=1) @ F.normalize(bank, dim=1).t()).topk(3)  # raises


def features_from_a_checkpoint_on_a_device():
    path = os.path.join(tempfile.mkdtemp(), "bank.pth")
    torch.save({"bank": torch.randn(10, 6, device="cuda:0")}, path)
    device = "cuda:1"
    bank = _load_on(path, device)["bank"]
    query = torch.randn(2, 6, device=device)
    return (F.normalize(query, dim=1) @ F.normalize(bank, dim=1).t()).topk(3)


def average_checkpoints():
    files = []
    for i in range(3):
        buf = io.BytesIO()
        torch.save(Model().to(f"cuda:{i}").state_dict(), buf)
        buf.seek(0)
        files.append(buf)
    params = {}
    for f in files:
        state = torch.load(f)
        for k, v in state.items():
            if k not in params:
                params[k] = v.clone()
            else:
                params[k] += v  # raises
    return {k: v / len(files) for k, v in params.items() if v.is_floating_point()}


def average_checkpoints_on_cpu():
    files = []
    for i in range(3):
        buf = io.BytesIO()
        torch.save(Model().to(f"cuda:{i}").state_dict(), buf)
        buf.seek(0)
        files.append(buf)
    params = {}
    for f in files:
        state = torch.load(f, map_location=torch.device("cpu"))
        for k, v in state.items():
            if k not in params:
                params[k] = v.clone()
            else:
                params[k] += v
    averaged = {k: v / len(files) if v.is_floating_point() else v // len(files) for k, v in params.items()}
    model = Model().cuda()
    model.load_state_dict(averaged)
    return model(torch.randn(2, 6).cuda())


class SWAAverager:
    def __init__(self, params):
        self.params = list(params)
        self.avg = [p.detach().cpu().clone() for p in self.params]
        self.n = 0

    def collect(self):
        self.n += 1
        for a, p in zip(self.avg, self.params):
            a += (p.detach().to(a.device) - a) / self.n

    def copy_to(self):
        for a, p in zip(self.avg, self.params):
            p.data.copy_(a)

    def distance(self):
        return sum((a - p.detach()).norm() for a, p in zip(self.avg, self.params))  # raises


def swa_on_the_cpu():
    model = Model().to("cuda")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    swa = SWAAverager(model.parameters())
    for _ in range(2):
        _step(model, opt, "cuda")
        swa.collect()
    swa.copy_to()
    return _step(model, opt, "cuda")


def swa_distance():
    model = Model().to("cuda")
    swa = SWAAverager(model.parameters())
    swa.collect()
    return swa.distance()


@contextmanager
def _offloaded(model):
    model.to("cpu")
    try:
        yield model
    finally:
        model.to("cuda")


def offload_between_steps():
    model = Model().to("cuda")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    _step(model, opt, "cuda")
    with _offloaded(model) as m:
        total = sum(p.abs().sum().item() for p in m.parameters())
    return total, _step(model, opt, "cuda")


class ManualAdam:
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999)):
        self.params = list(params)
        self.lr, self.betas = lr, betas
        self.exp_avg = [torch.zeros_like(p.data) for p in self.params]
        self.exp_avg_sq = [torch.zeros_like(p.data) for p in self.params]
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, m, v in zip(self.params, self.exp_avg, self.exp_avg_sq):
            if p.grad is None:
                continue
            m.mul_(b1).add_(p.grad, alpha=1 - b1)  # raises
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            denom = (v / (1 - b2**self.t)).sqrt_().add_(1e-8)
            p.addcdiv_(m / (1 - b1**self.t), denom, value=-self.lr)


def eager_optimizer_state_before_cuda():
    model = Model()
    opt = ManualAdam(model.parameters())
    model = model.cuda()
    loss = F.cross_entropy(model(torch.randn(4, 6).cuda()), torch.randint(0, 2, (4,)).cuda())
    loss.backward()
    opt.step()
