from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

@dataclass
class SeriesConfig:
    context: int = 8
    horizon: int = 3
    series: int = 4
    hidden: int = 6
    season: int = 4
    device: str = "cuda"

class Window(NamedTuple):
    past: torch.Tensor
    future: torch.Tensor
    ids: torch.Tensor

    def to(self, device):
        return self._replace(past=self.past.to(device), future=self.future.to(device))

class SeriesData:
    def __init__(self, cfg, seed=0):
        self.cfg = cfg
        t = np.arange(40)
        noise = np.random.default_rng(seed).normal(size=(cfg.series, 40))
        self.values = (np.sin(t * 2 * np.pi / cfg.season)[None] + 0.1 * noise).astype(np.float32)

    def windows(self, stride=8):
        c, h = self.cfg.context, self.cfg.horizon
        for start in range(0, self.values.shape[1] - c - h, stride):
            block = torch.from_numpy(self.values[:, start:start + c + h])
            yield Window(block[:, :c], block[:, c:], torch.arange(self.cfg.series))

class Scaler:
    def __init__(self):
        self.loc = self.scale = None

    def fit(self, values):
        values = torch.as_tensor(values)
        self.loc, self.scale = self.statistics(values)
        return self

    def statistics(self, values):
        raise NotImplementedError

    def transform(self, x):
        return (x - self.loc) / self.scale

    def inverse(self, x):
        return x * self.scale + self.loc  # raises

class GlobalScaler(Scaler):
    def statistics(self, values):
        return values.mean(), values.std()

class SeriesScaler(Scaler):
    def statistics(self, values):
        return values.mean(1, keepdim=True), values.std(1, keepdim=True)

class MatchingScaler(SeriesScaler):
    def inverse(self, x):
        return x * self.scale.to(x) + self.loc.to(x)

