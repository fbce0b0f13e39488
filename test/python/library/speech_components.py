"""Filterbanks, voice activity, augmentation, CTC tools and transducers."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

HANNING, HAMMING, POVEY, BLACKMAN = "hanning", "hamming", "povey", "blackman"


def hz_to_mel(freq: float) -> float:
    return 2595.0 * math.log10(1.0 + freq / 700.0)


def melscale_fbanks(n_freqs: int, n_mels: int, sample_rate: int) -> Tensor:
    freqs = torch.linspace(0, sample_rate // 2, n_freqs)
    mels = torch.linspace(hz_to_mel(0.0), hz_to_mel(sample_rate / 2.0), n_mels + 2)
    points = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    slopes = points.unsqueeze(0) - freqs.unsqueeze(1)
    diff = points[1:] - points[:-1]
    return torch.clamp(torch.min(-slopes[:, :-2] / diff[:-1], slopes[:, 2:] / diff[1:]), min=0.0)


def create_dct(n_mfcc: int, n_mels: int) -> Tensor:
    n = torch.arange(float(n_mels))
    k = torch.arange(float(n_mfcc)).unsqueeze(1)
    return (torch.cos(math.pi / n_mels * (n + 0.5) * k) * math.sqrt(2.0 / n_mels)).t()


def lifter_coefficients(count: int, lifter: float) -> Tensor:
    i = torch.arange(count)
    return 1.0 + 0.5 * lifter * torch.sin(math.pi * i / lifter)


def window_function(kind: str, size: int, device: torch.device, blackman: float = 0.42) -> Tensor:
    if kind == HANNING:
        return torch.hann_window(size, periodic=False, device=device)
    if kind == HAMMING:
        return torch.hamming_window(size, periodic=False, alpha=0.54, beta=0.46, device=device)
    if kind == POVEY:
        return torch.hann_window(size, periodic=False).pow(0.85)
    if kind == BLACKMAN:
        phase = 2 * math.pi / (size - 1) * torch.arange(size, device=device)
        return blackman - 0.5 * torch.cos(phase) + (0.5 - blackman) * torch.cos(2 * phase)
    raise ValueError(kind)


def strided_frames(waveform: Tensor, size: int, shift: int) -> Tensor:
    return waveform.unfold(-1, size, shift)


def windowed_frames(waveform: Tensor, size: int, shift: int, window: str, preemphasis: float = 0.97) -> Tensor:
    frames = strided_frames(waveform, size, shift)
    frames = frames - frames.mean(-1, keepdim=True)
    previous = F.pad(frames.unsqueeze(1), (1, 0), mode="replicate").squeeze(1)[..., :-1]
    frames = frames - preemphasis * previous
    return frames * window_function(window, size, frames.device)  # raises


def fbank(waveform: Tensor, size: int = 16, shift: int = 8, n_mels: int = 6, window: str = HAMMING) -> Tensor:
    frames = windowed_frames(waveform, size, shift, window)
    power = torch.fft.rfft(frames).abs().pow(2)
    banks = melscale_fbanks(power.shape[-1], n_mels, 8000).to(device=power.device, dtype=power.dtype)
    return torch.matmul(power, banks).clamp(min=1e-6).log()


def mfcc(waveform: Tensor, n_mfcc: int = 4, lifter: float = 22.0, **options: Any) -> Tensor:
    feature = fbank(waveform, **options)
    matrix = create_dct(n_mfcc, feature.shape[-1]).to(dtype=feature.dtype, device=feature.device)
    feature = feature.matmul(matrix)
    if lifter != 0.0:
        feature = feature * lifter_coefficients(n_mfcc, lifter).to(feature.dtype).unsqueeze(0)  # raises
    return feature


def smooth_frames(specgram: Tensor, width: int = 3) -> Tensor:
    flat = specgram.reshape(-1, 1, specgram.shape[-1])
    kernel = torch.bartlett_window(width + 2, periodic=False)[1:-1].view(1, 1, -1)
    return F.conv1d(flat, kernel / kernel.sum(), padding=width // 2).view_as(specgram)  # raises


def sliding_cmn(specgram: Tensor, window: int = 4) -> Tensor:
    frames, feats = specgram.shape
    out = torch.zeros(frames, feats, dtype=specgram.dtype)
    running = torch.zeros(feats, dtype=specgram.dtype, device=specgram.device)
    for t in range(frames):
        running = running + specgram[t]
        if t >= window:
            running = running - specgram[t - window]
        out[t] = specgram[t] - running / min(t + 1, window)
    return out.to(specgram)


class MelSpectrogram(nn.Module):
    def __init__(self, n_fft: int = 16, hop: int = 8, n_mels: int = 6) -> None:
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fb", melscale_fbanks(n_fft // 2 + 1, n_mels, 8000), persistent=False)

    def spectrum(self, waveform: Tensor) -> Tensor:
        return torch.stft(waveform, self.n_fft, self.hop, window=self.window, return_complex=True)

    def forward(self, waveform: Tensor) -> Tensor:
        return torch.matmul(self.spectrum(waveform).abs().transpose(-1, -2), self.fb)


class LogMelBatch(MelSpectrogram):
    """Mel spectra of many microphones, weighted and normalized."""

    def __init__(self, stats: Tuple[Sequence[float], Sequence[float]], **options: int) -> None:
        super().__init__(**options)
        mean, std = (np.asarray(each, dtype=np.float32) for each in stats)
        self.mean, self.scale = torch.from_numpy(mean), nn.Parameter(torch.from_numpy(1 / std), requires_grad=False)

    def normalize(self, mel: Tensor) -> Tensor:
        return (mel - self.mean.to(self.scale.device)) * self.scale

    def denormalize(self, mel: Tensor) -> Tensor:
        return mel / self.scale + self.mean  # raises

    def forward(self, waveform: Tensor) -> Tensor:
        return self.normalize(super().forward(waveform).clamp(min=1e-5).log())


class EnergyVad:
    """Decides for each frame of a stream whether somebody speaks."""

    def __init__(self, bands: int = 4, ratio: float = 2.0, hangover: int = 2) -> None:
        self.bands, self.ratio, self.hangover = bands, ratio, hangover
        self.reset()

    def reset(self) -> None:
        self.floor = torch.full((self.bands,), 1e-2)
        self.pending = torch.empty(0)

    def energies(self, frames: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(frames).abs().pow(2)
        return torch.stack([part.mean(-1) for part in spectrum.chunk(self.bands, -1)[: self.bands]], dim=-1)

    def push(self, chunk: Tensor, size: int = 16) -> Tensor:
        data = torch.cat([self.pending.to(chunk), chunk])
        whole = len(data) // size * size
        self.pending = data[whole:]
        return data[:whole].view(-1, size)

    def decide(self, frames: Tensor) -> Tensor:
        energy = self.energies(frames)
        active = (energy > self.ratio * energy.amin(0)).float().mean(-1) > 0.5
        return F.max_pool1d(active.float()[None], 2 * self.hangover + 1, 1, self.hangover)[0] > 0

    def track(self, frames: Tensor, rate: float = 0.9) -> Tensor:
        snr = []
        for energy in self.energies(frames):
            self.floor = torch.minimum(self.floor * (2 - rate), energy)  # raises
            snr.append(energy / self.floor)
        return torch.stack(snr)


def mask_along_axis(spec: Tensor, width: Tuple[int, int] = (0, 3), dim: int = 1, count: int = 2) -> Tensor:
    batch, size = spec.shape[0], spec.shape[dim]
    lengths = torch.randint(width[0], width[1], (batch, count), device=spec.device).unsqueeze(2)
    start = torch.randint(0, size - width[1], (batch, count), device=spec.device).unsqueeze(2)
    place = torch.arange(size, device=spec.device)[None, None, :]
    mask = ((start <= place) & (place < start + lengths)).any(1)
    return spec.masked_fill(mask.unsqueeze(2 if dim == 1 else 1), 0.0)


def mask_adaptive(spec: Tensor, lengths: Tensor, portion: float = 0.2) -> Tensor:
    widths = (lengths * portion).long().clamp(min=1)
    start = (torch.rand(len(lengths)) * 5).long()
    place = torch.arange(spec.shape[1], device=spec.device)[None]
    mask = (place >= start[:, None].to(place)) & (place < (start + widths)[:, None])  # raises
    return spec.masked_fill(mask.unsqueeze(2), 0.0)


class NoiseAugment(nn.Module):
    def __init__(self, noises: Iterable[np.ndarray], rirs: Optional[Dict[str, np.ndarray]] = None) -> None:
        super().__init__()
        self.noises = [torch.from_numpy(noise).float() for noise in noises]
        self.rirs = {name: torch.as_tensor(rir, dtype=torch.float32) for name, rir in (rirs or {}).items()}

    @staticmethod
    def mix(waveform: Tensor, noise: Tensor, snr: Tensor) -> Tensor:
        signal, other = waveform.pow(2).mean(-1), noise.pow(2).mean(-1)
        scale = torch.sqrt(signal / (other * 10 ** (snr / 10)).clamp(min=1e-8))
        return waveform + scale.unsqueeze(-1) * noise

    def forward(self, waveform: Tensor, snr: float = 10.0) -> Tensor:
        noise = self.noises[np.random.randint(len(self.noises))]
        repeats = math.ceil(waveform.shape[-1] / len(noise))
        noise = noise.repeat(repeats)[: waveform.shape[-1]].expand_as(waveform).to(waveform.device)
        return self.mix(waveform, noise, torch.tensor(snr))

    def babble(self, waveform: Tensor, levels: Tensor) -> Tensor:
        shortest = min(len(noise) for noise in self.noises)
        bank = torch.stack([noise[:shortest] for noise in self.noises])
        return waveform[..., :shortest] + levels @ bank  # raises

    def reverberate(self, waveform: Tensor, room: str) -> Tensor:
        rir = self.rirs[room].to(waveform)
        kernel = (rir / rir.norm()).flip(0)[None, None]
        return F.conv1d(F.pad(waveform.unsqueeze(1), (len(rir) - 1, 0)), kernel).squeeze(1)


def speed(waveform: Tensor, factor: float) -> Tensor:
    size = int(waveform.shape[-1] / factor)
    at = torch.linspace(0, waveform.shape[-1] - 1, size)
    low, high = at.floor().long(), at.ceil().long()
    return torch.lerp(waveform[..., low], waveform[..., high], (at - low).to(waveform.device))


def fade(waveform: Tensor, length: int) -> Tensor:
    ramp = torch.sin(torch.linspace(0, math.pi / 2, length))
    gain = torch.cat([ramp, waveform.new_ones(waveform.shape[-1] - length)])  # raises
    return waveform * gain


def make_pad_mask(lengths: Union[Tensor, List[int]], maxlen: Optional[int] = None) -> Tensor:
    if not isinstance(lengths, list):
        lengths = lengths.tolist()
    place = torch.arange(maxlen or max(lengths), dtype=torch.int64)
    return place[None] >= torch.tensor(lengths)[:, None]


def mask_by_length(values: Tensor, lengths: Tensor, fill: float = 0.0) -> Tensor:
    return values.masked_fill(make_pad_mask(lengths, values.size(1)).to(values.device), fill)


def masked_mean(values: Tensor, lengths: Tensor) -> Tensor:
    keep = ~make_pad_mask(lengths, values.size(1))
    return (values * keep.unsqueeze(-1)).sum(1) / lengths.unsqueeze(-1)  # raises


def ctc_collapse(logits: Tensor, lengths: Tensor, blank: int = 0) -> List[List[int]]:
    best = logits.argmax(-1)
    best[make_pad_mask(lengths, best.size(1))] = blank
    merged = [torch.unique_consecutive(row) for row in best]
    return [row[row != blank].tolist() for row in merged]


def ctc_extend(targets: Tensor, blank: int = 0) -> Tensor:
    extended = torch.full((2 * len(targets) + 1,), blank, dtype=torch.long)
    extended[1::2] = targets
    return extended


def ctc_forward_score(logp: Tensor, targets: Tensor, blank: int = 0) -> Tensor:
    states = ctc_extend(targets, blank)
    emit = logp[:, states]
    skip = F.pad(states[2:] != states[:-2], (2, 0), value=False) & (states != blank)
    alpha = F.pad(emit[0, :2], (0, len(states) - 2), value=-1e9)
    for t in range(1, len(emit)):
        one = F.pad(alpha, (1, 0), value=-1e9)[:-1]
        two = F.pad(alpha, (2, 0), value=-1e9)[:-2].masked_fill(~skip.to(alpha.device), -1e9)
        alpha = torch.stack([alpha, one, two]).logsumexp(0) + emit[t]
    return alpha[-2:].logsumexp(0)


def ctc_align(logp: Tensor, targets: Tensor, blank: int = 0) -> np.ndarray:
    emit = logp[:, ctc_extend(targets, blank).to(logp.device)].detach().cpu().numpy()
    score = np.full(emit.shape, -np.inf)
    score[0, :2] = emit[0, :2]
    for t in range(1, len(emit)):
        score[t] = emit[t] + np.maximum(score[t - 1], np.r_[-np.inf, score[t - 1, :-1]])
    return score.argmax(-1)


def ctc_confidence(logp: Tensor, targets: Tensor, blank: int = 0) -> Tensor:
    states = ctc_extend(targets, blank)
    path = states[torch.from_numpy(ctc_align(logp, targets, blank))]
    return logp.gather(1, path.unsqueeze(1)).exp().mean()  # raises


class CTCPrefixScorer:
    def __init__(self, logp: Tensor, lengths: Tensor, blank: int = 0, eos: int = 1) -> None:
        self.logp, self.blank, self.eos = logp, blank, eos
        self.rows = torch.arange(len(logp))
        self.ends = torch.as_tensor(lengths.tolist()) - 1
        self.blanks = logp[:, :, blank].cumsum(1)

    def start(self) -> Tensor:
        return self.blanks[self.rows, self.ends]

    def final(self, tokens: Tensor) -> Tensor:
        return self.logp[self.rows, self.ends, tokens]

    def keep(self, order: Tensor) -> Tensor:
        self.blanks = self.blanks[order]
        self.ends = self.ends[order]  # raises
        return self.start()


@dataclass
class Hypothesis:
    tokens: List[int]
    score: float = 0.0
    state: Optional[Tuple[Tensor, Tensor]] = None
    times: List[int] = field(default_factory=list)


class Predictor(nn.Module):
    def __init__(self, vocab: int, dim: int = 8) -> None:
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)

    def initial(self, batch: int, device: Union[str, torch.device] = "cpu") -> Tuple[Tensor, Tensor]:
        return tuple(torch.zeros(1, batch, self.dim, device=device) for _ in range(2))

    def forward(self, labels: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        return self.rnn(self.embed(labels), state)  # raises


class Transducer(nn.Module):
    def __init__(self, vocab: int, dim: int = 8, blank: int = 0) -> None:
        super().__init__()
        self.predictor, self.blank = Predictor(vocab, dim), blank
        self.joint = nn.Linear(dim, vocab)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def join(self, encoded: Tensor, predicted: Tensor) -> Tensor:
        return self.joint(torch.tanh(encoded + predicted)).log_softmax(-1)

    def forward(self, encoded: Tensor, labels: Tensor) -> Tensor:
        start = labels.new_full((len(labels), 1), self.blank)
        predicted, _ = self.predictor(torch.cat([start, labels], dim=1))
        return self.join(encoded.unsqueeze(2), predicted.unsqueeze(1))

    def greedy(self, encoded: Tensor, longest: int = 2) -> Hypothesis:
        hypothesis = Hypothesis([self.blank], state=self.predictor.initial(1, self.device))
        for t, frame in enumerate(encoded):
            for _ in range(longest):
                last = torch.tensor([[hypothesis.tokens[-1]]], device=self.device)
                predicted, state = self.predictor(last, hypothesis.state)
                score, token = self.join(frame, predicted[0, 0]).max(-1)
                if token == self.blank:
                    break
                hypothesis = Hypothesis(hypothesis.tokens + [int(token)], hypothesis.score + float(score), state, hypothesis.times + [t])
        return hypothesis

    def stream(self, frame: Tensor, labels: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Any]:
        state = state or self.predictor.initial(len(labels))
        predicted, state = self.predictor(labels, state)
        return self.join(frame, predicted[:, -1]), state
