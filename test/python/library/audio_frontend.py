"""Audio features, augmentation and vocoder losses."""
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import List

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@dataclass
class AudioConfig:
    sample_rate: int = 16000
    n_fft: int = 64
    hop_length: int = 16
    n_mels: int = 8
    n_mfcc: int = 6
    mu: int = 255


def mel_filterbank(cfg: AudioConfig):
    bins = cfg.n_fft // 2 + 1
    to_mel = lambda f: 2595 * math.log10(1 + f / 700)
    mels = torch.linspace(0, to_mel(cfg.sample_rate / 2), cfg.n_mels + 2)
    centres = 700 * (10 ** (mels / 2595) - 1)
    freqs = torch.linspace(0, cfg.sample_rate / 2, bins)
    slopes = (freqs[None] - centres[:, None]) / (centres[1:] - centres[:-1]).mean()
    return (1 - slopes[1:-1].abs()).clamp(min=0)


def create_dct(n_mfcc, n_mels):
    n = torch.arange(n_mels).float()
    dct = torch.cos(math.pi / n_mels * (n + 0.5) * torch.arange(n_mfcc).float()[:, None])
    dct[0] *= 1 / math.sqrt(2)
    return dct.t() * math.sqrt(2 / n_mels)


class Spectrogram(nn.Module):
    def __init__(self, cfg: AudioConfig, window_fn=torch.hann_window):
        super().__init__()
        self.cfg = cfg
        self.register_buffer("window", window_fn(cfg.n_fft))

    def forward(self, wav):
        spec = torch.stft(wav, self.cfg.n_fft, self.cfg.hop_length, window=self.window, return_complex=True)
        return spec.abs()


class LogMel(nn.Module):
    def __init__(self, cfg: AudioConfig):
        super().__init__()
        self.spectrogram = Spectrogram(cfg)
        self.register_buffer("fbank", mel_filterbank(cfg))
        self.floor = torch.tensor(1e-5)

    def forward(self, wav):
        mel = torch.matmul(self.fbank, self.spectrogram(wav))
        return torch.maximum(mel, self.floor).log()


class MFCC(nn.Module):
    def __init__(self, cfg: AudioConfig):
        super().__init__()
        self.cfg = cfg
        self.logmel = LogMel(cfg)

    def forward(self, wav):
        mel = self.logmel(wav)
        dct = create_dct(self.cfg.n_mfcc, self.cfg.n_mels)
        return torch.matmul(mel.transpose(1, 2), dct).transpose(1, 2)  # raises


