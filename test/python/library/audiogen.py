"""Generative audio: oscillators, filters, spectral analysis, codecs, vocoders and their losses."""
import functools
import math
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

SR = 8000
A_WEIGHT = {"low": 0.5, "mid": 1.0, "high": 0.8}
_windows: Dict[Tuple[str, int], Tensor] = {}


def exists(v):
    return v is not None


def default(v, d):
    return v if exists(v) else (d() if callable(d) else d)


def db_to_amp(db: Tensor) -> Tensor:
    return torch.pow(torch.tensor(10.0), db / 20.0)


def get_window(n: int, kind: str = "hann") -> Tensor:
    key = (kind, n)
    if key not in _windows:
        _windows[key] = getattr(torch, f"{kind}_window")(n)
    return _windows[key]


def frame(x: Tensor, n: int, hop: int) -> Tensor:
    return F.pad(x, (0, (-(x.shape[-1] - n)) % hop)).unfold(-1, n, hop)


def overlap_add(frames: Tensor, hop: int) -> Tensor:
    b, t, n = frames.shape
    out = F.fold(frames.transpose(1, 2), (1, hop * (t - 1) + n), (1, n), stride=(1, hop))
    norm = F.fold(torch.ones(1, n, t), (1, hop * (t - 1) + n), (1, n), stride=(1, hop))
    return (out / norm.clamp_min(1.0).to(out))[:, 0, 0]


def phase(f0: Tensor, sr: int = SR) -> Tensor:
    return 2 * math.pi * torch.cumsum(f0 / sr, 1)


def harmonic_numbers(n: int, like: Optional[Tensor] = None) -> Tensor:
    k = torch.arange(1, n + 1)
    return k if like is None else k.to(like)


def remove_aliased(amps: Tensor, f0: Tensor, sr: int = SR) -> Tensor:
    freqs = f0 * harmonic_numbers(amps.shape[-1], f0)
    return amps * (freqs < sr / 2).type(torch.FloatTensor)  # raises


def harmonic_osc(f0: Tensor, amps: Tensor) -> Tensor:
    k = harmonic_numbers(amps.shape[-1])
    waves = [amps[..., i] * torch.sin(phase(f0[..., 0]) * h) for i, h in enumerate(k)]
    return torch.stack(waves, -1).sum(-1)


def saw(f0: Tensor, n: int = 6) -> Tensor:
    k = harmonic_numbers(n)
    w = torch.where(k % 2 == 0, -1.0 / k, 1.0 / k).to(f0.device)
    return (torch.sin(phase(f0) * k.to(f0.device)) * w).sum(-1)


def square(f0: Tensor, n: int = 6) -> Tensor:
    k = harmonic_numbers(2 * n)[::2]
    ph = phase(f0)
    return torch.einsum("btk,k->bt", torch.sin(k.to(ph) * ph), 1.0 / k)  # raises


def vibrato(f0: Tensor, rate: float = 5.0, depth: float = 0.02) -> Tensor:
    t = torch.arange(f0.shape[1], dtype=f0.dtype) / SR
    lfo = 1 + depth * torch.sin(2 * math.pi * rate * t)
    return f0 * lfo[None, :, None]  # raises


def wavetable(f0: Tensor, table: Tensor) -> Tensor:
    pos = (phase(f0[..., 0]) / (2 * math.pi) % 1.0) * len(table)
    lo = pos.long() % len(table)
    return torch.lerp(table[lo], table[(lo + 1) % len(table)], pos - pos.floor())


def adsr(gate: Tensor, attack: int = 4, release: int = 4) -> Tensor:
    ramp = torch.cat([torch.linspace(0, 1, attack), torch.ones(max(gate.shape[-1] - attack - release, 0)),
                      torch.linspace(1, 0, release)])
    env = gate.detach().clone()
    env[:] = ramp[: gate.shape[-1]]
    return env * gate


