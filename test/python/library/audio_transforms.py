"""Waveform and spectrogram transforms, filters and spectral losses."""
import functools
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

WINDOWS: Dict[str, Callable[..., Tensor]] = {
    "hann": torch.hann_window,
    "hamming": torch.hamming_window,
    "ones": torch.ones,
}


@dataclass(frozen=True)
class FrameConfig:
    sample_rate: int = 16000
    n_fft: int = 64
    hop: int = 16
    n_mels: int = 12
    window: str = "hann"

    @property
    def n_freqs(self) -> int:
        return self.n_fft // 2 + 1


def hz_to_mel(freq: float) -> float:
    return 2595.0 * math.log10(1.0 + freq / 700.0)


def mel_to_hz(mels: Tensor) -> Tensor:
    return 700.0 * (10.0 ** (mels / 2595.0) - 1.0)


def triangles(all_freqs: Tensor, points: Tensor) -> Tensor:
    widths = points[1:] - points[:-1]
    slopes = points.unsqueeze(0) - all_freqs.unsqueeze(1)
    down = -slopes[:, :-2] / widths[:-1]
    up = slopes[:, 2:] / widths[1:]
    return torch.clamp(torch.min(down, up), min=0.0)


def mel_filterbank(config: FrameConfig, device=None) -> Tensor:
    nyquist = config.sample_rate / 2
    freqs = torch.linspace(0, nyquist, config.n_freqs, device=device)
    mels = torch.linspace(hz_to_mel(20.0), hz_to_mel(nyquist), config.n_mels + 2, device=device)
    return triangles(freqs, mel_to_hz(mels))


def create_dct(n_mfcc: int, n_mels: int) -> Tensor:
    n = torch.arange(float(n_mels))
    k = torch.arange(float(n_mfcc)).unsqueeze(1)
    dct = torch.cos(math.pi / n_mels * (n + 0.5) * k)
    dct[0] *= 1.0 / math.sqrt(2.0)
    return (dct * math.sqrt(2.0 / n_mels)).t()


class SpectralTransform(nn.Module):
    """Template: frames -> spectrum -> whatever the subclass projects."""

    def __init__(self, config: FrameConfig):
        super().__init__()
        self.config = config
        self.register_buffer("window", WINDOWS[config.window](config.n_fft), persistent=False)
        self.setup()

    def setup(self) -> None:
        pass

    def project(self, power: Tensor) -> Tensor:
        return power

    def forward(self, waveform: Tensor) -> Tensor:
        spec = torch.stft(waveform, self.config.n_fft, self.config.hop, window=self.window, return_complex=True)
        return self.project(spec.abs().pow(2))


class MelSpectrogram(SpectralTransform):
    def setup(self) -> None:
        self.register_buffer("fb", mel_filterbank(self.config), persistent=False)

    def project(self, power: Tensor) -> Tensor:
        return torch.matmul(power.transpose(-1, -2), self.fb).transpose(-1, -2)


class MFCC(MelSpectrogram):
    n_mfcc = 8

    def setup(self) -> None:
        super().setup()
        self.dct = create_dct(self.n_mfcc, self.config.n_mels)

    def project(self, power: Tensor) -> Tensor:
        log_mel = torch.log(super().project(power) + 1e-6)
        return torch.matmul(log_mel.transpose(-1, -2), self.dct).transpose(-1, -2)  # raises


class BandEnergies(SpectralTransform):
    """Sums of bins over bands whose edges are kept as a tensor of bin numbers."""

    def setup(self) -> None:
        self.edges = torch.linspace(0, self.config.n_freqs, 5).long()

    def project(self, power: Tensor) -> Tensor:
        sums = F.pad(power.cumsum(dim=-2), (0, 0, 1, 0))
        edges = sums[..., self.edges, :]
        return edges[..., 1:, :] - edges[..., :-1, :]


