"""Forecasting models: scalers, windows, decomposition, probabilistic heads, trainer with callbacks and checkpoints."""
import abc
import io
import itertools
import os
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Optional

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_device(index: Optional[int] = None) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda" if index is None else f"cuda:{index}")


def synthetic(n=40, channels=2):
    t = np.arange(n, dtype=np.float32)
    return np.stack([np.sin(t / (3 + c)) for c in range(channels)], axis=1)


def windows(series: torch.Tensor, context: int, horizon: int):
    x = series.unfold(0, context + horizon, 1).transpose(1, 2)
    return x[:, :context].contiguous(), x[:, context:].contiguous()


# ------------------------------------------------------------------ scalers


class Scaler(abc.ABC):
    fitted = False

    @abc.abstractmethod
    def _fit(self, x): ...

    def fit(self, x):
        self._fit(x)
        self.fitted = True
        return self

    def transform(self, x):
        return (x - self.loc) / self.scale

    def inverse(self, x):
        return x * self.scale + self.loc  # raises


class StandardScaler(Scaler):
    def _fit(self, x):
        self.loc = x.mean(dim=0)
        self.scale = x.std(dim=0) + 1e-5


class GlobalScaler(Scaler):
    """One number for the whole panel."""

    def _fit(self, x):
        self.loc = x.mean()
        self.scale = x.std() + 1e-5


class DeviceScaler(StandardScaler):
    def transform(self, x):
        self._sync(x)
        return super().transform(x)

    def inverse(self, x):
        self._sync(x)
        return super().inverse(x)

    def _sync(self, x):
        for name in ("loc", "scale"):
            setattr(self, name, getattr(self, name).to(x.device))


# ------------------------------------------------------------------ models


class MovingAverage(nn.Module):
    def __init__(self, kernel=3, channels=2):
        super().__init__()
        self.kernel = kernel
        self.weight = torch.full((channels, 1, kernel), 1.0 / kernel)

    def forward(self, x):
        w = self.weight.type_as(x)
        pad = self.kernel // 2
        return F.conv1d(F.pad(x.transpose(1, 2), (pad, pad), mode="replicate"), w, groups=x.size(-1)).transpose(1, 2)


