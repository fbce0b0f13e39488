"""Parts of a toolkit for training speech recognisers."""
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class FrontendConfig:
    n_fft: int = 32
    hop: int = 16
    n_mels: int = 8
    dither: float = 0.0

@dataclass
class EncoderConfig:
    idim: int = 8
    odim: int = 16
    heads: int = 2
    blocks: int = 1
    max_len: int = 4
    kind: str = "conformer"

def make_pad_mask(lengths, maxlen: Optional[int] = None):
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.tensor(lengths)
    maxlen = int(lengths.max()) if maxlen is None else maxlen
    steps = torch.arange(maxlen, device=lengths.device)
    return steps.unsqueeze(0) >= lengths.unsqueeze(1)

def to_device(thing, device):
    if isinstance(thing, torch.Tensor):
        return thing.to(device)
    if isinstance(thing, dict):
        return {k: to_device(v, device) for k, v in thing.items()}
    if isinstance(thing, tuple):
        return tuple(to_device(v, device) for v in thing)
    return thing

def mel_matrix(cfg: FrontendConfig):
    bins = cfg.n_fft // 2 + 1
    centres = np.linspace(0, bins - 1, cfg.n_mels + 2)
    grid = np.arange(bins)[:, None]
    left = (grid - centres[:-2]) / (centres[1:-1] - centres[:-2])
    right = (centres[2:] - grid) / (centres[2:] - centres[1:-1])
    return np.maximum(0, np.minimum(left, right)).astype(np.float32)

def synth(lengths: List[int], device="cpu", seed=0):
    rng = np.random.RandomState(seed)
    waves = torch.zeros(len(lengths), max(lengths))
    for row, n in enumerate(lengths):
        waves[row, :n] = torch.from_numpy(rng.randn(n).astype(np.float32))
    return waves.to(device), torch.tensor(lengths)

class Frontend(nn.Module):
    def __init__(self, cfg: FrontendConfig):
        super().__init__()
        self.cfg = cfg
        self.register_buffer("mel", torch.from_numpy(mel_matrix(cfg)), persistent=False)
        self.windows: Dict[str, torch.Tensor] = {}
    def window(self, like):
        key = str(like.device)
        if key not in self.windows:
            self.windows[key] = torch.hann_window(self.cfg.n_fft, device=like.device)
        return self.windows[key]
    def power(self, waves):
        if self.cfg.dither:
            waves = waves + self.cfg.dither * torch.randn(waves.shape).type_as(waves)
        spec = torch.stft(waves, self.cfg.n_fft, self.cfg.hop, window=self.window(waves), return_complex=True)
        return spec.abs().pow(2).transpose(1, 2)
    def forward(self, waves, lengths):
        feats = (self.power(waves) @ self.mel).clamp(min=1e-6).log()
        flens = lengths // self.cfg.hop + 1
        return feats, flens

class PreEmphasis(nn.Module):
    def __init__(self, coef=0.97):
        super().__init__()
        self.kernel = torch.tensor([[[-coef, 1.0]]])
    def forward(self, waves):
        padded = F.pad(waves.unsqueeze(1), (1, 0), mode="reflect")
        return F.conv1d(padded, self.kernel).squeeze(1)  # raises

class EnergyPreEmphasis(PreEmphasis):
    def forward(self, waves):
        shifted = torch.cat([waves[:, :1], waves[:, :-1]], dim=1)
        return waves + self.kernel[0, 0, 0] * shifted