def sinc_lowpass(cutoff: float, taps: int = 9, window: str = "hamming") -> Tensor:
    n = torch.arange(taps) - (taps - 1) / 2
    h = torch.sinc(2 * cutoff * n) * get_window(taps, window)
    return h / h.sum()


def fir(x: Tensor, h: Tensor) -> Tensor:
    return F.conv1d(x[:, None], h.flip(0)[None, None].to(x.dtype).to(x.device), padding=len(h) // 2)[:, 0]


def lowpass(x: Tensor, cutoff: float = 0.2) -> Tensor:
    return fir(x, sinc_lowpass(cutoff))


def resample_half(x: Tensor) -> Tensor:
    h = sinc_lowpass(0.25)[None, None]
    return F.conv1d(x.unsqueeze(1), h, stride=2, padding=h.shape[-1] // 2).squeeze(1)  # raises


def fft_filter(x: Tensor, gains: Sequence[float]) -> Tensor:
    spec = torch.fft.rfft(x)
    g = torch.from_numpy(np.interp(np.linspace(0, 1, spec.shape[-1]), np.linspace(0, 1, len(gains)), gains))
    return torch.fft.irfft(spec * g, n=x.shape[-1])  # raises


def one_pole(x: Tensor, a: Tensor) -> Tensor:
    y, out = torch.zeros(()), []
    for t in range(x.shape[-1]):
        y = (1 - a) * x[:, t] + a * y
        out.append(y)
    return torch.stack(out, -1)


def biquad(x: Tensor, b: Sequence[float], a: Sequence[float]) -> Tensor:
    z1 = z2 = torch.zeros(x.shape[0])
    out = []
    for t in range(x.shape[-1]):
        y = b[0] * x[:, t] + z1  # raises
        z1 = b[1] * x[:, t] - a[0] * y + z2
        z2 = b[2] * x[:, t] - a[1] * y
        out.append(y)
    return torch.stack(out, -1)


def delay_lines(x: Tensor, delays: Sequence[int] = (3, 5, 7), fb: float = 0.4) -> Tensor:
    lines = [torch.zeros(x.shape[0], d, dtype=x.dtype, device=x.device) for d in delays]
    wet = []
    for t in range(x.shape[-1]):
        heads = torch.stack([ln[:, -1] for ln in lines], -1)
        for i, ln in enumerate(lines):
            lines[i] = torch.cat([(x[:, t] + fb * heads[:, i])[:, None], ln[:, :-1]], 1)
        wet.append(heads.mean(-1))
    return torch.stack(wet, -1)


class Reverb(nn.Module):
    def __init__(self, length: int = 16):
        super().__init__()
        self.noise = nn.Parameter(torch.rand(length) * 2 - 1)
        self.decay = nn.Parameter(torch.tensor(4.0))
        self.register_buffer("t", torch.linspace(0, 1, length), persistent=False)
        self.dry = torch.tensor(1.0)

    def impulse(self) -> Tensor:
        ir = self.noise * torch.exp(-F.softplus(self.decay) * self.t)
        return torch.cat([self.dry.to(ir).reshape(1), ir[1:]])

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1] + len(self.t)
        return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(self.impulse(), n), n)[..., : x.shape[-1]]


def stft_mag(x: Tensor, n: int = 16, hop: int = 4, window: Optional[Tensor] = None) -> Tensor:
    w = default(window, lambda: torch.hann_window(n, device=x.device))
    return torch.stft(x, n, hop, window=w, return_complex=True).abs()


def log_spectrogram(x: Tensor, n: int = 16, hop: int = 4) -> Tensor:
    win = get_window(n)
    spec = torch.stft(x, n, hop, n, win, return_complex=True)  # raises
    return torch.log1p(spec.abs())


def framed_spectrum(x: Tensor, n: int = 16, hop: int = 4) -> Tensor:
    return torch.fft.rfft(frame(x, n, hop) * get_window(n).to(x.device)).abs()


