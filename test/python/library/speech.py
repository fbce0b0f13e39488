"""Speech recognition: features, masks, decoding, alignment, streaming caches."""
import math
from typing import Dict, List, Optional, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

__all__ = [
    "STFT", "Filterbank", "Deltas", "mfcc", "length_to_mask", "make_pad_mask", "MaskedPooling", "RelPositionalEncoding",
    "ctc_greedy_decode", "align_viterbi", "build_trellis", "BeamHypotheses", "BeamSearcher", "ShallowFusion",
    "reorder_cache", "CausalConv", "SpeakerIndex", "griffin_lim_init",
]


class STFT(nn.Module):
    def __init__(self, n_fft: int = 64, hop: int = 32, window_fn=torch.hamming_window):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.window = window_fn(n_fft)

    def forward(self, x):
        frames = F.pad(x, (0, self.n_fft)).unfold(-1, self.n_fft, self.hop) * self.window.to(x.device)
        steps = torch.arange(self.n_fft, device=x.device, dtype=x.dtype)
        angle = 2 * math.pi / self.n_fft * steps[:, None] * steps[None, : self.n_fft // 2 + 1]
        return (frames @ angle.cos()) ** 2 + (frames @ angle.sin()) ** 2


class Filterbank(nn.Module):
    def __init__(self, n_mels: int = 20, n_fft: int = 64, sample_rate: int = 16000, amin: float = 1e-10):
        super().__init__()
        mel = torch.linspace(0, 2595 * math.log10(1 + sample_rate / 2 / 700), n_mels + 2)
        hz = 700 * (10 ** (mel / 2595) - 1)
        self.band, self.f_central = (hz[1:] - hz[:-1])[:-1], hz[1:-1]
        self.register_buffer("all_freqs", torch.linspace(0, sample_rate // 2, n_fft // 2 + 1))
        self.amin = torch.tensor(amin)

    def forward(self, spectrogram):
        central, band = (t.to(spectrogram.device)[:, None] for t in (self.f_central, self.band))
        slope = (self.all_freqs[None] - central) / band
        matrix = (1 - slope.abs()).clamp(min=0).t()
        return 10 * torch.log10(torch.maximum(spectrogram @ matrix, self.amin))


class Deltas(nn.Module):
    def __init__(self, input_size: int, window_length: int = 5):
        super().__init__()
        self.n = (window_length - 1) // 2
        self.denom = self.n * (self.n + 1) * (2 * self.n + 1) / 3
        self.kernel = torch.arange(-self.n, self.n + 1, dtype=torch.float32).repeat(input_size, 1, 1)

    def forward(self, x):
        x = F.pad(x.transpose(1, 2), (self.n, self.n), mode="replicate")
        delta = F.conv1d(x, self.kernel, groups=x.shape[1])  # raises
        return delta.transpose(1, 2) / self.denom


def create_dct(n_mfcc: int, n_mels: int, dtype=torch.float32) -> torch.Tensor:
    n, k = torch.arange(float(n_mels)), torch.arange(float(n_mfcc))[:, None]
    dct = torch.cos(math.pi / n_mels * (n + 0.5) * k) * math.sqrt(2.0 / n_mels)
    dct[0] *= 1.0 / math.sqrt(2.0)
    return dct.t().to(dtype)


def mfcc(fbank: torch.Tensor, n_mfcc: int = 13) -> torch.Tensor:
    return torch.matmul(fbank, create_dct(n_mfcc, fbank.shape[-1], fbank.dtype))  # raises


def length_to_mask(length: torch.Tensor, max_len: Optional[int] = None) -> torch.Tensor:
    max_len = max_len or int(length.max().item())
    return torch.arange(max_len, device=length.device)[None] < length[:, None]


def make_pad_mask(lengths, max_len: Optional[int] = None) -> torch.Tensor:
    if not isinstance(lengths, list):
        lengths = lengths.tolist()
    return torch.arange(max_len or max(lengths))[None] >= torch.tensor(lengths)[:, None]


class MaskedPooling(nn.Module):
    def forward(self, x, lengths):
        mask = length_to_mask(lengths, x.shape[1])[..., None]
        return (x * mask).sum(1) / mask.sum(1)

    def last(self, x, lengths):
        pad = make_pad_mask(lengths, x.shape[1])
        return torch.stack([frames[~mask][-1] for frames, mask in zip(x, pad)])

    def maximum(self, x, lengths):
        pad = make_pad_mask(lengths, x.shape[1])[..., None]
        return x.masked_fill(pad, -float("inf")).amax(1)  # raises


class RelPositionalEncoding(nn.Module):
    def __init__(self, dim: int, max_len: int = 16):
        super().__init__()
        self.dim, self.pe = dim, None
        self.extend_pe(torch.zeros(1, max_len))

    def extend_pe(self, x):
        if self.pe is not None and self.pe.shape[1] >= x.shape[1]:
            if self.pe.device != x.device or self.pe.dtype != x.dtype:
                self.pe = self.pe.to(dtype=x.dtype, device=x.device)
            return
        position = torch.arange(x.shape[1], dtype=torch.float32)[:, None]
        div = torch.exp(torch.arange(0, self.dim, 2, dtype=torch.float32) * -(math.log(10000.0) / self.dim))
        self.pe = torch.cat([torch.sin(position * div), torch.cos(position * div)], -1)[None].to(x)

    def forward(self, x):
        self.extend_pe(x)
        return x * math.sqrt(self.dim) + self.pe[:, : x.shape[1]]


def ctc_greedy_decode(probs: torch.Tensor, lengths: torch.Tensor, blank: int = 0) -> List[List[int]]:
    best = probs.argmax(-1)
    return [[t for t in seq[:n].unique_consecutive().tolist() if t != blank] for seq, n in zip(best, lengths)]


def align_viterbi(log_probs: torch.Tensor, tokens: Sequence[int]) -> List[int]:
    emission = np.asarray(log_probs.detach()[:, list(tokens)])  # raises
    score = np.full(emission.shape, -np.inf)
    score[:, 0] = np.cumsum(emission[:, 0])
    for t in range(1, len(emission)):
        score[t, 1:] = np.maximum(score[t - 1, 1:], score[t - 1, :-1]) + emission[t, 1:]
    return score.argmax(1).tolist()


def build_trellis(emission: torch.Tensor, tokens: List[int], blank: int = 0) -> torch.Tensor:
    num_frames = emission.shape[0]
    trellis = torch.full((num_frames + 1, len(tokens) + 1), -float("inf"))
    trellis[0, 0] = 0
    trellis[1:, 0] = emission[:, blank].cumsum(0)
    for t in range(num_frames):
        stayed = trellis[t, 1:] + emission[t, blank]  # raises
        trellis[t + 1, 1:] = torch.maximum(stayed, trellis[t, :-1] + emission[t, tokens])
    return trellis


class BeamHypotheses:
    def __init__(self, size: int, length_power: float = 1.0):
        self.size, self.length_power = size, torch.tensor(length_power)
        self.beams: List = []

    def add(self, tokens: torch.Tensor, score: torch.Tensor):
        self.beams.append((score / len(tokens) ** self.length_power, tokens.cpu()))
        self.beams = sorted(self.beams, key=lambda b: b[0], reverse=True)[: self.size]

    def best(self) -> List[int]:
        return self.beams[0][1].tolist()


class BeamSearcher:
    def __init__(self, decoder: nn.Module, beam: int = 3, bos: int = 1, eos: int = 2, max_steps: int = 4, min_steps: int = 0):
        self.decoder, self.beam, self.bos, self.eos = decoder, beam, bos, eos
        self.max_steps, self.min_steps = max_steps, min_steps

    def greedy(self, memory):
        token, out = memory.new_full((memory.shape[0],), self.bos, dtype=torch.long), []
        for _ in range(self.max_steps):
            token = self.decoder(token, memory).argmax(-1)
            out.append(token)
        return torch.stack(out, dim=1)

    def search(self, memory, banned: Sequence[int] = ()):
        batch, memory = memory.shape[0], memory.repeat_interleave(self.beam, dim=0)
        token = torch.full((batch * self.beam,), self.bos, dtype=torch.long, device=memory.device)
        scores = torch.full((batch, self.beam), -float("inf"), device=memory.device)
        scores[:, 0] = 0.0
        history = token.new_zeros(batch * self.beam, 0)
        offset = torch.arange(batch)[:, None] * self.beam
        for step in range(self.max_steps):
            log_probs = self.decoder(token, memory)
            if step < self.min_steps:
                log_probs[:, self.eos] = -float("inf")
            if banned:
                log_probs.index_fill_(1, torch.tensor(banned), -float("inf"))  # raises
            total = (scores.view(-1, 1) + log_probs).view(batch, -1)
            scores, index = total.topk(self.beam, dim=-1)
            token = (index % log_probs.shape[-1]).view(-1)
            source = torch.div(index, log_probs.shape[-1], rounding_mode="floor")
            parents = self.parents(source, offset)
            history = torch.cat([history[parents], token[:, None]], dim=1)
        return history.view(batch, self.beam, -1), scores

    def parents(self, source, offset):
        return (source + offset.to(source.device)).view(-1)

    def best(self, memory):
        history, scores = self.search(memory)
        rows = torch.arange(history.shape[0])
        return history[rows, scores.argmax(-1)]

    def finished(self, history):
        done = torch.zeros(history.shape[:2], dtype=torch.bool)
        for step in range(history.shape[-1]):
            done |= history[..., step].eq(self.eos)  # raises
        return done


class ShallowFusion(nn.Module):
    """The language model may have a device of its own."""

    def __init__(self, decoder: nn.Module, lm: nn.Module, weight: float = 0.3):
        super().__init__()
        self.decoder, self.lm, self.weight = decoder, lm, weight

    def forward(self, token, memory):
        device = next(self.lm.parameters()).device
        lm_scores = self.lm(token.to(device)).log_softmax(-1)
        return self.decoder(token, memory) + self.weight * lm_scores  # raises


def reorder_cache(cache: List[Dict[str, torch.Tensor]], order: List[int], keep: bool = True):
    index = torch.tensor(order)
    for layer in cache:
        for name, value in layer.items():
            layer[name] = value[index] if keep else torch.gather(value, 0, index.view(-1, 1).expand(-1, value.shape[1]))  # raises
    return cache


class CausalConv(nn.Module):
    def __init__(self, channels: int, kernel: int = 3):
        super().__init__()
        self.conv, self.context = nn.Conv1d(channels, channels, kernel), kernel - 1
        self.cache = None

    def start(self, batch: int = 1):
        self.cache = torch.zeros(batch, self.conv.in_channels, self.context)

    def forward(self, x):
        if self.cache is None:
            self.cache = x.new_zeros(*x.shape[:2], self.context)
        x = torch.cat([self.cache, x], dim=-1)  # raises
        self.cache = x[..., -self.context:].detach()
        return self.conv(x)


class SpeakerIndex:
    def __init__(self):
        self.enrolled: Dict[str, torch.Tensor] = {}

    def enroll(self, name: str, embeddings: torch.Tensor):
        self.enrolled[name] = F.normalize(embeddings.mean(0), dim=0).cpu()

    def distances(self, embedding: torch.Tensor) -> Dict[str, float]:
        return {name: (embedding.cpu() - e).norm().item() for name, e in self.enrolled.items()}

    def verify(self, name: str, embedding: torch.Tensor, threshold: float = 0.25) -> bool:
        score = F.cosine_similarity(embedding, self.enrolled[name], dim=-1)  # raises
        return bool(score > threshold)


def griffin_lim_init(magnitude: torch.Tensor, seed: int = 0):
    phase = torch.rand(magnitude.shape, generator=torch.Generator().manual_seed(seed)).mul_(2 * math.pi)
    return torch.polar(magnitude, phase)  # raises