class GlobalCMVN(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.accum = {"sum": torch.zeros(dim), "sq": torch.zeros(dim), "count": 0}
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("istd", torch.ones(dim))
    def accumulate(self, feats, flens):
        for row, n in zip(feats, flens):
            part = row[:n]
            self.accum["sum"] = self.accum["sum"] + part.sum(0).cpu()
            self.accum["sq"] = self.accum["sq"] + part.pow(2).sum(0).cpu()
            self.accum["count"] += int(n)
    def finish(self, in_place=True):
        mean = self.accum["sum"] / self.accum["count"]
        var = self.accum["sq"] / self.accum["count"] - mean ** 2
        istd = var.clamp(min=1e-8).rsqrt()
        if in_place:
            self.mean.copy_(mean)
            self.istd.copy_(istd)
        else:
            self.mean, self.istd = mean, istd
        return self
    def forward(self, feats):
        return (feats - self.mean) * self.istd  # raises

class SpecAugment:
    def __init__(self, freq_width=3, time_width=4, n_masks=2, replace="zero"):
        self.freq_width, self.time_width = freq_width, time_width
        self.n_masks, self.replace = n_masks, replace
    def axis_mask(self, size, width, batch, device):
        start = torch.randint(0, max(1, size - width), (batch, self.n_masks), device=device).unsqueeze(2)
        length = torch.randint(1, width, (batch, self.n_masks), device=device).unsqueeze(2)
        pos = torch.arange(size, device=device)[None, None]
        return ((pos >= start) & (pos < start + length)).any(dim=1)
    def __call__(self, feats, flens=None):
        batch, frames, bins = feats.shape
        fmask = self.axis_mask(bins, self.freq_width, batch, feats.device).unsqueeze(1)
        tmask = self.axis_mask(frames, self.time_width, batch, feats.device).unsqueeze(2)
        mask = fmask | tmask
        if flens is not None:
            mask = mask & ~make_pad_mask(flens, frames).unsqueeze(2)  # raises
        value = 0.0 if self.replace == "zero" else feats.mean()
        return feats.masked_fill(mask, value)

class RelPositionalEncoding(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        self.dim = dim
        self.pe = None
        self.extend(torch.zeros(1, max_len))
    def extend(self, x):
        if self.pe is not None and self.pe.size(1) >= x.size(1) * 2 - 1:
            self.pe = self.pe if self.pe.dtype == x.dtype else self.pe.to(dtype=x.dtype, device=x.device)
            return
        pos = torch.arange(-x.size(1) + 1, x.size(1), dtype=torch.float32).unsqueeze(1)
        div = torch.exp(torch.arange(0, self.dim, 2).float() * -(math.log(10000.0) / self.dim))
        pe = torch.zeros(pos.size(0), self.dim)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.pe = pe.unsqueeze(0).to(device=x.device, dtype=x.dtype)
    def forward(self, x):
        self.extend(x)
        mid = self.pe.size(1) // 2
        return x, self.pe[:, mid - x.size(1) + 1: mid + x.size(1)]

class RelAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.d = heads, dim // heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.pos = nn.Linear(dim, dim, bias=False)
        self.bias_v = nn.Parameter(torch.zeros(heads, self.d))
    def shift(self, x):
        b, h, t, n = x.shape
        padded = torch.cat([torch.zeros(b, h, t, 1, device=x.device), x], dim=-1)
        return padded.view(b, h, n + 1, t)[:, :, 1:].reshape(b, h, t, n)[..., :t]
    def forward(self, x, pos, mask=None):
        b, t, _ = x.shape
        q, k, v = [y.view(b, t, self.heads, self.d).transpose(1, 2) for y in self.qkv(x).chunk(3, -1)]
        p = self.pos(pos).view(1, -1, self.heads, self.d).transpose(1, 2)  # raises
        scores = q @ k.transpose(-1, -2) + self.shift((q + self.bias_v.unsqueeze(1)) @ p.transpose(-1, -2))
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None, :], -1e4)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1)

class Encoder(nn.Module):
    def __init__(self, cfg: EncoderConfig):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Linear(cfg.idim, cfg.odim)
        self.position = RelPositionalEncoding(cfg.odim, cfg.max_len)
        self.blocks = nn.ModuleList(RelAttention(cfg.odim, cfg.heads) for _ in range(cfg.blocks))
        self.norm = nn.LayerNorm(cfg.odim)
    def forward(self, feats, flens):
        x, pos = self.position(self.embed(feats))
        mask = make_pad_mask(flens.to(x.device), x.size(1))
        for block in self.blocks:
            x = x + block(x, pos, mask)
        return self.norm(x), flens

class RNNEncoder(nn.Module):
    def __init__(self, cfg: EncoderConfig):
        super().__init__()
        self.rnn = nn.LSTM(cfg.idim, cfg.odim, batch_first=True)
    def forward(self, feats, flens):
        packed = nn.utils.rnn.pack_padded_sequence(feats, flens, batch_first=True, enforce_sorted=False)  # raises
        out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return out, flens

class StreamingEncoder(nn.Module):
    """Consumes chunks; the left context is kept between the calls."""
    def __init__(self, dim, left=2):
        super().__init__()
        self.left = left
        self.proj = nn.Conv1d(dim, dim, left + 1)
        self.reset()
    def reset(self, like=None):
        make = torch.zeros if like is None else like.new_zeros
        self.context = make(1, self.proj.in_channels, self.left)
    def forward(self, chunk):
        x = torch.cat([self.context, chunk.transpose(1, 2)], dim=2)  # raises
        self.context = x[:, :, -self.left:].detach()
        return self.proj(x).transpose(1, 2)