class MovingAverageV0(MovingAverage):
    def forward(self, x):
        padded = F.pad(x.transpose(1, 2), (self.kernel // 2,) * 2, mode="replicate")
        smooth = F.conv1d(padded, self.weight, groups=x.size(-1))  # raises
        return smooth.transpose(1, 2)


class DLinear(nn.Module):
    def __init__(self, context=8, horizon=4, decomposition=MovingAverage):
        super().__init__()
        self.avg = decomposition()
        self.trend = nn.Linear(context, horizon)
        self.season = nn.Linear(context, horizon)

    def forward(self, x):
        t = self.avg(x)
        s = x - t
        return (self.trend(t.transpose(1, 2)) + self.season(s.transpose(1, 2))).transpose(1, 2)


class Seq2Seq(nn.Module):
    def __init__(self, channels=2, hidden=6, horizon=4, go="last"):
        super().__init__()
        self.enc = nn.LSTM(channels, hidden, batch_first=True)
        self.cell = nn.LSTMCell(channels, hidden)
        self.out = nn.Linear(hidden, channels)
        self.horizon, self.go = horizon, go

    def first_input(self, x):
        if self.go == "last":
            return x[:, -1]
        return torch.zeros(x.size(0), x.size(2))

    def forward(self, x, teacher=None):
        _, (h, c) = self.enc(x)
        h, c = h[0], c[0]
        inp = self.first_input(x)
        ys = []
        for t in range(self.horizon):
            h, c = self.cell(inp, (h, c))  # raises
            y = self.out(h)
            ys.append(y)
            inp = y if teacher is None else teacher[:, t]
        return torch.stack(ys, 1)


class TimeFeatures(nn.Module):
    """Fourier features; frequencies are made on the first call."""

    def __init__(self, order=2):
        super().__init__()
        self.order = order
        self.freqs = None

    def forward(self, x):
        t = torch.arange(x.size(1), device=x.device, dtype=x.dtype)
        if self.freqs is None:
            self.freqs = 2 * np.pi * torch.arange(1, self.order + 1, device=x.device) / x.size(1)
        phase = t[:, None] * self.freqs  # raises
        return torch.cat([phase.sin(), phase.cos()], -1).expand(x.size(0), -1, -1)


class QuantileLoss(nn.Module):
    def __init__(self, qs=(0.1, 0.5, 0.9), learnable_weights=False):
        super().__init__()
        self.qs = qs
        self.weights = nn.Parameter(torch.ones(len(qs))) if learnable_weights else None

    def forward(self, pred, y):
        err = y.unsqueeze(-1) - pred
        losses = [torch.max(q * err[..., i], (q - 1) * err[..., i]).mean() for i, q in enumerate(self.qs)]
        losses = torch.stack(losses)
        if self.weights is not None:
            losses = losses * self.weights.softmax(0)  # raises
        return losses.sum()


class QuantileHead(nn.Module):
    def __init__(self, base, n=3):
        super().__init__()
        self.base = base
        self.offset = nn.Parameter(torch.linspace(-1, 1, n))

    def forward(self, x):
        return self.base(x).unsqueeze(-1) + self.offset


# ------------------------------------------------------------------ training


@dataclass
class TrainState:
    model: nn.Module
    opt: optim.Optimizer
    device: torch.device
    step: int = 0
    history: list = field(default_factory=list)


class Callback:
    def on_step(self, state, x, y, pred): ...


class ErrorProfile(Callback):
    """Mean absolute error by horizon."""

    def __init__(self, horizon, device=None):
        self.sum = torch.zeros(horizon, device=device)
        self.n = 0

    def on_step(self, state, x, y, pred):
        self.sum += (pred - y).abs().mean((0, 2)).detach()  # raises
        self.n += 1


class HistoryLog(Callback):
    def on_step(self, state, x, y, pred):
        resid = (pred - y).detach()
        state.history.append(resid.cpu().numpy().mean())


class Trainer:
    def __init__(self, loss=None, callbacks=(), device=None, clip=1.0):
        self.loss = loss or nn.MSELoss()
        self.callbacks = list(callbacks)
        self.device = device or get_device()
        self.clip = clip

    def start(self, model, make_opt: Callable = optim.Adam):
        model = model.to(self.device)
        params = list(model.parameters()) + list(self.loss.parameters())
        return TrainState(model, make_opt(params, lr=1e-2), self.device)

    def run(self, state, loader, max_steps=2):
        for x, y in itertools.islice(loader, max_steps):
            x, y = x.to(state.device), y.to(state.device)
            pred = state.model(x)
            loss = self.loss(pred, y)
            state.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(state.model.parameters(), self.clip)
            state.opt.step()
            state.step += 1
            for cb in self.callbacks:
                cb.on_step(state, x, y, pred)
        return state


def loader(scaler=None, context=8, horizon=4, **kw):
    series = torch.from_numpy(synthetic())
    if scaler is not None:
        series = scaler.fit(series).transform(series)
    return DataLoader(TensorDataset(*windows(series, context, horizon)), batch_size=8, **kw)


def save_state(state, path, **extra):
    torch.save({"model": state.model.state_dict(), "opt": state.opt.state_dict(), **extra}, path)


def resume(path, model, device, map_location=None):
    ckpt = torch.load(path, map_location=map_location)
    model.load_state_dict(ckpt["model"])
    model.to(device)
    return model, ckpt


def crps_samples(samples, y):
    """samples: S x B x H"""
    first = (samples - y).abs().mean(0)
    n = samples.size(0)
    ranks = torch.arange(1, n + 1) * 2 - n - 1
    spread = (samples.sort(0)[0] * ranks.view(-1, 1, 1)).sum(0) / n ** 2  # raises
    return (first - spread).mean()


def bootstrap(residuals, n=4):
    idx = torch.randint(len(residuals), (n, len(residuals)))
    return residuals[idx]


# ------------------------------------------------------------------ cases


def case_train_dlinear():
    trainer = Trainer(callbacks=[HistoryLog()])
    state = trainer.run(trainer.start(DLinear()), loader(StandardScaler(), shuffle=True))
    return state.history


def case_train_dlinear_v0():
    trainer = Trainer(callbacks=[HistoryLog()], device=get_device(1))
    state = trainer.start(DLinear(decomposition=MovingAverageV0))
    return trainer.run(state, loader(StandardScaler()))


def case_error_profile_default():
    device = get_device(0)
    profile = ErrorProfile(4)
    trainer = Trainer(callbacks=[HistoryLog(), profile], device=device)
    trainer.run(trainer.start(DLinear()), loader())
    return profile.sum / profile.n


def case_error_profile_on_trainer_device():
    trainer = Trainer()
    profile = ErrorProfile(4, device=trainer.device)
    trainer.callbacks.append(profile)
    trainer.run(trainer.start(Seq2Seq()), loader())
    return (profile.sum / profile.n).tolist()


def case_seq2seq_zero_go():
    trainer = Trainer()
    for go in ("last", "zeros"):
        state = trainer.start(Seq2Seq(go=go))
        trainer.run(state, loader(), max_steps=1)
    return state.step


def case_quantile_loss_fixed_weights():
    loss = QuantileLoss()
    trainer = Trainer(loss=loss)
    return trainer.run(trainer.start(QuantileHead(DLinear())), loader()).step


def case_quantile_loss_learned_weights():
    loss = QuantileLoss(learnable_weights=True)
    trainer = Trainer(loss=loss)
    return trainer.run(trainer.start(QuantileHead(DLinear())), loader()).step


def case_forecast_unscaled_on_gpu():
    scaler = StandardScaler()
    x, y = next(iter(loader(scaler)))
    model = DLinear().to(get_device())
    pred = model(x.to(get_device()))
    mae = (scaler.inverse(pred.detach().cpu()) - scaler.inverse(y)).abs().mean()
    live = scaler.inverse(pred)
    return mae, live


def case_forecast_global_scaler():
    scaler = GlobalScaler()
    x, y = next(iter(loader(scaler)))
    model = DLinear().to(get_device())
    pred = model(x.to(get_device()))
    return (scaler.inverse(pred) - scaler.inverse(y).to(pred.device)).abs().mean().item()


def case_forecast_following_scaler():
    scaler = DeviceScaler()
    x, y = next(iter(loader(scaler)))
    model = DLinear().to("cuda:2")
    pred = scaler.inverse(model(x.to("cuda:2")))
    back = scaler.inverse(y)
    return pred.mean().item() - back.mean().item()


def case_time_features_first_call_on_host():
    feats = TimeFeatures()
    x, _ = next(iter(loader()))
    dim = feats(x[:1]).size(-1)
    model = nn.Sequential(feats, nn.Linear(dim, 4)).to("cuda")
    return model(x.to("cuda"))


def case_time_features_first_call_on_card():
    model = nn.Sequential(TimeFeatures(), nn.Linear(4, 4)).to("cuda")
    return [model(x.to("cuda")).mean().item() for x, _ in loader()]


def case_resume_with_saved_residual_scale():
    trainer = Trainer(device=torch.device("cuda:1"))
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "last.pt"
        state = trainer.run(trainer.start(DLinear()), loader())
        save_state(state, path, scale=torch.ones(2, device=state.device))
        model, ckpt = resume(path, DLinear(), "cuda:0")
    x, _ = next(iter(loader()))
    pred = model(x.to("cuda:0"))
    return pred / ckpt["scale"]  # raises


def case_resume_mapped_to_device():
    trainer = Trainer(device=torch.device("cuda:1"))
    buf = io.BytesIO()
    state = trainer.run(trainer.start(DLinear()), loader())
    save_state(state, buf, scale=torch.ones(2, device=state.device))
    buf.seek(0)
    model, ckpt = resume(buf, DLinear(), "cuda:0", map_location="cuda:0")
    opt = optim.Adam(model.parameters())
    opt.load_state_dict(ckpt["opt"])
    x, y = (t.to("cuda:0") for t in next(iter(loader())))
    F.mse_loss(model(x) / ckpt["scale"], y).backward()
    opt.step()
    return ckpt["scale"].tolist()


def case_bootstrap_intervals():
    x, y = next(iter(loader()))
    model = DLinear().cuda()
    resid = model(x.cuda()).detach() - y.cuda()
    boot = bootstrap(resid[:, :, 0])
    return torch.quantile(boot, 0.9).item()


def case_crps_of_bootstrap():
    x, y = next(iter(loader()))
    model = DLinear().cuda()
    y = y.cuda()
    resid = (model(x.cuda()).detach() - y)[:, :, 0]
    samples = bootstrap(resid) + y[:, :, 0]
    return crps_samples(samples, y[:, :, 0])
