"""Saving, loading, averaging and copying of models and optimizers."""
import contextlib
import copy
import io
import os
import pathlib
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, update_bn

DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def _net(width=8):
    return nn.Sequential(OrderedDict(
        encoder=nn.Linear(4, width),
        norm=nn.BatchNorm1d(width),
        act=nn.GELU(),
        head=nn.Linear(width, 2),
    ))


def _data(device, n=16):
    x = torch.randn(n, 4)
    return x.to(device), (x.sum(1) > 0).long().to(device)


def _fit(model, optimizer, device, steps=2):
    x, y = _data(device)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # raises
    return loss.item()


@contextlib.contextmanager
def _folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def _roundtrip(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream)
    stream.seek(0)
    return torch.load(stream, **options)


def case_resume_built_on_device():
    model = _net().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    _fit(model, optimizer, DEVICE)
    with _folder() as folder:
        path = folder / "last.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, path)
        saved = torch.load(path, map_location="cpu")
    model = _net().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert _fit(model, optimizer, DEVICE) > 0


def case_resume_moved_afterwards():
    model = _net().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    _fit(model, optimizer, DEVICE)
    saved = _roundtrip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    model.to(DEVICE)
    _fit(model, optimizer, DEVICE)


def case_resume_moved_stateless():
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    saved = _roundtrip([each.state_dict() for each in (model, optimizer, scheduler)])
    for each, state in zip((model, optimizer, scheduler), saved):
        each.load_state_dict(state)
    model.cuda(DEVICE)
    _fit(model, optimizer, DEVICE)
    scheduler.step()