class ChromaFold(SpectralTransform):
    """Adds the bins of one pitch class together."""
    n_chroma = 12

    def setup(self) -> None:
        bins = torch.arange(1, self.config.n_freqs)
        self.classes = torch.remainder((12 * torch.log2(bins.float())).round(), self.n_chroma).long()

    def project(self, power: Tensor) -> Tensor:
        folded = power.new_zeros(power.shape[:-2] + (self.n_chroma, power.size(-1)))
        return folded.index_add(-2, self.classes, power[..., 1:, :])  # raises


def axis_mask(spec: Tensor, width: int, axis: int, per_example: bool) -> Tensor:
    size = spec.size(axis)
    shape = (spec.size(0), 1) if per_example else (1,)
    value = torch.rand(shape) * width
    start = torch.rand(shape) * (size - value)
    begin, end = start.long(), start.long() + value.long()
    positions = torch.arange(size, device=spec.device)
    if not per_example:
        begin, end = begin.squeeze(), end.squeeze()
    mask = (positions >= begin) & (positions < end)  # raises
    shape = [1] * spec.dim()
    shape[axis] = size
    if per_example:
        shape[0] = spec.size(0)
    return mask.reshape(shape)


class SpecAugment(nn.Module):
    def __init__(self, freq_width: int = 4, time_width: int = 6, iid_masks: bool = False, fill: Optional[float] = None):
        super().__init__()
        self.widths = OrderedDict([(-2, freq_width), (-1, time_width)])
        self.iid_masks = iid_masks
        self.fill = fill

    def forward(self, spec: Tensor) -> Tensor:
        fill = spec.mean() if self.fill is None else torch.tensor(self.fill)
        for axis, width in self.widths.items():
            mask = axis_mask(spec, width, axis % spec.dim(), self.iid_masks)
            spec = spec.masked_fill(mask, fill)
        return spec


class GriffinLim(nn.Module):
    """Iterative phase estimation with momentum."""

    def __init__(self, config: FrameConfig, n_iter: int = 3, momentum: float = 0.9, rand_init: bool = True):
        super().__init__()
        self.config, self.n_iter, self.momentum, self.rand_init = config, n_iter, momentum, rand_init
        self.window = nn.Parameter(WINDOWS[config.window](config.n_fft), requires_grad=False)

    def initial(self, magnitude: Tensor) -> Tensor:
        if self.rand_init:
            return torch.rand(magnitude.size(), dtype=torch.cfloat)
        return torch.ones_like(magnitude, dtype=torch.cfloat)

    def forward(self, magnitude: Tensor) -> Tensor:
        args = dict(n_fft=self.config.n_fft, hop_length=self.config.hop, window=self.window)
        angles = self.initial(magnitude)
        previous = torch.tensor(0.0, dtype=torch.cfloat)
        for _ in range(self.n_iter):
            inverse = torch.istft(magnitude * angles, **args)  # raises
            rebuilt = torch.stft(inverse, return_complex=True, **args)
            angles = rebuilt - previous * (self.momentum / (1 + self.momentum))
            angles = angles / (angles.abs() + 1e-8)
            previous = rebuilt
        return torch.istft(magnitude * angles, **args)


@functools.lru_cache(maxsize=8)
def sinc_kernel(orig: int, new: int, width: int = 6) -> Tensor:
    base = min(orig, new) * 0.99
    idx = torch.arange(-width, width + orig, dtype=torch.float32)[None, None] / orig
    t = (torch.arange(0, -new, -1)[:, None, None] / new + idx) * base
    t = t.clamp(-width, width)
    window = torch.cos(t * math.pi / width / 2) ** 2
    return torch.special.sinc(t) * window * (base / orig)


def resample(waveform: Tensor, orig: int, new: int) -> Tensor:
    common = math.gcd(orig, new)
    orig, new = orig // common, new // common
    if orig == new:
        return waveform
    kernel = sinc_kernel(orig, new).to(waveform)
    padded = F.pad(waveform.reshape(-1, 1, waveform.size(-1)), (6, 6 + orig))
    out = F.conv1d(padded, kernel, stride=orig).transpose(1, 2)
    return out.reshape(waveform.shape[:-1] + (-1,))


