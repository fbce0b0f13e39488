import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass(frozen=True)
class Config:
    seq_len: int = 12
    pred_len: int = 4
    channels: int = 2
    d_model: int = 8
    use_gpu: bool = True
    gpu: int = 0

    @property
    def device(self):
        return torch.device(f"cuda:{self.gpu}") if self.use_gpu else torch.device("cpu")


class Scaler:
    def fit(self, data):
        self.mean, self.std = data.mean(0), data.std(0)
        return self

    def inverse_transform(self, data):
        mean, std = self.mean, self.std
        if torch.is_tensor(data):
            mean = torch.from_numpy(mean).type_as(data).to(data.device)
            std = torch.from_numpy(std).type_as(data).to(data.device)
        return data * std + mean

    def transform(self, data):
        return (data - self.mean) / self.std


class RevIN(nn.Module):
    def __init__(self, n, affine=True):
        super().__init__()
        self.affine = affine
        if affine:
            self.w = nn.Parameter(torch.ones(n))
            self.b = nn.Parameter(torch.zeros(n))

    def forward(self, x, mode):
        if mode == "norm":
            self.mean = x.mean(1, keepdim=True).detach()
            self.stdev = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5).detach()
            x = (x - self.mean) / self.stdev
            return x * self.w + self.b if self.affine else x
        elif mode == "denorm":
            if self.affine:
                x = (x - self.b) / (self.w + 1e-10)
            return x * self.stdev + self.mean  # raises
        raise NotImplementedError


class MovingAvg(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k, self.avg = k, nn.AvgPool1d(k, 1)

    def forward(self, x):
        pad = (self.k - 1) // 2
        x = torch.cat([x[:, :1].repeat(1, pad, 1), x, x[:, -1:].repeat(1, pad, 1)], 1)
        return self.avg(x.transpose(1, 2)).transpose(1, 2)


class DLinear(nn.Module):
    """one linear map per channel when `individual`"""

    def __init__(self, cfg, individual=False):
        super().__init__()
        self.cfg, self.individual = cfg, individual
        self.decomp = MovingAvg(3)
        mk = lambda: nn.Linear(cfg.seq_len, cfg.pred_len)
        if individual:
            self.trend = [mk() for _ in range(cfg.channels)]
            self.season = nn.ModuleList(mk() for _ in range(cfg.channels))
        else:
            self.trend, self.season = mk(), mk()

    def forward(self, x):
        t = self.decomp(x)
        s, t = (x - t).transpose(1, 2), t.transpose(1, 2)
        if not self.individual:
            return (self.season(s) + self.trend(t)).transpose(1, 2)
        cols = []
        for i in range(self.cfg.channels):
            cols.append(self.season[i](s[:, i]) + self.trend[i](t[:, i]))  # raises
        return torch.stack(cols, -1)


class Informerish(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        pe = torch.zeros(64, cfg.d_model)
        pos = torch.arange(0, 64).float().unsqueeze(1)
        div = (torch.arange(0, cfg.d_model, 2).float() * -(math.log(10000.) / cfg.d_model)).exp()
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe.unsqueeze(0))
        self.emb = nn.Conv1d(cfg.channels, cfg.d_model, 3, padding=1, padding_mode="circular", bias=False)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(cfg.d_model, 2, 16, batch_first=True), 1)
        self.head = nn.Linear(cfg.d_model, cfg.channels)

    def forward(self, x, causal=None):
        h = self.emb(x.transpose(1, 2)).transpose(1, 2) + self.pe[:, :x.size(1)]
        if causal is not None:
            h = self.enc(h, mask=causal)
        else:
            h = self.enc(h)
        return self.head(h)


def series(n=60, c=2):
    t = np.arange(n, dtype=np.float32)
    return np.stack([np.sin(t / (i + 2)) for i in range(c)], 1) + .1 * np.random.randn(n, c).astype(np.float32)


def windows(arr, cfg):
    n = len(arr) - cfg.seq_len - cfg.pred_len
    xs = np.stack([arr[i:i + cfg.seq_len] for i in range(n)])
    ys = np.stack([arr[i + cfg.seq_len:i + cfg.seq_len + cfg.pred_len] for i in range(n)])
    return TensorDataset(torch.from_numpy(xs), torch.from_numpy(ys))


@contextmanager
def evaluating(*modules):
    was = [m.training for m in modules]
    for m in modules:
        m.eval()
    try:
        with torch.no_grad():
            yield modules
    finally:
        for m, w in zip(modules, was):
            m.train(w)