class DeltaFeatures(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.width = width
        self.kernel = torch.arange(-width, width + 1).float() / (2 * sum(i * i for i in range(1, width + 1)))

    def forward(self, feats):
        kernel = self.kernel.type_as(feats).expand(feats.size(1), 1, -1)
        return F.conv1d(F.pad(feats, (self.width, self.width), mode="replicate"), kernel, groups=feats.size(1))


class RunningCMVN:
    """Mean and variance normalisation with statistics gathered over the training set."""

    def __init__(self, dim, momentum=0.95):
        self.momentum = momentum
        self.mean = torch.zeros(dim)
        self.std = torch.ones(dim)
        self.frozen = False

    def update(self, feats):
        self.mean.mul_(self.momentum).add_(feats.mean(dim=(0, 2)), alpha=1 - self.momentum)  # raises
        self.std.copy_(feats.std(dim=(0, 2)))

    def load(self, mean: List[float], std: List[float], like):
        self.mean, self.std = like.new_tensor(mean), like.new_tensor(std)
        self.frozen = True

    def __call__(self, feats):
        if not self.frozen:
            self.update(feats)
        return (feats - self.mean[:, None]) / self.std[:, None]


class SpecAugment:
    def __init__(self, time_width=4, freq_width=2):
        self.time_width, self.freq_width = time_width, freq_width

    def _mask(self, size, width):
        start = random.randint(0, size - width)
        steps = torch.arange(size)
        return (steps >= start) & (steps < start + width)

    def mask_frequencies(self, spec):
        spec = spec.clone()
        spec[:, self._mask(spec.size(1), self.freq_width)] = 0.0
        return spec

    def mask_times(self, spec):
        mask = self._mask(spec.size(2), self.time_width)
        return spec.masked_fill(mask, 0.0)  # raises


class AddNoise:
    def __init__(self, noises: List[torch.Tensor], snr_db=(5, 20)):
        self.noises, self.snr_db = noises, snr_db

    def __call__(self, wav):
        noise = random.choice(self.noises)
        noise = noise.repeat(math.ceil(wav.size(-1) / noise.numel()))[:wav.size(-1)].to(wav.device)
        snr = torch.tensor(random.uniform(*self.snr_db))
        gain = wav.norm(dim=-1, keepdim=True) / (noise.norm() * 10 ** (snr / 20)).clamp(min=1e-8)
        return wav + gain * noise


class PreEmphasis(nn.Module):
    def __init__(self, coef=0.97):
        super().__init__()
        self.coef = coef
        self.weight = torch.tensor([[[-coef, 1.0]]])

    def forward(self, wav):
        padded = F.pad(wav.unsqueeze(1), (1, 0), mode="reflect")
        return F.conv1d(padded, self.weight).squeeze(1)  # raises

    def inverse(self, wav):
        out, last = [], torch.tensor(0.0)
        for sample in wav.unbind(-1):
            last = sample + self.coef * last
            out.append(last)
        return torch.stack(out, dim=-1)


class MuLawQuantizer(nn.Module):
    def __init__(self, cfg: AudioConfig):
        super().__init__()
        self.mu = cfg.mu
        self.edges = torch.linspace(-1, 1, cfg.mu + 1)[1:-1]

    def compress(self, wav):
        return wav.sign() * torch.log1p(self.mu * wav.abs()) / torch.log1p(torch.tensor(float(self.mu)))

    def forward(self, wav):
        return torch.bucketize(self.compress(wav.clamp(-1, 1)), self.edges)  # raises


def length_mask(lengths, max_len=None):
    max_len = int(lengths.max()) if max_len is None else max_len
    return torch.arange(max_len).to(lengths)[None] < lengths[:, None]


class UtteranceEncoder(nn.Module):
    def __init__(self, n_feats, dim):
        super().__init__()
        self.rnn = nn.GRU(n_feats, dim, batch_first=True)

    def pooled(self, feats, lengths):
        hidden, _ = self.rnn(feats)
        mask = length_mask(lengths, feats.size(1)).unsqueeze(-1)
        return (hidden * mask).sum(1) / lengths[:, None]

    def forward(self, feats, lengths):
        packed = pack_padded_sequence(feats, lengths, batch_first=True, enforce_sorted=False)  # raises
        hidden, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return hidden


def griffin_lim(magnitude, cfg: AudioConfig, iters=2):
    window = torch.hann_window(cfg.n_fft, device=magnitude.device)
    phase = 2 * math.pi * torch.rand(magnitude.shape)
    spec = torch.polar(magnitude, phase)  # raises
    for _ in range(iters):
        wav = torch.istft(spec, cfg.n_fft, cfg.hop_length, window=window)
        rebuilt = torch.stft(wav, cfg.n_fft, cfg.hop_length, window=window, return_complex=True)
        spec = torch.polar(magnitude, rebuilt.angle())
    return torch.istft(spec, cfg.n_fft, cfg.hop_length, window=window)


class PeriodDiscriminator(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period = period
        self.conv = nn.Conv2d(1, 4, (3, 1), padding=(1, 0))
        self.post = nn.Conv2d(4, 1, (3, 1), padding=(1, 0))

    def forward(self, wav):
        wav = F.pad(wav, (0, -wav.size(-1) % self.period))
        x = wav.view(wav.size(0), 1, -1, self.period)
        return self.post(F.leaky_relu(self.conv(x), 0.1)).flatten(1)


class MultiPeriodDiscriminator(nn.Module):
    def __init__(self, periods=(2, 3, 5)):
        super().__init__()
        self.discriminators = nn.ModuleList(PeriodDiscriminator(p) for p in periods)

    def forward(self, real, fake):
        return [d(real) for d in self.discriminators], [d(fake) for d in self.discriminators]


class MultiResolutionSTFTLoss(nn.Module):
    def __init__(self, sizes=(32, 64)):
        super().__init__()
        self.windows = {size: torch.hann_window(size) for size in sizes}

    def forward(self, fake, real):
        total = 0.0
        for size, window in self.windows.items():
            a, b = (torch.stft(x, size, size // 4, window=window, return_complex=True).abs() for x in (fake, real))  # raises
            total = total + (a - b).norm() / b.norm() + F.l1_loss(a.clamp(min=1e-5).log(), b.clamp(min=1e-5).log())
        return total / len(self.windows)


class LossHistory:
    def __init__(self):
        self.values = defaultdict(list)

    def add(self, **losses):
        for name, value in losses.items():
            self.values[name].append(value.detach())

    def latest(self):
        return {name: float(values[-1]) for name, values in self.values.items()}

    def averages(self):
        return {name: np.mean(values) for name, values in self.values.items()}  # raises