class CTCHead(nn.Module):
    def __init__(self, dim, vocab, smoothing=0.0):
        super().__init__()
        self.out = nn.Linear(dim, vocab)
        self.smoothing = smoothing
        self.prior = torch.full((vocab,), -math.log(vocab))
    def loss(self, enc, flens, tokens, tlens):
        logp = self.out(enc).log_softmax(-1)
        loss = F.ctc_loss(logp.transpose(0, 1), tokens, flens, tlens, zero_infinity=True)
        if self.smoothing:
            uniform = F.kl_div(logp, self.prior.exp().expand_as(logp), reduction="batchmean")  # raises
            loss = (1 - self.smoothing) * loss + self.smoothing * uniform
        return loss
    def greedy(self, enc, flens):
        best = self.out(enc).argmax(-1)
        result = []
        for row, n in zip(best, flens):
            row = torch.unique_consecutive(row[:n])
            result.append(row[row != 0].tolist())
        return result
    def align(self, enc, flens):
        best = self.out(enc).argmax(-1)
        change = torch.ones_like(best, dtype=torch.bool)
        change[:, 1:] = best[:, 1:] != best[:, :-1]
        edges = change.nonzero()
        return [edges[edges[:, 0] == i, 1].numpy() for i in range(len(flens))]  # raises

class PrefixScorer:
    def __init__(self, logp, blank=0, eos=1):
        self.logp, self.blank, self.eos = logp, blank, eos
        self.inf = -1e10
    def init_state(self):
        r = torch.full((self.logp.size(0), 2), self.inf)
        r[:, 1] = torch.cumsum(self.logp[:, self.blank], 0)
        return r, 0.0
    def score(self, token, state):
        previous, _ = state
        total = torch.logsumexp(previous, dim=1)
        phi = total[:-1] + self.logp[1:, token]  # raises
        return phi.logsumexp(0)

class LSTMDecoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.LSTMCell(dim, dim)
        self.out = nn.Linear(dim, vocab)
    def zero_state(self, batch):
        weight = self.out.weight
        return weight.new_zeros(batch, self.cell.hidden_size), weight.new_zeros(batch, self.cell.hidden_size)
    def step(self, tokens, state):
        h, c = self.cell(self.embed(tokens), state)  # raises
        return self.out(h).log_softmax(-1), (h, c)
    def beam(self, size, steps, device):
        tokens = torch.zeros(size, dtype=torch.long, device=device)
        scores = torch.zeros(size, device=device)
        state, history = self.zero_state(size), []
        for _ in range(steps):
            logp, state = self.step(tokens, state)
            scores, flat = (scores.unsqueeze(1) + logp).view(-1).topk(size)
            parent, tokens = torch.div(flat, logp.size(1), rounding_mode="floor"), flat % logp.size(1)
            state = tuple(s.index_select(0, parent) for s in state)
            history.append((parent.cpu(), tokens.cpu()))
        return scores, history, state
    def backtrace(self, scores, history):
        beam = scores.argmax()
        path = []
        for parent, tokens in reversed(history):
            path.append(int(tokens[beam]))
            beam = parent[beam]
        return path[::-1]

class ErrorRate:
    def __init__(self):
        self.totals = defaultdict(float)
    @staticmethod
    def distance(a, b):
        return sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))
    def update(self, hyps, tokens, tlens):
        for hyp, ref, n in zip(hyps, tokens, tlens):
            self.totals["errors"] += self.distance(hyp, ref[:n].tolist())
            self.totals["words"] += n
    def compute(self):
        return float(self.totals["errors"] / self.totals["words"])

def build(kind="conformer", device="cuda", **extra):
    cfg = EncoderConfig(kind=kind, **extra)
    encoder = (RNNEncoder if kind == "rnn" else Encoder)(cfg).to(device)
    return Frontend(FrontendConfig()).to(device), encoder, CTCHead(cfg.odim, 6).to(device)

def case_frontend_with_dither():
    front = Frontend(FrontendConfig(dither=0.1)).cuda(2)
    waves, lengths = synth([320, 256], "cuda:2")
    feats, flens = front(waves, lengths)
    return feats.sum().item(), flens
def case_preemphasis():
    waves, _ = synth([160, 96], "cuda")
    return PreEmphasis().to(waves.device)(waves)