class Shadow:
    """Exponential moving average of the parameters by name."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.values = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}
        self.kept = {}

    def update(self, model):
        for name, p in model.named_parameters():
            if name in self.values:
                self.values[name].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)  # raises

    @contextlib.contextmanager
    def applied(self, model):
        self.kept = {name: p.detach().clone() for name, p in model.named_parameters()}
        for name, p in model.named_parameters():
            p.data.copy_(self.values[name])
        try:
            yield model
        finally:
            for name, p in model.named_parameters():
                p.data.copy_(self.kept[name])


@dataclass
class Trainer:
    model: nn.Module
    device: torch.device = DEVICE
    lr: float = 0.01
    shadow: Shadow = None
    history: list = field(default_factory=list)

    def __post_init__(self):
        self.model = self.model.to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.lr)

    def run(self, steps):
        x, y = _data(self.device)
        for _ in range(steps):
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.history.append(loss.detach())
            if self.shadow is not None:
                self.shadow.update(self.model)
        return torch.stack(self.history).mean().item()


def case_shadow_of_trainer():
    trainer = Trainer(_net())
    trainer.shadow = Shadow(trainer.model)
    trainer.run(3)
    with trainer.shadow.applied(trainer.model) as model:
        model.eval()
        assert model(_data(DEVICE)[0]).shape == (16, 2)


def case_shadow_given():
    model = _net()
    trainer = Trainer(model, shadow=Shadow(model, decay=0.99))
    print(trainer.run(3))


def case_shadow_saved_on_host():
    trainer = Trainer(_net())
    trainer.shadow = Shadow(trainer.model)
    trainer.run(2)
    values = _roundtrip(trainer.shadow.values, map_location=lambda storage, location: storage)
    for name, value in trainer.shadow.values.items():
        value.copy_(values[name])
    trainer.run(1)
    with trainer.shadow.applied(trainer.model):
        trainer.model.eval()(_data(DEVICE)[0])


class Prototypes(nn.Module):
    def __init__(self, classes=2, width=8):
        super().__init__()
        self.encoder = nn.Linear(4, width)
        self.register_buffer("centres", torch.zeros(classes, width))

    def forward(self, x):
        return -torch.cdist(self.encoder(x), self.centres)  # raises

    @torch.no_grad()
    def fit(self, x, y):
        features = self.encoder(x)
        for c in range(len(self.centres)):
            self.centres[c] = features[y == c].mean(0)
        return self


def case_prototypes_state():
    model = Prototypes().to(DEVICE).fit(*_data(DEVICE))
    state = _roundtrip(model.state_dict(), map_location="cpu")
    fresh = Prototypes().to(DEVICE)
    missing, unexpected = fresh.load_state_dict(state, strict=False)
    assert not missing and not unexpected
    fresh(_data(DEVICE)[0]).softmax(-1)


def case_prototypes_buffer_replaced():
    model = Prototypes().to(DEVICE).fit(*_data(DEVICE))
    state = _roundtrip(model.state_dict(), map_location=torch.device("cpu"))
    fresh = Prototypes().to(DEVICE)
    fresh.encoder.load_state_dict({k.split(".", 1)[1]: v for k, v in state.items() if k.startswith("encoder.")})
    fresh.centres = state["centres"]
    fresh(_data(DEVICE)[0]).argmax(-1)


def case_soup_of_checkpoints():
    base = _net().to(DEVICE)
    optimizer = torch.optim.SGD(base.parameters(), lr=0.1)
    with _folder() as folder:
        for number in range(2):
            _fit(base, optimizer, DEVICE, steps=1)
            torch.save(base.state_dict(), folder / f"step{number}.pth")
        states = [torch.load(file, map_location="cpu") for file in sorted(folder.glob("*.pth"))]
    states.append(base.state_dict())
    soup = OrderedDict()
    for key in states[0]:
        soup[key] = sum(state[key].float() for state in states) / len(states)  # raises
    base.load_state_dict(soup)


def case_best_state_kept():
    model = _net().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    best, best_loss = None, float("inf")
    for _ in range(3):
        loss = _fit(model, optimizer, DEVICE, steps=1)
        if loss < best_loss:
            best_loss, best = loss, {k: v.cpu().clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best)
    drift = sum((v.cpu() - best[k]).abs().sum() for k, v in model.state_dict().items())
    assert drift.item() == 0


def case_checkpoint_of_other_gpu():
    elsewhere = torch.device("cuda:2")
    teacher = _net().to(elsewhere)
    state = _roundtrip(teacher.state_dict())
    student = _net().to(DEVICE)
    student.load_state_dict(state)
    x, y = _data(DEVICE)
    assert F.cross_entropy(student(x), y).device == DEVICE


def case_linear_probe():
    teacher = _net().to("cuda:2")
    state = _roundtrip(teacher.state_dict())
    x, y = _data(DEVICE)
    features = F.linear(x, state["encoder.weight"], state["encoder.bias"])  # raises
    print(features.mean(), y.float().mean())


def case_pickled_module():
    with _folder() as folder:
        file = os.path.join(folder, "model.pt")
        torch.save(_net().to("cuda:3").eval(), file)
        model = torch.load(file, map_location={"cuda:3": "cuda:0"})
    x, _ = _data(DEVICE)
    assert all(p.device == DEVICE for p in model.parameters())
    model(x)


def case_averaged_model():
    model = _net()
    averaged = AveragedModel(model)
    model.to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        _fit(model, optimizer, DEVICE, steps=1)
        averaged.update_parameters(model)
    x, y = _data(DEVICE)
    averaged.eval()
    print(F.cross_entropy(averaged(x), y))  # raises


def case_averaged_model_updated():
    model = _net().to(DEVICE)
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        _fit(model, optimizer, DEVICE, steps=1)
        averaged.update_parameters(model)
    update_bn([_data("cpu") for _ in range(2)], averaged, device=DEVICE)
    teacher = copy.deepcopy(averaged.module).requires_grad_(False)
    x, y = _data(DEVICE)
    F.mse_loss(model(x), teacher(x)).backward()


class HeavyBall(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, beta=0.9, lookahead=0):
        super().__init__(params, dict(lr=lr, beta=beta, lookahead=lookahead))
        for group in self.param_groups:
            if group["lookahead"]:
                for p in group["params"]:
                    self.state[p]["slow"] = torch.empty(p.shape).copy_(p.detach())

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                velocity = state.setdefault("velocity", torch.zeros_like(p))
                velocity.mul_(group["beta"]).add_(p.grad)
                p.add_(velocity, alpha=-group["lr"])
                if "slow" in state:
                    state["slow"].lerp_(p, 0.5)  # raises
                    p.copy_(state["slow"])
        return loss


def case_custom_optimizer():
    model = _net().to(DEVICE)
    _fit(model, HeavyBall(model.parameters()), DEVICE, steps=3)


def case_custom_optimizer_lookahead():
    model = _net().to(DEVICE)
    optimizer = HeavyBall([
        {"params": model.encoder.parameters(), "lookahead": 1},
        {"params": [p for module in (model.norm, model.head) for p in module.parameters()]},
    ])
    x, y = _data(DEVICE)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
