import math

import numpy as np
import torch
import torch.nn as nn


def synth(label, n=256, sr=2000, rng=None):
    rng = rng or np.random
    t = np.arange(n) / sr
    wave = np.sin(2 * math.pi * (100 + 150 * label) * t + rng.uniform(0, 6))
    return (wave + 0.1 * rng.randn(n)).astype(np.float32)


class LogSpectrogram(nn.Module):
    def __init__(self, n_fft=32, hop=16):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.mean = self.std = None

    def fit(self, waves):
        with torch.no_grad():
            spec = self._spec(waves)
        self.mean, self.std = float(spec.mean()), float(spec.std())
        return self

    def _spec(self, x):
        frames = x.unfold(-1, self.n_fft, self.hop) * self.window
        return torch.log1p(torch.fft.rfft(frames).abs()).transpose(1, 2)

    def forward(self, x):
        s = self._spec(x)
        return s if self.mean is None else (s - self.mean) / self.std


class Mixer:
    """Mixes waves and their targets on whatever device they are."""

    def __init__(self, alpha=0.3, seed=0):
        self.rng = np.random.default_rng(seed)
        self.alpha = alpha

    def __call__(self, x, y):
        lam = torch.from_numpy(self.rng.beta(self.alpha, self.alpha, len(x)).astype("float32")).to(x.device)
        perm = torch.from_numpy(self.rng.permutation(len(x)))
        return x * lam[:, None] + x[perm] * (1 - lam)[:, None], y * lam[:, None] + y[perm] * (1 - lam)[:, None]