def case_energy_preemphasis():
    waves, _ = synth([160, 96], "cuda")
    return EnergyPreEmphasis(0.9).cuda()(waves)
def case_cmvn_finished_in_place():
    front, _, _ = build()
    feats, flens = front(*synth([320, 160], "cuda"))
    cmvn = GlobalCMVN(8).cuda()
    cmvn.accumulate(feats, flens)
    return cmvn.finish()(feats)
def case_cmvn_finished_anew():
    front, _, _ = build()
    feats, flens = front(*synth([320, 160], "cuda"))
    cmvn = GlobalCMVN(8).cuda()
    cmvn.accumulate(feats, flens)
    return cmvn.finish(in_place=False)(feats)
def case_specaugment_within_lengths():
    feats, flens = build()[0](*synth([320, 160], "cuda"))
    return SpecAugment()(feats, flens)
def case_specaugment_before_transfer():
    feats, flens = Frontend(FrontendConfig())(*synth([320, 160]))
    batch = to_device({"feats": SpecAugment()(feats, flens), "flens": flens}, "cuda:1")
    return build(device="cuda:1")[1](**batch)
def case_encoder_long_input():
    front, encoder, head = build(max_len=4)
    enc, flens = encoder(*front(*synth([320, 160], "cuda")))
    return head.greedy(enc, flens)
def case_encoder_short_input():
    front, encoder, head = build(max_len=64)
    enc, flens = encoder(*front(*synth([320, 160], "cuda")))
    return head.greedy(enc, flens)
def case_encoder_double():
    encoder = build(max_len=64)[1].double()
    feats = torch.randn(1, 10, 8, dtype=torch.float64, device="cuda")
    return encoder(feats, torch.tensor([10]))
def case_rnn_encoder():
    front, encoder, head = build("rnn")
    enc, flens = encoder(*front(*synth([160, 320], "cuda")))
    return head.loss(enc, flens, torch.randint(1, 6, (2, 3)), torch.tensor([3, 2])).backward()
def case_rnn_encoder_batch_moved():
    front, encoder, _ = build("rnn")
    batch = to_device(dict(zip(("waves", "lengths"), synth([160, 320]))), "cuda")
    return encoder(*front(**batch))
def case_streaming_from_start():
    encoder = StreamingEncoder(8).cuda()
    feats = torch.randn(1, 8, 8, device="cuda")
    return [encoder(chunk) for chunk in feats.split(4, dim=1)]
def case_streaming_after_reset():
    encoder = StreamingEncoder(8).cuda()
    feats = torch.randn(1, 8, 8, device="cuda")
    encoder.reset(like=feats)
    return torch.cat([encoder(chunk) for chunk in feats.split(4, dim=1)], 1)
def case_ctc_with_smoothing():
    head = CTCHead(16, 6, smoothing=0.1).cuda()
    enc = torch.randn(2, 12, 16, device="cuda")
    return head.loss(enc, torch.tensor([12, 9]), torch.randint(1, 6, (2, 3)).cuda(), torch.tensor([3, 2]))
def case_ctc_alignment():
    head = CTCHead(16, 6).cuda()
    return head.align(torch.randn(2, 12, 16, device="cuda"), [12, 9])
def case_prefix_score():
    front, encoder, head = build()
    enc, _ = encoder(*front(*synth([320], "cuda")))
    scorer = PrefixScorer(head.out(enc[0]).log_softmax(-1))
    return scorer.score(2, scorer.init_state())
def case_beam_search_scores():
    decoder = LSTMDecoder(6, 8).cuda()
    with torch.no_grad():
        scores, history, _ = decoder.beam(3, 4, "cuda")
        return decoder.backtrace(scores.cpu(), history)
def case_beam_continued_from_saved_state():
    decoder = LSTMDecoder(6, 8).cuda()
    with torch.no_grad():
        _, history, state = decoder.beam(3, 4, "cuda")
        saved = {"tokens": history[-1][1], "state": state}
        return decoder.step(saved["tokens"], saved["state"])
def case_error_rate():
    front, encoder, head = build()
    enc, flens = encoder(*front(*synth([320, 160], "cuda")))
    rate = ErrorRate()
    for tlens in (torch.tensor([3, 2]), torch.tensor([2, 2], device="cuda")):
        rate.update(head.greedy(enc, flens), torch.randint(1, 6, (2, 3)).cuda(), tlens.cpu())
    return rate.compute()
