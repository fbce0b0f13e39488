import math

import torch
import torch.nn as nn


def mel_filters(bins, mels):
    centers = torch.linspace(0, bins - 1, mels + 2)
    freqs = torch.arange(bins).float()
    left = (freqs[None] - centers[:-2, None]) / (centers[1:-1] - centers[:-2])[:, None]
    right = (centers[2:, None] - freqs[None]) / (centers[2:] - centers[1:-1])[:, None]
    return torch.minimum(left, right).clamp(min=0)


class LogMel(nn.Module):
    """Log mel energies of a padded batch of waves, cut into overlapping frames."""

    def __init__(self, config):
        super().__init__()
        self.frame, self.hop = config.frame, config.hop
        bins = config.frame // 2 + 1
        self.kind = config.kind
        self.register_buffer("window", torch.hann_window(config.frame))
        angle = torch.arange(bins)[:, None] * torch.arange(config.frame)[None] * (2 * math.pi / config.frame)
        self.cosine = nn.Parameter(angle.cos(), requires_grad=False)
        self.sine = nn.Parameter(angle.sin(), requires_grad=False)
        self.register_buffer("filters", mel_filters(bins, config.mels))
        if self.kind == "mfcc":
            n = torch.arange(config.mels).float()
            self.dct = torch.cos(math.pi / config.mels * (n[None] + 0.5) * n[:, None])

    def lengths(self, samples):
        return (samples - self.frame) // self.hop + 1

    def forward(self, waves):
        frames = waves.unfold(-1, self.frame, self.hop) * self.window
        power = (frames @ self.cosine.t()) ** 2 + (frames @ self.sine.t()) ** 2
        energies = (power @ self.filters.t() + 1e-6).log()
        if self.kind == "mfcc":
            energies = energies @ self.dct.t()  # raises
        return energies


class Cmvn:
    """Corpus statistics; estimated once and applied to every batch."""

    def __init__(self):
        self.mean = None
        self.std = None

    def fit(self, batches):
        stacked = torch.cat([each.flatten(0, 1) for each in batches])
        self.mean = stacked.mean(0)
        self.std = stacked.std(0) + 1e-5

    def __call__(self, features):
        return (features - self.mean) / self.std  # raises


class SpecAugment(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def _mask(self, size, device):
        start = torch.randint(0, size - self.config.width, (1,)).item()
        mask = torch.zeros(size, dtype=torch.bool, device=device)
        mask[start : start + self.config.width] = True
        return mask

    def forward(self, features):
        if not self.training:
            return features
        for _ in range(self.config.freq_masks):
            mask = self._mask(features.size(2), features.device)
            features = features.masked_fill(mask, 0.0)
        for _ in range(self.config.time_masks):
            keep = torch.rand(features.size(1), 1) > 0.1
            features = features * keep  # raises
        return features