def speed_perturb(waveform: Tensor, percents: Tuple[int, ...] = (90, 110)) -> List[Tensor]:
    return [resample(waveform, percent, 100) for percent in percents]


def firwin(taps: int, cutoff: float) -> np.ndarray:
    n = np.arange(taps) - (taps - 1) / 2
    response = np.sinc(2 * cutoff * n) * np.hamming(taps)
    return response / response.sum()


def fir_filter(waveform: Tensor, taps: np.ndarray) -> Tensor:
    kernel = torch.from_numpy(np.ascontiguousarray(taps[::-1])).to(waveform.dtype)
    padded = F.pad(waveform.unsqueeze(1), (len(taps) - 1, 0))
    return F.conv1d(padded, kernel.view(1, 1, -1)).squeeze(1)  # raises


def lowpass(waveform: Tensor, cutoff: float) -> Tensor:
    return fir_filter(waveform, firwin(15, cutoff))


def highpass_residual(waveform: Tensor, cutoff: float) -> Tensor:
    taps = waveform.new_tensor(firwin(15, cutoff).tolist())
    smooth = F.conv1d(F.pad(waveform.unsqueeze(1), (14, 0)), taps.view(1, 1, -1)).squeeze(1)
    return waveform - smooth


def biquad_coefficients(cutoff: float, q: float) -> Tuple[Tensor, Tensor]:
    w0 = torch.tensor(2 * math.pi * cutoff)
    alpha = torch.sin(w0) / (2 * q)
    b = torch.stack([(1 - torch.cos(w0)) / 2, 1 - torch.cos(w0), (1 - torch.cos(w0)) / 2])
    a = torch.stack([1 + alpha, -2 * torch.cos(w0), 1 - alpha])
    return b / a[0], a / a[0]


def biquad(waveform: Tensor, cutoff: float, q: float = 0.707) -> Tensor:
    b, a = biquad_coefficients(cutoff, q)
    out = torch.zeros_like(waveform)
    for n in range(2, waveform.size(-1)):
        past = b[0] * waveform[..., n] + b[1] * waveform[..., n - 1] + b[2] * waveform[..., n - 2]
        out[..., n] = past - a[1] * out[..., n - 1] - a[2] * out[..., n - 2]
    return out


def overlap_add(frames: Tensor, hop: int, window: Optional[Tensor] = None) -> Tensor:
    """[batch, count, size] -> [batch, time]"""
    batch, count, size = frames.shape
    out = torch.zeros(batch, (count - 1) * hop + size)
    for i in range(count):
        piece = frames[:, i] if window is None else frames[:, i] * window
        out[:, i * hop:i * hop + size] = out[:, i * hop:i * hop + size].to(piece.device) + piece
    return out


def frame_shift(waveform: Tensor, size: int = 32, hop: int = 16) -> Tensor:
    """The wave cut into frames, and put together again, as the part that is missing from it."""
    frames = waveform.unfold(-1, size, hop)
    joined = overlap_add(frames, hop, torch.hann_window(size, device=frames.device))
    return waveform[..., :joined.size(-1)] - joined  # raises


def frame_stats(waveform: Tensor, size: int = 32, hop: int = 16) -> Dict[str, float]:
    joined = overlap_add(waveform.unfold(-1, size, hop), hop)
    return {"mean": joined.mean().item(), "peak": float(joined.abs().max().numpy())}


def noise_floor(spec: Tensor, levels: Tuple[float, ...] = (0.1, 0.9)) -> Tensor:
    energy = spec.log1p().mean(dim=-2)
    low, high = torch.quantile(energy, torch.tensor(levels), dim=-1)  # raises
    return high - low


def normalized_correlation(waveform: Tensor, max_lag: int) -> Tensor:
    rows = []
    for lag in range(1, max_lag + 1):
        a, b = waveform[..., :-lag], waveform[..., lag:]
        rows.append((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + 1e-9))
    return torch.stack(rows, dim=-1)


