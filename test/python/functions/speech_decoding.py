"""Speech recognition: features, conformer-ish encoder, CTC, attention decoder and beam search."""
import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

VOCAB = ["<blank>", "<s>", "</s>"] + list("abcde ")


@dataclass
class FbankConfig:
    n_fft: int = 64
    hop: int = 32
    n_mels: int = 8
    sample_rate: int = 8000


def _mel_matrix(cfg: FbankConfig):
    top = 2595 * math.log10(1 + cfg.sample_rate / 2 / 700)
    points = 700 * (10 ** (np.linspace(0, top, cfg.n_mels + 2) / 2595) - 1)
    freqs = np.linspace(0, cfg.sample_rate / 2, cfg.n_fft // 2 + 1)
    slopes = points[:, None] - freqs[None]
    down, up = -slopes[:-2] / np.diff(points)[:-1, None], slopes[2:] / np.diff(points)[1:, None]
    return torch.from_numpy(np.maximum(0, np.minimum(down, up))).float()


class Fbank(nn.Module):
    def __init__(self, cfg: FbankConfig = FbankConfig(), periodic=True):
        super().__init__()
        self.cfg = cfg
        self.window = torch.hann_window(cfg.n_fft, periodic=periodic)
        self.register_buffer("mel", _mel_matrix(cfg))

    def forward(self, wavs):
        spec = torch.stft(wavs, self.cfg.n_fft, self.cfg.hop, window=self.window, return_complex=True)  # raises
        return torch.matmul(self.mel, spec.abs().pow(2)).clamp(min=1e-8).log().transpose(1, 2)


class FbankTrainable(Fbank):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        window = self.window
        del self.window
        self.window = nn.Parameter(window)


@functools.lru_cache(maxsize=8)
def _sinc_kernel(orig, new, width=6):
    t = torch.arange(-width, width + 1, dtype=torch.float32) * min(orig, new) / orig
    return (torch.where(t == 0, torch.ones_like(t), torch.sin(math.pi * t) / (math.pi * t)) * torch.hann_window(2 * width + 1))[None, None]


def _resample(wavs, orig, new):
    if orig == new:
        return wavs
    kernel = _sinc_kernel(orig, new)
    out = F.conv1d(wavs.unsqueeze(1), kernel, stride=orig // new, padding=kernel.shape[-1] // 2)  # raises
    return out.squeeze(1)


class GlobalCMVN(nn.Module):
    def __init__(self, mean, istd):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("istd", istd)

    @classmethod
    def from_stats(cls, stats: Dict[str, List[float]]):
        var = np.array(stats["sq"]) / stats["n"] - (np.array(stats["sum"]) / stats["n"]) ** 2
        return cls(torch.tensor(stats["sum"]) / stats["n"], torch.from_numpy(1 / np.sqrt(var)).float())

    def forward(self, x):
        return (x - self.mean) * self.istd


class SpecAugment:
    def __init__(self, width=3, count=2, fill: Optional[float] = 0.0):
        self.width, self.count, self.fill = width, count, fill

    def __call__(self, feats):
        b, t, _ = feats.shape
        start = torch.randint(0, t - self.width, (b, self.count, 1), device=feats.device)
        frames = torch.arange(t, device=feats.device)
        mask = ((frames >= start) & (frames < start + self.width)).any(dim=1)
        fill = feats.mean() if self.fill is None else torch.tensor(self.fill)
        return torch.where(mask.unsqueeze(-1), fill.to(feats), feats)


def _make_pad_mask(lengths, max_len=None):
    steps = torch.arange(max_len or int(lengths.max()), device=lengths.device)
    return steps.unsqueeze(0) >= lengths.unsqueeze(1)


class RelPositionalEncoding(nn.Module):
    def __init__(self, dim, max_len=8, follow=True):
        super().__init__()
        self.dim, self.follow, self.pe = dim, follow, None
        self.extend_pe(torch.tensor(0.0).expand(1, max_len))

    def extend_pe(self, x):
        if self.pe is not None and self.pe.size(1) >= x.size(1):
            if self.follow and self.pe.device != x.device:
                self.pe = self.pe.to(dtype=x.dtype, device=x.device)
            return
        pe = torch.zeros(x.size(1), self.dim)
        angle = torch.arange(0, x.size(1)).unsqueeze(1) * torch.exp(torch.arange(0, self.dim, 2) * -(math.log(1e4) / self.dim))
        pe[:, 0::2], pe[:, 1::2] = angle.sin(), angle.cos()
        self.pe = pe.unsqueeze(0).to(device=x.device, dtype=x.dtype)

    def forward(self, x):
        self.extend_pe(x)
        return x * math.sqrt(self.dim) + self.pe[:, :x.size(1)]  # raises


class Encoder(nn.Module):
    def __init__(self, n_mels=8, dim=12, follow=True):
        super().__init__()
        self.embed, self.pos = nn.Linear(n_mels, dim), RelPositionalEncoding(dim, 64, follow)
        self.rnn = nn.LSTM(dim, dim // 2, bidirectional=True, batch_first=True)
        self.ctc = nn.Linear(dim, len(VOCAB))

    def forward(self, feats, lengths):
        x = self.pos(self.embed(feats))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        x, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        mask = _make_pad_mask(lengths).to(x.device)
        return x.masked_fill(mask.unsqueeze(-1), 0.0)


class BaseScorer(ABC):
    @abstractmethod
    def score(self, prefix: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Log probabilities of the next token, one row per hypothesis."""


class BigramScorer(BaseScorer):
    def __init__(self, counts: np.ndarray):
        self.table = torch.from_numpy(counts / counts.sum(-1, keepdims=True)).float().log()

    def score(self, prefix, memory):
        return self.table[prefix[:, -1].cpu()]


class GpuBigramScorer(BigramScorer):
    def score(self, prefix, memory):
        return super().score(prefix, memory).to(memory.device)


class AttentionDecoder(nn.Module, BaseScorer):
    def __init__(self, dim=12):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(len(VOCAB), dim), nn.GRUCell(dim, dim), nn.Linear(2 * dim, len(VOCAB))

    def score(self, prefix, memory):
        state = memory.mean(dim=1).expand(prefix.shape[0], -1).contiguous()
        for token in prefix.t():
            state = self.cell(self.embed(token), state)
        context = torch.softmax(state @ memory[0].t(), dim=-1) @ memory[0]
        return self.out(torch.cat([state, context], -1)).log_softmax(-1)


class BeamSearch:
    def __init__(self, scorers: Dict[str, BaseScorer], weights: Dict[str, float], beam=3, sos=1, eos=2):
        self.scorers, self.weights, self.beam, self.sos, self.eos = scorers, weights, beam, sos, eos

    @torch.no_grad()
    def __call__(self, memory, steps=4):
        prefix = torch.full((1, 1), self.sos, dtype=torch.long, device=memory.device)
        scores = torch.zeros(1, device=memory.device)
        for _ in range(steps):
            total = scores.unsqueeze(1)
            for name, scorer in self.scorers.items():
                total = total + self.weights[name] * scorer.score(prefix, memory)  # raises
            scores, flat = total.flatten().topk(self.beam)
            origin = torch.div(flat, len(VOCAB), rounding_mode="floor")
            prefix = torch.cat([prefix[origin], (flat % len(VOCAB)).unsqueeze(1)], dim=1)
            if bool((prefix[:, -1] == self.eos).all()):
                break
        return "".join(VOCAB[i] for i in prefix[scores.argmax()].tolist() if i > 2)


class StreamingLM(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.embed, self.lstm, self.dim = nn.Embedding(len(VOCAB), dim), nn.LSTM(dim, dim), dim

    def initial_state(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(1, batch, self.dim), weight.new_zeros(1, batch, self.dim)

    def forward(self, tokens, state=None):
        out, state = self.lstm(self.embed(tokens), state)  # raises
        return out, state


def _greedy(log_probs, lengths):
    texts = []
    for row, length in zip(log_probs.argmax(-1).cpu().numpy(), lengths.tolist()):
        row = [k for i, k in enumerate(row[:length]) if k and (i == 0 or k != row[i - 1])]
        texts.append("".join(VOCAB[k] for k in row if k > 2))
    return texts


def _wavs(device="cuda"):
    wavs = [torch.sin(torch.arange(n) * 0.3) for n in (512, 384)]
    return pad_sequence(wavs, batch_first=True).to(device), torch.tensor([17, 13])


def _features(n_mels=8):
    return torch.randn(2, 17, n_mels, device="cuda"), torch.tensor([17, 13])


def case_fbank_window():
    wavs, _ = _wavs()
    Fbank().to("cuda")(wavs)


def case_fbank_trainable():
    wavs, _ = _wavs()
    FbankTrainable().cuda()(wavs).mean().backward()


def case_resample_front_end():
    wavs, _ = _wavs()
    Fbank()(_resample(wavs.cpu(), 16000, 8000))
    _resample(wavs, 8000, 8000)
    _resample(wavs, 16000, 8000)


def case_cmvn_and_augment():
    feats, _ = _features()
    cmvn = GlobalCMVN.from_stats({"sum": [8.0] * 8, "sq": [40.0] * 8, "n": 10}).cuda()
    SpecAugment()(cmvn(feats))
    SpecAugment(fill=None)(cmvn(feats))


def case_ctc_training():
    feats, lengths = _features()
    encoder = Encoder().cuda()
    log_probs = encoder.ctc(encoder(feats, lengths)).log_softmax(-1).transpose(0, 1)
    targets = torch.tensor([[3, 4, 5], [6, 7, 0]], device="cuda")
    F.ctc_loss(log_probs, targets, lengths, torch.tensor([3, 2]), zero_infinity=True).backward()


def case_lengths_moved_with_batch():
    batch = dict(zip(("feats", "lengths"), _features()))
    batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
    Encoder().cuda()(**batch)


def case_positions_from_host():
    feats, lengths = _features()
    Encoder(follow=False).cuda()(feats, lengths)


def case_greedy_transcripts():
    feats, lengths = _features()
    encoder = Encoder().cuda().eval()
    assert len(_greedy(encoder.ctc(encoder(feats, lengths)).log_softmax(-1), lengths)) == 2


def _memory():
    return torch.randn(1, 9, 12, device="cuda")


def case_beam_with_gpu_lm():
    counts = np.random.rand(len(VOCAB), len(VOCAB))
    scorers = {"decoder": AttentionDecoder().cuda(), "lm": GpuBigramScorer(counts)}
    BeamSearch(scorers, {"decoder": 1.0, "lm": 0.3})(_memory())


def case_beam_with_ngram():
    counts = np.random.rand(len(VOCAB), len(VOCAB))
    scorers = {"decoder": AttentionDecoder().cuda(), "lm": BigramScorer(counts)}
    BeamSearch(scorers, {"decoder": 1.0, "lm": 0.3})(_memory())


def case_streaming_lm_state():
    lm = StreamingLM()
    state = lm.initial_state(2)
    lm.cuda()
    _, fresh = lm(torch.tensor([[1, 1]], device="cuda"))
    lm(torch.tensor([[3, 4]], device="cuda"), fresh)
    lm(torch.tensor([[3, 4]], device="cuda"), state)


def case_frame_accuracy():
    feats, lengths = _features()
    encoder = Encoder().cuda()
    valid = ~_make_pad_mask(lengths)
    predicted = encoder.ctc(encoder(feats, lengths)).argmax(-1)
    alignment = torch.zeros(2, 17, dtype=torch.long)
    chosen = predicted[valid]
    accuracy = (chosen == alignment[valid].cuda()).float().mean()
    confusion = torch.zeros(len(VOCAB), len(VOCAB))
    confusion[alignment[valid], chosen] += 1.0  # raises
    return accuracy
