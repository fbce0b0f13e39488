"""Speech front ends: spectra, mel and cepstral features, augmentation, alignment and scores."""

import functools
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

WINDOWS = {
    "hann": torch.hann_window,
    "hamming": torch.hamming_window,
    "povey": lambda n, **options: torch.hann_window(n, periodic=False, **options).pow(0.85),
}


def hertz_to_mel(f):
    return 2595.0 * math.log10(1.0 + f / 700.0)


def mel_points(low, high, count):
    mel = torch.linspace(hertz_to_mel(low), hertz_to_mel(high), count)
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


@functools.lru_cache(maxsize=None)
def mel_matrix(n_fft, n_mels, rate):
    points = mel_points(20.0, rate / 2, n_mels + 2)
    bins = torch.linspace(0, rate / 2, n_fft // 2 + 1)
    up = (bins[None] - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    down = (points[2:, None] - bins[None]) / (points[2:] - points[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0)


def cosine_basis(count, n_mels, device=None):
    n = torch.arange(n_mels, device=device, dtype=torch.float32)
    k = torch.arange(count, device=device, dtype=torch.float32)[:, None]
    basis = torch.cos(math.pi / n_mels * (n + 0.5) * k) * math.sqrt(2.0 / n_mels)
    basis[0] *= 1 / math.sqrt(2.0)
    return basis


def spectrum(wave, n_fft=64, hop=16, window="hann"):
    shape = WINDOWS[window](n_fft, device=wave.device)
    frames = wave.unfold(-1, n_fft, hop) * shape
    return torch.fft.rfft(frames, dim=-1).abs().square().transpose(-1, -2)


def mel_spectrum(wave, n_mels=8, rate=16000, n_fft=64):
    power = spectrum(wave, n_fft)
    return mel_matrix(n_fft, n_mels, rate) @ power  # raises


def log_mel_spectrum(wave, n_mels=8, rate=16000, n_fft=64, floor=1e-6):
    power = spectrum(wave, n_fft)
    bank = mel_matrix(n_fft, n_mels, rate).to(power)
    return torch.log(torch.maximum(bank @ power, torch.tensor(floor)))


def cepstra(wave, count=5, lifter=0):
    mel = log_mel_spectrum(wave)
    out = torch.matmul(cosine_basis(count, mel.size(-2), mel.device), mel)
    if lifter > 0:
        weight = 1 + lifter / 2 * torch.sin(math.pi * torch.arange(count) / lifter)
        out = out * weight.unsqueeze(-1)  # raises
    return out


def pitch_by_lag(wave, rate=16000, low=80, high=400):
    size = wave.size(-1)
    spec = torch.fft.rfft(wave, n=2 * size)
    corr = torch.fft.irfft(spec * spec.conj())[..., :size]
    lags = torch.arange(rate // high, min(rate // low, size))
    best = corr[..., lags].argmax(-1)
    return rate / lags.to(best.device)[best]


def voiced_pitch(wave, rate=16000, bins=(0.0, 100.0, 200.0, 300.0)):
    pitch = pitch_by_lag(wave, rate)
    edges = torch.tensor(bins)
    return torch.bucketize(pitch.cpu(), edges).to(wave.device)


def pitch_class(wave, rate=16000, bins=(0.0, 100.0, 200.0, 300.0)):
    pitch = pitch_by_lag(wave, rate)
    centres = torch.tensor(bins)
    return (pitch[..., None] - centres).abs().argmin(-1)  # raises


class PreEmphasis(nn.Module):
    def __init__(self, alpha=0.97):
        super().__init__()
        self.kernel = torch.tensor([[[-alpha, 1.0]]])

    def forward(self, wave):
        padded = F.pad(wave.unsqueeze(1), (1, 0), mode="reflect")
        return F.conv1d(padded, self.kernel).squeeze(1)  # raises


class Emphasised(nn.Module):
    def __init__(self, alpha=0.97):
        super().__init__()
        self.alpha = torch.tensor(alpha)

    def forward(self, wave):
        return torch.cat([wave[:, :1], wave[:, 1:] - self.alpha * wave[:, :-1]], dim=1)


class Normaliser(nn.Module):
    """Mean and variance, of the utterance or of a corpus."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("std", torch.ones(width))

    @classmethod
    def from_file(cls, arrays):
        self = cls(len(arrays["mean"]))
        self.load_state_dict({key: torch.as_tensor(arrays[key], dtype=torch.float32) for key in ("mean", "std")})
        return self

    def fit(self, batches):
        total, square, count = 0.0, 0.0, 0
        for each in batches:
            each = each.cpu().double()
            total, square, count = total + each.sum(0), square + each.square().sum(0), count + len(each)
        mean = total / count
        self.mean = mean.float()
        self.std.copy_((square / count - mean ** 2).clamp(min=self.eps).sqrt())
        return self

    def forward(self, x):
        return (x - self.mean) / (self.std + self.eps)  # raises


class MaskBands(nn.Module):
    """Stripes of time or of frequency are blanked."""

    def __init__(self, width, count=1, fill=0.0):
        super().__init__()
        self.width, self.count, self.fill = width, count, fill

    def stripe(self, size, x):
        start = torch.randint(0, size - self.width, (x.size(0), 1))
        position = torch.arange(size)
        return (position >= start) & (position < start + self.width)

    def apply_along(self, x, dim):
        mask = self.stripe(x.size(dim), x)
        shape = [x.size(0), 1, 1]
        shape[dim] = x.size(dim)
        return x.masked_fill(mask.view(shape), self.fill)  # raises

    def forward(self, x):
        for _ in range(self.count if self.training else 0):
            x = self.apply_along(x, 1)
        return x


class MaskTime(MaskBands):
    def stripe(self, size, x):
        start = torch.randint(0, size - self.width, (x.size(0), 1), device=x.device)
        position = torch.arange(size).to(start)
        return (position >= start) & (position < start + self.width)


class Reverb(nn.Module):
    def __init__(self, responses):
        super().__init__()
        self.responses = [torch.from_numpy(np.asarray(each, dtype=np.float32)) for each in responses]

    def _convolve(self, wave, response):
        size = wave.size(-1) + response.size(-1) - 1
        return torch.fft.irfft(torch.fft.rfft(wave, size) * torch.fft.rfft(response, size), size)  # raises

    def forward(self, wave, index=None):
        if index is None:
            index = int(torch.randint(len(self.responses), ()))
        return self._convolve(wave, self.responses[index])[..., :wave.size(-1)]

    def dry(self, wave, index=0):
        return self._convolve(wave, self.responses[index].to(wave.device))


def mixed_noise(wave, noise, snr_db):
    """The noise goes where the wave is; its offset is drawn on the host."""
    offset = torch.randint(0, noise.size(-1) - wave.size(-1) + 1, (1,)).item()
    part = noise[..., offset:offset + wave.size(-1)].to(wave.device)
    ratio = wave.norm() / part.norm() / 10 ** (torch.as_tensor(snr_db) / 20)
    return wave + ratio * part


def dithered(wave, amount=1e-4, generator=None):
    noise = torch.empty(wave.shape).uniform_(-1, 1, generator=generator)
    return torch.add(wave, noise, alpha=amount)  # raises


def dithered_like(wave, amount=1e-4):
    return wave.add(torch.rand_like(wave).mul_(2).sub_(1), alpha=amount)


def mask_of(lengths, size=None):
    size = int(lengths.max()) if size is None else size
    return torch.arange(size)[None].to(lengths.device) < lengths[:, None]


class Recogniser(nn.Module):
    def __init__(self, width, hidden, tokens):
        super().__init__()
        self.rnn = nn.GRU(width, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tokens)
        self.hidden = hidden

    def encode(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.size(1))[0]

    def forward(self, x, lengths):
        encoded = self.encode(x, lengths)
        encoded = encoded * mask_of(lengths, x.size(1)).unsqueeze(-1)
        return self.out(encoded).log_softmax(-1)

    def stream(self, chunks, state=None):
        for chunk in chunks:
            if state is None:
                state = torch.zeros(1, chunk.size(0), self.hidden)
            out, state = self.rnn(chunk, state)  # raises
            yield self.out(out)


class PackedRecogniser(Recogniser):
    def encode(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.size(1))[0]


def greedy_tokens(log_probs, blank=0):
    best = log_probs.argmax(-1)
    sequences = []
    for row in best:
        row = torch.unique_consecutive(row)
        sequences.append(row[row != blank])
    return pad_sequence(sequences, batch_first=True, padding_value=blank)


def edit_distance(reference, hypothesis):
    table = np.zeros((len(reference) + 1, len(hypothesis) + 1), dtype=np.int64)
    table[:, 0], table[0] = np.arange(len(reference) + 1), np.arange(len(hypothesis) + 1)
    for i, r in enumerate(reference, 1):
        for j, h in enumerate(hypothesis, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (r != h))
    return int(table[-1, -1])


def error_rate(log_probs, references):
    hypotheses = greedy_tokens(log_probs).tolist()
    distances = torch.tensor([edit_distance(r.tolist(), h) for r, h in zip(references, hypotheses)])
    return distances.float().mean()


def error_rates(log_probs, references, lengths):
    hypotheses = greedy_tokens(log_probs).tolist()
    distances = torch.tensor([edit_distance(r.tolist(), h) for r, h in zip(references, hypotheses)])
    return distances / lengths  # raises


def duration_targets(alignment):
    """How many frames each phone has in a hard alignment."""
    counts = torch.zeros(alignment.shape[0], alignment.shape[1], dtype=torch.long, device=alignment.device)
    best = np.asarray(alignment.argmax(1))  # raises
    for index, row in enumerate(best):
        counts[index] = torch.from_numpy(np.bincount(row, minlength=counts.size(1)))
    return counts


def expanded(phones, durations):
    return pad_sequence([p.repeat_interleave(d, dim=0) for p, d in zip(phones, durations)], batch_first=True)


def expanded_rounded(phones, log_durations, scale=1.0):
    durations = (log_durations.exp() * scale).round().clamp(min=1).long().tolist()
    rows = [p.repeat_interleave(torch.tensor(d), dim=0) for p, d in zip(phones, durations)]  # raises
    return pad_sequence(rows, batch_first=True)


@dataclass
class Utterances:
    wave: torch.Tensor
    lengths: torch.Tensor
    rates: torch.Tensor = field(default_factory=lambda: torch.tensor(16000))

    def seconds(self):
        return self.lengths / self.rates

    def trimmed(self):
        return [w[:n] for w, n in zip(self.wave, self.lengths)]


def collate_waves(items):
    """Batches are made on the host by the loader."""
    waves = [torch.as_tensor(each["wave"], dtype=torch.float32) for each in items]
    lengths = torch.tensor([len(w) for w in waves])
    return Utterances(pad_sequence(waves, batch_first=True), lengths)