@functools.lru_cache(maxsize=None)
def mel_matrix(n_mels: int, n_bins: int, sr: int = SR) -> np.ndarray:
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + sr / 1400), n_mels + 2) / 2595) - 1)
    f = np.linspace(0, sr / 2, n_bins)
    up = (f - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - f) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


def a_curve(n: int) -> Tensor:
    lo, mid, hi = A_WEIGHT.values()
    third = n // 3
    return torch.tensor([lo] * third + [mid] * third + [hi] * (n - 2 * third))


class SpectralTransform(nn.Module):
    """Template: mag -> project -> compress."""

    def __init__(self, n_fft: int = 16, hop: int = 4):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.floor = torch.tensor(1e-5)

    @property
    def bins(self) -> int:
        return self.n_fft // 2 + 1

    def project(self, mag: Tensor) -> Tensor:
        return mag

    def compress(self, mag: Tensor) -> Tensor:
        return torch.log(mag + self.floor)

    def forward(self, x: Tensor) -> Tensor:
        return self.compress(self.project(stft_mag(x, self.n_fft, self.hop, self.window)))


class MelTransform(SpectralTransform):
    def __init__(self, n_mels: int = 5, **kw):
        super().__init__(**kw)
        self.fb = nn.Parameter(torch.from_numpy(mel_matrix(n_mels, self.bins)), requires_grad=False)

    def project(self, mag: Tensor) -> Tensor:
        return self.fb @ mag


class WeightedTransform(SpectralTransform):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.curve = a_curve(self.bins)

    def project(self, mag: Tensor) -> Tensor:
        return mag * self.curve[:, None]  # raises


class CepstralTransform(MelTransform):
    def __init__(self, n_ceps: int = 4, **kw):
        super().__init__(**kw)
        n = self.fb.shape[0]
        self.dct = torch.cos(math.pi / n * torch.outer(torch.arange(n) + 0.5, torch.arange(n_ceps).float()))

    def _apply(self, fn):
        super()._apply(fn)
        self.dct = fn(self.dct)
        return self

    def compress(self, mag: Tensor) -> Tensor:
        return super().compress(mag).transpose(1, 2) @ self.dct


