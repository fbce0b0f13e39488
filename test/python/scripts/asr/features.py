import math

import torch
import torch.nn as nn


def mel_matrix(n_freqs, n_mels, rate):
    def to_mel(f):
        return 2595.0 * math.log10(1.0 + f / 700.0)

    points = torch.linspace(to_mel(20.0), to_mel(rate / 2), n_mels + 2)
    hz = 700.0 * (10 ** (points / 2595.0) - 1)
    freqs = torch.linspace(0, rate / 2, n_freqs)
    up = (freqs[:, None] - hz[:-2]) / (hz[1:-1] - hz[:-2])
    down = (hz[2:] - freqs[:, None]) / (hz[2:] - hz[1:-1])
    return torch.minimum(up, down).clamp(min=0)


class LogMel(nn.Module):
    def __init__(self, n_fft=64, hop=32, n_mels=12, rate=4000, window='hann'):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer('mel', mel_matrix(n_fft // 2 + 1, n_mels, rate))
        makers = {'hann': torch.hann_window, 'hamming': torch.hamming_window}
        self.register_buffer('window', makers[window](n_fft))

    def lengths(self, samples):
        return torch.div(samples, self.hop, rounding_mode='floor') + 1

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = spec.abs().pow(2).transpose(1, 2)
        return (power @ self.mel + 1e-6).log()


class PreEmphasis(nn.Module):
    def __init__(self, coef=0.97):
        super().__init__()
        self.kernel = torch.tensor([[[-coef, 1.0]]])

    def forward(self, wave):
        padded = nn.functional.pad(wave.unsqueeze(1), (1, 0), mode='reflect')
        return nn.functional.conv1d(padded, self.kernel.to(wave)).squeeze(1)


class SpecMask(nn.Module):
    """Blanks bands of frequency or time, only while training."""

    def __init__(self, width=3, fill='zero'):
        super().__init__()
        self.width, self.fill = width, fill

    def forward(self, x):
        if not self.training:
            return x
        start = torch.randint(0, x.size(2) - self.width, (1,)).item()
        band = torch.zeros(x.size(2), dtype=torch.bool)
        band[start:start + self.width] = True
        if self.fill == 'zero':
            return x * (~band).to(x.device)
        return x.masked_fill(band.type_as(x).bool(), x.mean().item())