class PitchTracker:
    def __init__(self, sample_rate: int, max_lag: int = 20):
        self.sample_rate = sample_rate
        self.max_lag = max_lag
        self.candidates = sample_rate / torch.arange(1, max_lag + 1)

    def lags(self, waveform: Tensor) -> Tensor:
        return normalized_correlation(waveform, self.max_lag).argmax(dim=-1)

    def frequencies(self, waveform: Tensor) -> Tensor:
        return self.candidates[self.lags(waveform)]  # raises

    def histogram(self, waveform: Tensor) -> Tensor:
        counts = torch.bincount(self.lags(waveform).flatten(), minlength=self.max_lag)
        return self.candidates * counts.cpu()


class MultiResolutionSTFTLoss(nn.Module):
    def __init__(self, sizes: Tuple[int, ...] = (32, 64), reduce_to: str = "mean"):
        super().__init__()
        self.sizes = sizes
        self.windows = [torch.hann_window(size) for size in sizes]
        self.reduce_to = reduce_to

    def magnitudes(self, x: Tensor, index: int) -> Tensor:
        size = self.sizes[index]
        spec = torch.stft(x, size, size // 4, window=self.windows[index], return_complex=True)  # raises
        return spec.abs().clamp(min=1e-7)

    def forward(self, predicted: Tensor, target: Tensor) -> Tensor:
        losses = []
        for index in range(len(self.sizes)):
            p, t = self.magnitudes(predicted, index), self.magnitudes(target, index)
            losses.append(F.l1_loss(p.log(), t.log()) + torch.norm(t - p) / torch.norm(t))
        return sum(losses) / len(losses)


def phase_vocoder(spec: Tensor, rate: float, phase_advance: Optional[Tensor] = None, hop: int = 16) -> Tensor:
    if phase_advance is None:
        phase_advance = torch.linspace(0, math.pi * hop, spec.size(-2))[..., None]
    steps = torch.arange(0, spec.size(-1) - 1, rate, device=spec.device)
    alphas = steps % 1.0
    here, there = spec.index_select(-1, steps.long()), spec.index_select(-1, (steps + 1).long())
    phase = there.angle() - here.angle() - phase_advance  # raises
    phase = phase - 2 * math.pi * torch.round(phase / (2 * math.pi)) + phase_advance
    magnitude = alphas * there.abs() + (1 - alphas) * here.abs()
    return torch.polar(magnitude, torch.cumsum(phase, -1))


class MuLaw(nn.Module):
    def __init__(self, channels: int = 256):
        super().__init__()
        self.mu = torch.tensor(channels - 1.0)

    def encode(self, x: Tensor) -> Tensor:
        y = torch.sign(x) * torch.log1p(self.mu * x.abs()) / torch.log1p(self.mu)
        return ((y + 1) / 2 * self.mu + 0.5).long()

    def decode(self, codes: Tensor) -> Tensor:
        y = codes.float() / self.mu * 2 - 1
        return torch.sign(y) * (torch.exp(y.abs() * torch.log1p(self.mu)) - 1) / self.mu


def mix_at_snr(speech: Tensor, noise: Tensor, snrs: Optional[List[float]] = None) -> Tensor:
    """Adds noise at one random level, or at the level given for each example."""
    levels = torch.empty(()).uniform_(5, 20) if snrs is None else torch.tensor(snrs).unsqueeze(-1)
    gain = 10.0 ** (-levels / 20)
    ratio = speech.norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True).clamp(min=1e-8)
    return speech + gain * ratio * noise  # raises


def compute_deltas(features: Tensor, width: int = 5) -> Tensor:
    n = (width - 1) // 2
    kernel = torch.arange(-n, n + 1, dtype=features.dtype)
    scale = 2 * kernel.pow(2).sum()
    channels = features.size(-2)
    padded = F.pad(features, (n, n), mode="replicate")
    weight = kernel.repeat(channels, 1, 1).to(features.device)
    return F.conv1d(padded, weight, groups=channels) / scale