class MultiScaleLoss(nn.Module):
    def __init__(self, sizes: Sequence[int] = (8, 16), transform=SpectralTransform, weights: Optional[Sequence[float]] = None):
        super().__init__()
        self.scales = nn.ModuleList(transform(n_fft=n, hop=n // 4) for n in sizes)
        self.weights = torch.tensor(default(weights, [1.0] * len(sizes)))

    def terms(self, a: Tensor, b: Tensor) -> List[Tensor]:
        return [F.l1_loss(s(a), s(b)) for s in self.scales]

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return sum(w * t for w, t in zip(self.weights, self.terms(a, b)))

    def stacked(self, a: Tensor, b: Tensor) -> Tensor:
        losses = torch.stack(self.terms(a, b))
        return losses.dot(self.weights)  # raises


def sdr(est: Tensor, ref: Tensor) -> np.ndarray:
    num = ref.pow(2).sum(-1)
    den = (est - ref).pow(2).sum(-1)
    ratio = 10 * torch.log10(num / den.clamp_min(1e-8))
    return np.nan_to_num(ratio.numpy())  # raises


def loudness(x: Tensor, n: int = 8) -> List[float]:
    rms = frame(x, n, n // 2).pow(2).mean(-1).sqrt()
    return np.log(rms.detach().cpu().numpy() + 1e-5).mean(-1).tolist()


def mu_law(x: Tensor, mu: int = 255) -> Tensor:
    m = torch.tensor(float(mu))
    y = x.sign() * torch.log1p(m * x.abs()) / torch.log1p(m)
    return ((y + 1) / 2 * m + 0.5).long()


def mu_law_table(q: Tensor, mu: int = 255) -> Tensor:
    y = torch.linspace(-1, 1, mu + 1)
    table = y.sign() * ((1 + mu) ** y.abs() - 1) / mu
    return torch.take(table, q)  # raises


class VectorQuantizer(nn.Module):
    def __init__(self, k: int = 8, dim: int = 4, decay: float = 0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("book", torch.randn(k, dim))
        self.register_buffer("count", torch.ones(k))
        self.usage = torch.zeros(k, dtype=torch.long)

    def ema(self, x: Tensor, idx: Tensor) -> None:
        hot = F.one_hot(idx, len(self.book)).to(x.dtype)
        self.count.lerp_(hot.sum(0), 1 - self.decay)
        self.book.lerp_(hot.T @ x / self.count[:, None].clamp_min(1e-3), 1 - self.decay)
        self.usage += torch.bincount(idx.cpu(), minlength=len(self.book))

    def revive(self, x: Tensor) -> None:
        dead = (self.usage == 0).nonzero().flatten()
        pick = torch.randint(len(x), (len(dead),))
        self.book[dead] = x[pick]

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        idx = torch.cdist(x, self.book).argmin(-1)
        q = self.book[idx]
        if self.training:
            with torch.no_grad():
                self.ema(x, idx)
                self.revive(x)
        return x + (q - x).detach(), idx

    def perplexity_loss(self, x: Tensor) -> Tensor:
        logits = -torch.cdist(x, self.book)
        prior = (self.usage + 1).float() / (self.usage + 1).sum()
        return F.kl_div(logits.log_softmax(-1), prior.expand_as(logits), reduction="batchmean")  # raises


class ResidualVQ(nn.Module):
    def __init__(self, depth: int = 2, **kw):
        super().__init__()
        self.stages = nn.ModuleList(VectorQuantizer(**kw) for _ in range(depth))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        total, codes = torch.zeros(1).type_as(x), []
        for st in self.stages:
            q, idx = st(x - total)
            total = total + q
            codes.append(idx)
        return total, torch.stack(codes)

    def decode(self, codes: Tensor) -> Tensor:
        return sum(st.book[c] for st, c in zip(self.stages, codes))


class CausalConv(nn.Module):
    def __init__(self, ch: int, dilation: int = 1):
        super().__init__()
        self.conv = nn.Conv1d(ch, ch, 2, dilation=dilation)
        self.dilation = dilation
        self.past: Optional[Tensor] = None

    def start(self, batch: int) -> None:
        self.past = torch.zeros(batch, self.conv.in_channels, self.dilation, device=self.conv.weight.device)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (self.dilation, 0)))

    def step(self, x: Tensor) -> Tensor:
        joined = torch.cat([self.past, x], -1)
        self.past = joined[..., 1:]
        return self.conv(joined)


class WaveStack(nn.Module):
    def __init__(self, classes: int = 16, ch: int = 4, dilations: Sequence[int] = (1, 2)):
        super().__init__()
        self.embed = nn.Embedding(classes, ch)
        self.layers = nn.Sequential(*[CausalConv(ch, d) for d in dilations])
        self.out = nn.Linear(ch, classes)

    def forward(self, q: Tensor) -> Tensor:
        return self.out(self.layers(self.embed(q).transpose(1, 2)).transpose(1, 2))

    @torch.no_grad()
    def sample(self, prompt: Tensor, steps: int = 3) -> Tensor:
        for ly in self.layers:
            ly.start(len(prompt))
        out = list(prompt.unbind(1))
        for _ in range(steps):
            h = self.embed(out[-1])[..., None]
            for ly in self.layers:
                h = ly.step(h)
            out.append(torch.multinomial(self.out(h[..., 0]).softmax(-1), 1)[:, 0])
        return torch.stack(out, 1)

    @torch.no_grad()
    def generate(self, batch: int, steps: int = 3) -> Tensor:
        return self.sample(torch.zeros(batch, 1, dtype=torch.long, device=self.out.weight.device), steps)

    def nll(self, q: Tensor, shift: int = 1) -> Tensor:
        logits = self(q)[:, :-shift]
        valid = torch.arange(logits.shape[1]).expand(len(q), -1) >= shift
        return F.cross_entropy(logits[valid], q[:, shift:][valid])