# clean
def case_forecast_and_inverse():
    cfg = Config()
    sc = Scaler().fit(series())
    ds = windows(sc.transform(series()), cfg)
    tr, te = random_split(ds, [len(ds) - 6, 6], generator=torch.Generator().manual_seed(0))
    model, rev = DLinear(cfg).to(cfg.device), RevIN(cfg.channels).to(cfg.device)
    opt = torch.optim.Adam([*model.parameters(), *rev.parameters()])
    for x, y in DataLoader(tr, 16, shuffle=True, pin_memory=True):
        x, y = x.to(cfg.device, non_blocking=True), y.to(cfg.device, non_blocking=True)
        out = rev(model(rev(x, "norm")), "denorm")
        opt.zero_grad(); nn.functional.mse_loss(out, y).backward(); opt.step()
    preds, trues = [], []
    with evaluating(model, rev):
        for x, y in DataLoader(te, 3):
            preds.append(sc.inverse_transform(rev(model(rev(x.to(cfg.device), "norm")), "denorm")).cpu())
            trues.append(sc.inverse_transform(y))
    p, t = torch.cat(preds).numpy(), torch.cat(trues).numpy()
    return np.abs(p - t).mean(), np.mean((p - t) ** 2)


# broken
def case_individual_heads_in_a_list():
    cfg = Config()
    model = DLinear(cfg, individual=True).to(cfg.device)
    (x, _), = [next(iter(DataLoader(windows(series(), cfg), 4)))]
    return model(x.to(cfg.device))


# broken
def case_denormalise_after_offload():
    cfg = replace(Config(), seq_len=8)
    rev = RevIN(cfg.channels, affine=False).cuda()
    model = DLinear(cfg).cuda()
    x = torch.randn(3, cfg.seq_len, cfg.channels, device=cfg.device)
    with evaluating(model):
        pred = model(rev(x, "norm"))
    pred = pred.to("cpu")
    return rev(pred, "denorm").numpy()


# clean
def case_causal_mask_and_warm_cache():
    cfg = Config(gpu=1)
    net = Informerish(cfg).to(cfg.device)
    masks = {}

    def mask_for(n, like):
        key = (n, like.device)
        if key not in masks:
            masks[key] = torch.full((n, n), float("-inf"), device=like.device).triu(1)
        return masks[key]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ctx = torch.from_numpy(series(20)).unsqueeze(0).to(cfg.device)
        out = []
        for _ in range(3):
            y = net(ctx, causal=mask_for(ctx.size(1), ctx))[:, -1:]
            ctx = torch.cat([ctx[:, 1:], y.detach()], 1)
            out.append(y.squeeze(0))
    return torch.cat(out).detach().cpu().numpy()


# broken
def case_second_gpu_quantiles():
    cfg = Config(gpu=1)
    net = DLinear(cfg).to(cfg.device)
    ds = windows(series(), cfg)
    x, y = ds[:5]
    x, y = x.to(cfg.device), y.to(cfg.device)
    qs = (.1, .5, .9)
    out = net(x)
    losses = []
    for q in qs:
        w = torch.linspace(1., .5, cfg.pred_len).view(1, -1, 1).cuda()
        e = y - out
        losses.append((torch.maximum(q * e, (q - 1) * e) * w).mean())  # raises
    return torch.stack(losses).sum()


# clean
def case_early_stopping_on_floats():
    cfg = Config()

    class EarlyStopping:
        def __init__(self, patience=2):
            self.best, self.bad, self.patience, self.state = torch.tensor(float("inf")), 0, patience, None

        def __call__(self, loss, model):
            if loss < self.best:                       # 0-dim gpu value against a 0-dim host one
                self.best, self.bad = loss.clone(), 0
                self.state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
            else:
                self.bad += 1
            return self.bad >= self.patience

    model = DLinear(cfg, individual=False).to(cfg.device)
    stop, ds = EarlyStopping(), windows(series(), cfg)
    x, y = (t.to(cfg.device) for t in ds[:8])
    opt = torch.optim.SGD(model.parameters(), lr=10.)
    for _ in range(6):
        loss = (model(x) - y).abs().mean()
        if stop(loss.detach(), model):
            break
        opt.zero_grad(); loss.backward(); opt.step()
    model.load_state_dict(stop.state)
    return (model(x) - y).abs().mean().item() <= stop.best.item() + 1e-4