class StatefulGRU(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.rnn = nn.GRU(1, cfg.hidden, batch_first=True)
        self.out = nn.Linear(cfg.hidden, cfg.horizon)

    def init_state(self, batch):
        return torch.zeros(1, batch, self.cfg.hidden)

    def forward(self, past, state=None):
        h, state = self.rnn(past[..., None], state)  # raises
        return self.out(h[:, -1]), state

class StateBank:
    def __init__(self, cfg):
        self.states = torch.zeros(cfg.series, cfg.hidden)

    def read(self, ids, device):
        return self.states[ids][None].to(device)

    def write(self, ids, state):
        self.states[ids] = state[0].detach()  # raises

    def write_whole(self, state):
        self.states[:] = state[0].detach()

class Carry:
    def __init__(self, model, first=None):
        self.model, self.state = model, first

    def __call__(self, window):
        pred, state = self.model(window.past, self.state)
        self.state = state.detach()
        return pred

class DiagonalSSM(nn.Module):
    def __init__(self, n=4, arange_device=None):
        super().__init__()
        self.arange_device = arange_device
        self.log_dt = nn.Parameter(torch.tensor(-2.0))
        self.log_a = nn.Parameter(torch.linspace(0, 1, n))
        self.b, self.c = nn.Parameter(torch.ones(n)), nn.Parameter(torch.randn(n))
        self._discrete = None

    def discrete(self):
        dt = self.log_dt.exp()
        a = torch.exp(-self.log_a.exp() * dt)
        return a, (1 - a) / self.log_a.exp() * self.b

    def kernel(self, length):
        steps = torch.arange(length, device=self.arange_device)
        a, b = self.discrete()
        powers = a[:, None] ** steps  # raises
        return (self.c * b) @ powers

    def forward(self, u):
        k = self.kernel(u.shape[1])
        n = 2 * u.shape[1]
        return torch.fft.irfft(torch.fft.rfft(u, n=n) * torch.fft.rfft(k, n=n), n=n)[:, : u.shape[1]]

    def setup_step(self):
        with torch.no_grad():
            self._discrete = self.discrete()
        return self

    def step(self, u, state):
        a, b = self._discrete
        state = state * a + u[:, None] * b  # raises
        return state @ self.c, state

    def default_state(self, batch):
        return self.b.new_zeros(batch, len(self.b))

class HoltWinters(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.alpha = nn.Parameter(torch.zeros(cfg.series))
        self.season = nn.Parameter(torch.zeros(cfg.series, cfg.season))

    def forward(self, window):
        alpha, season = self.alpha[window.ids].sigmoid(), list(self.season[window.ids].exp().unbind(1))
        level = window.past[:, 0]
        for t in range(1, window.past.shape[1]):
            s = season[t % self.cfg.season]
            level = alpha * window.past[:, t] / s + (1 - alpha) * level
        phase = torch.arange(window.past.shape[1], window.past.shape[1] + self.cfg.horizon) % self.cfg.season
        return level[:, None] * torch.stack(season, 1)[:, phase]

class KalmanFilter(nn.Module):
    def __init__(self, joseph=False, noise=0.1):
        super().__init__()
        self.joseph = joseph
        self.register_buffer("f", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
        self.register_buffer("h", torch.tensor([[1.0, 0.0]]))
        self.register_buffer("q", torch.eye(2) * 0.01)
        self.noise = torch.tensor(noise)

    def update(self, mean, cov, y):
        s = self.h @ cov @ self.h.t() + self.noise
        gain = cov @ self.h.t() / s
        mean = mean + (gain @ (y[:, None] - mean @ self.h.t())[..., None])[..., 0]
        if not self.joseph:
            return mean, cov - gain @ self.h @ cov
        left = torch.eye(2) - gain @ self.h  # raises
        return mean, left @ cov @ left.transpose(-1, -2) + gain * self.noise @ gain.transpose(-1, -2)

    def forward(self, ys):
        mean = ys.new_zeros(len(ys), 2)
        cov = torch.eye(2).to(ys).expand(len(ys), 2, 2)
        for y in ys.unbind(1):
            mean, cov = mean @ self.f.t(), self.f @ cov @ self.f.t() + self.q
            mean, cov = self.update(mean, cov, y)
        return mean, cov

class ParticleFilter:
    def __init__(self, n=10, keep_history="cpu"):
        self.n, self.keep = n, keep_history
        self.history: List[torch.Tensor] = []

    def run(self, ys):
        x = torch.zeros(self.n, device=ys.device)
        for y in ys:
            x = x + 0.3 * torch.randn_like(x)
            weights = Normal(x, 0.5).log_prob(y).softmax(0)
            ancestors = torch.multinomial(weights, self.n, replacement=True)
            x = x[ancestors]
            self.history = [past[ancestors] for past in self.history]  # raises
            self.history.append(x if self.keep is None else x.to(self.keep))
        return torch.stack(self.history)

class QuantileLoss:
    def __init__(self, levels=(0.1, 0.5, 0.9)):
        self.levels = torch.tensor(levels)

    def __call__(self, pred, target):
        total = 0.0
        for i, q in enumerate(self.levels):
            error = target - pred[..., i]
            total = total + torch.max(q * error, (q - 1) * error).mean()
        return total

class VectorQuantileLoss(QuantileLoss):
    def __call__(self, pred, target):
        error = target[..., None] - pred
        return (self.levels * error + F.relu(-error)).mean()  # raises

class Rollout:
    def __init__(self, model, lags=(1, 2, 4), by="index"):
        self.model, self.by = model, by
        self.lags = torch.tensor(lags)

    def features(self, seq):
        if self.by == "index":
            return seq[:, -self.lags]
        return seq.index_select(1, seq.shape[1] - self.lags)  # raises

    def __call__(self, window, teacher: Optional[float] = None):
        seq, preds = window.past, []
        for t in range(window.future.shape[1]):
            pred = self.model(self.features(seq))[:, 0]
            preds.append(pred)
            if teacher is not None:
                forced = torch.rand(len(pred)) < teacher
                pred = torch.where(forced, window.future[:, t], pred)  # raises
            seq = torch.cat([seq, pred[:, None]], 1)
        return torch.stack(preds, 1)

class RunningMASE:
    def __init__(self, history, season):
        diff = np.abs(history[:, season:] - history[:, :-season]).mean()
        self.naive, self.count = torch.tensor(diff), 0
        self.total = torch.tensor(0.0)

    def update(self, pred, future):
        self.total = self.total + (pred - future).abs().mean() / self.naive
        self.count += 1

    def compute(self):
        return float(self.total / self.count)

class RunningMASEInPlace(RunningMASE):
    def update(self, pred, future):
        self.total += (pred - future).abs().mean() / self.naive  # raises
        self.count += 1

class Conformal:
    def __init__(self, alpha=0.1):
        self.levels = torch.tensor([alpha / 2, 1 - alpha / 2])
        self.scores: Dict[int, List[torch.Tensor]] = {}

    def observe(self, pred, future):
        for step, err in enumerate((future - pred).detach().unbind(1)):
            self.scores.setdefault(step, []).append(err)

    def interval(self, step):
        return torch.quantile(torch.cat(self.scores[step]), self.levels).tolist()  # raises

def dtw(a, b):
    cost = torch.cdist(a[:, None], b[:, None]).detach().cpu().numpy()
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0
    for i, j in np.ndindex(*cost.shape):
        table[i + 1, j + 1] = cost[i, j] + min(table[i, j + 1], table[i + 1, j], table[i, j])
    return table[-1, -1]

def start(**kw):
    cfg = SeriesConfig(**kw)
    data = SeriesData(cfg)
    return cfg, data, [w.to(cfg.device) for w in data.windows()]

def scaled_run(scaler):
    cfg, data, _ = start()
    model = StatefulGRU(cfg).to(cfg.device)
    for window in data.windows():
        scaler.inverse(model(scaler.fit(data.values).transform(window.past).to(cfg.device))[0])

def case_global_scaler():
    scaled_run(GlobalScaler())

def case_series_scaler():
    scaled_run(SeriesScaler())

def case_matching_scaler():
    scaled_run(MatchingScaler())

def case_carry_from_nothing():
    cfg, _, windows = start()
    carry = Carry(StatefulGRU(cfg).to(cfg.device))
    sum((carry(w) - w.future).pow(2).mean() for w in windows).backward()

def case_carry_from_initial_state():
    cfg, _, windows = start()
    model = StatefulGRU(cfg).to(cfg.device)
    Carry(model, model.init_state(cfg.series))(windows[0])

def banked(whole):
    cfg, _, windows = start()
    model, bank = StatefulGRU(cfg).to(cfg.device), StateBank(cfg)
    for w in windows:
        _, state = model(w.past, bank.read(w.ids, cfg.device))
        bank.write_whole(state) if whole else bank.write(w.ids, state)

def case_bank_by_ids():
    banked(whole=False)

def case_bank_whole():
    banked(whole=True)

def case_ssm_convolution():
    _, _, windows = start()
    DiagonalSSM().cuda()(windows[0].past)

def case_ssm_convolution_given():
    _, _, windows = start()
    DiagonalSSM(arange_device="cuda").cuda()(windows[0].past).sum().backward()

def case_ssm_recurrent():
    _, _, windows = start()
    ssm = DiagonalSSM().cuda().setup_step()
    state = ssm.default_state(len(windows[0].past))
    for u in windows[0].past.unbind(1):
        y, state = ssm.step(u, state)

def case_ssm_discretized_early():
    _, _, windows = start()
    ssm = DiagonalSSM().setup_step().cuda()
    ssm.step(windows[0].past[:, 0], ssm.default_state(len(windows[0].past)))

def case_holt_winters():
    cfg, _, windows = start(device="cuda:3")
    model = HoltWinters(cfg).to(cfg.device)
    return dtw(model(windows[0])[0], windows[0].future[0])

def case_kalman():
    _, _, windows = start()
    KalmanFilter().cuda()(windows[0].past)

def case_kalman_joseph():
    _, _, windows = start()
    KalmanFilter(joseph=True).cuda()(windows[0].past)

def case_particles():
    _, _, windows = start()
    ParticleFilter(keep_history=None).run(windows[0].past[0]).mean(1).cpu().numpy()

def case_particles_history_offloaded():
    _, _, windows = start()
    ParticleFilter().run(windows[0].past[0])

def quantiles(loss):
    cfg, _, windows = start()
    model = nn.Linear(cfg.context, cfg.horizon * 3).to(cfg.device)
    loss(model(windows[0].past).view(-1, cfg.horizon, 3), windows[0].future).backward()

def case_quantile_loop():
    quantiles(QuantileLoss())

def case_quantile_vector():
    quantiles(VectorQuantileLoss())

def case_rollout():
    _, _, windows = start()
    Rollout(nn.Linear(3, 1).cuda())(windows[0])

def case_rollout_selected():
    _, _, windows = start()
    Rollout(nn.Linear(3, 1).cuda(), by="select")(windows[0])

def case_rollout_teacher():
    _, _, windows = start()
    Rollout(nn.Linear(3, 1).cuda())(windows[0], teacher=0.5)

def measured(kind):
    cfg, data, windows = start()
    metric, conformal = kind(data.values, cfg.season), Conformal()
    model = nn.Linear(cfg.context, cfg.horizon).cuda()
    for w in windows:
        metric.update(model(w.past), w.future)
        conformal.observe(model(w.past), w.future)
    return metric.compute(), conformal

def case_mase():
    return measured(RunningMASE)[0]

def case_mase_in_place():
    return measured(RunningMASEInPlace)[0]

def case_conformal():
    return measured(RunningMASE)[1].interval(0)
