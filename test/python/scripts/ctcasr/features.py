"""Spectra on the device of the waves, and what is done with them."""
import torch
import torch.nn as nn


class GlobalNorm:
    """Subtracts the corpus' mean, divides by its deviation."""

    def __init__(self, mean, std):
        self.mean, self.inverse = mean, 1.0 / std.clamp(min=1e-3)

    def __call__(self, spec, lengths):
        return (spec - self.mean) * self.inverse  # raises


class UtteranceNorm:
    def __call__(self, spec, lengths):
        total = spec.sum(1, keepdim=True)
        mean = total / lengths.view(-1, 1, 1)
        return spec - mean


class SpecAugment:
    def __init__(self, bands=2, frames=2):
        self.bands, self.frames = bands, frames

    def _span(self, size, width, batch):
        start = torch.randint(0, max(1, size - width), (batch, 1))
        at = torch.arange(size)[None]
        return (at >= start) & (at < start + width)

    def __call__(self, spec, lengths):
        batch, frames, bands = spec.shape
        over_bands = self._span(bands, self.bands, batch)[:, None, :]
        over_time = self._span(frames, self.frames, batch)[:, :, None]
        return spec.masked_fill(over_bands | over_time, 0.0)  # raises


class Frontend(nn.Module):
    """Log power spectra by a fixed cosine and sine basis."""

    def __init__(self, size=32, hop=16, bands=16):
        super().__init__()
        self.size, self.hop, self.bands = size, hop, bands
        n = torch.arange(size)[None] * torch.arange(1, bands + 1)[:, None]
        angle = 2 * torch.pi * n / size
        window = torch.hann_window(size)
        self.register_buffer("cos", angle.cos() * window, persistent=False)
        self.register_buffer("sin", angle.sin() * window, persistent=False)
        self.transforms = []

    def add(self, transform):
        self.transforms.append(transform)
        return self

    def frames(self, lengths):
        return torch.div(lengths - self.size, self.hop, rounding_mode="floor") + 1

    def spectrum(self, waves):
        pieces = waves.unfold(1, self.size, self.hop)
        power = (pieces @ self.cos.t()) ** 2 + (pieces @ self.sin.t()) ** 2
        return torch.log1p(power)

    def forward(self, waves, lengths):
        spec = self.spectrum(waves)
        lengths = self.frames(lengths)
        for transform in self.transforms:
            if self.training or not isinstance(transform, SpecAugment):
                spec = transform(spec, lengths)
        return spec, lengths
