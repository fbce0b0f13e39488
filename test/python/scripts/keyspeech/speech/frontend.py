import math

import torch
from torch import nn


def mel_matrix(bins, n_fft):
    mel = torch.linspace(0, 1, bins + 2) ** 1.5 * (n_fft // 2)
    freq = torch.arange(n_fft // 2 + 1).float()[:, None]
    left, center, right = mel[:-2], mel[1:-1], mel[2:]
    up, down = (freq - left) / (center - left), (right - freq) / (right - center)
    return torch.minimum(up, down).clamp(min=0)


def dct_matrix(n, bins):
    k, i = torch.arange(n).float()[None], torch.arange(bins).float()[:, None]
    return torch.cos(math.pi / bins * (i + 0.5) * k)


class Spectrogram(nn.Module):
    def __init__(self, n_fft, hop):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer('window', torch.hann_window(n_fft), persistent=False)

    def forward(self, waves):
        frames = waves.unfold(-1, self.n_fft, self.hop) * self.window
        return torch.fft.rfft(frames).abs() ** 2

    def out_lengths(self, lengths):
        return torch.div(lengths - self.n_fft, self.hop, rounding_mode='floor') + 1


class Fbank(Spectrogram):
    def __init__(self, bins, n_fft, hop):
        super().__init__(n_fft, hop)
        self.register_buffer('mel', mel_matrix(bins, n_fft))

    def forward(self, waves):
        return (super().forward(waves) @ self.mel + 1e-6).log()


class MFCC(Fbank):
    def __init__(self, bins, n_fft, hop):
        super().__init__(bins, n_fft, hop)
        self.dct = dct_matrix(bins, bins)
        self.floor = torch.tensor(-8.0)

    def forward(self, waves):
        log_mel = torch.maximum(super().forward(waves), self.floor)
        return log_mel @ self.dct  # raises


class PreEmphasis(nn.Module):
    def __init__(self, inner, coefficient=0.97):
        super().__init__()
        self.inner = inner
        self.taps = torch.tensor([-coefficient, 1.0])
        self.out_lengths = inner.out_lengths

    def forward(self, waves):
        taps = self.taps.to(waves).view(1, 1, -1)
        padded = nn.functional.pad(waves.unsqueeze(1), (1, 0))
        return self.inner(nn.functional.conv1d(padded, taps).squeeze(1))


def build_frontend(settings):
    kinds = {'fbank': Fbank, 'mfcc': MFCC, 'emph': lambda *a: PreEmphasis(Fbank(*a))}
    return kinds[settings.features](settings.mel_bins, settings.n_fft, settings.hop)
