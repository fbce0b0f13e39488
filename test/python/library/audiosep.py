"""Audio front ends, separation networks, losses and inference helpers."""
import math
from functools import lru_cache
from itertools import permutations

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def length_to_mask(length, max_len=None, dtype=None, device=None):
    """Binary mask of each sequence (speechbrain)."""
    if max_len is None:
        max_len = length.max().long().item()
    mask = torch.arange(max_len, device=length.device).expand(len(length), max_len) < length.unsqueeze(1)
    return torch.as_tensor(mask, dtype=dtype or length.dtype, device=device or length.device)


@lru_cache(maxsize=None)
def create_dct(n_mfcc, n_mels):
    n = torch.arange(float(n_mels))
    k = torch.arange(float(n_mfcc)).unsqueeze(1)
    dct = torch.cos(math.pi / n_mels * (n + 0.5) * k)
    dct[0] *= 1.0 / math.sqrt(2.0)
    return dct.t() * math.sqrt(2.0 / n_mels)


class MelSpectrogram(nn.Module):
    def __init__(self, sample_rate=8000, n_fft=64, hop=32, n_mels=12):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fbank", self.filters(sample_rate, n_fft // 2 + 1, n_mels), persistent=False)

    @staticmethod
    def filters(sample_rate, n_freqs, n_mels):
        top = 2595.0 * math.log10(1.0 + sample_rate / 2 / 700.0)
        edges = 700.0 * (10.0 ** (torch.linspace(0, top, n_mels + 2) / 2595.0) - 1.0)
        slopes = edges.unsqueeze(0) - torch.linspace(0, sample_rate // 2, n_freqs).unsqueeze(1)
        width = edges.diff()
        return torch.minimum(-slopes[:, :-2] / width[:-1], slopes[:, 2:] / width[1:]).clamp(min=0)

    def forward(self, wav):
        spec = torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True).abs().pow(2)
        return torch.matmul(spec.transpose(-1, -2), self.fbank)


class MFCC(nn.Module):
    def __init__(self, n_mfcc=6, n_mels=12):
        super().__init__()
        self.n_mfcc, self.n_mels = n_mfcc, n_mels
        self.melspec = MelSpectrogram(n_mels=n_mels)

    def log_mel(self, wav, top_db=80.0):
        logmel = 10.0 * torch.log10(self.melspec(wav).clamp(min=1e-10))
        floor = logmel.amax(dim=(-2, -1), keepdim=True) - top_db
        return torch.max(logmel, floor)

    def forward(self, wav):
        return self.log_mel(wav) @ create_dct(self.n_mfcc, self.n_mels)  # raises


class InputNormalization:
    """Global mean and variance, as estimated over the training set and stored with np.savez."""

    def __init__(self, mean, std, update=False):
        self.mean, self.std = torch.from_numpy(mean).float(), torch.from_numpy(std).float()
        self.update, self.count = update, 1

    def sentence(self, x):
        return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True).clamp(min=1e-5)

    def track(self, x):
        self.mean = self.mean + (x.mean(dim=(0, 1)).cpu() - self.mean) / (self.count + 1)
        self.count += 1

    def __call__(self, x):
        if self.update:
            self.track(x.detach())
        return (x - self.mean) / self.std  # raises


class SpecAugment(nn.Module):
    def __init__(self, freq_width=4, drop_prob=0.2):
        super().__init__()
        self.freq_width, self.drop_prob = freq_width, drop_prob

    def mask_freq(self, x):
        width = torch.randint(0, self.freq_width, (x.size(0), 1), device=x.device)
        start = torch.randint(0, x.size(2) - self.freq_width, (x.size(0), 1), device=x.device)
        axis = torch.arange(x.size(2), device=x.device)
        return x.masked_fill(((axis >= start) & (axis < start + width)).unsqueeze(1), x.mean())

    def drop_frames(self, x):
        drop = torch.rand(x.shape[:2]) < self.drop_prob
        return x.masked_fill(drop.unsqueeze(-1), 0.0)  # raises

    def mixup(self, x, alpha=0.5):
        lam = torch.distributions.Beta(alpha, alpha).sample()
        return lam * x + (1 - lam) * x[torch.randperm(x.size(0))]


class Resample:
    """Windowed sinc interpolation; kernels are shared by the transforms of a process."""

    _kernels = {}

    def __init__(self, orig, new, width=6):
        gcd = math.gcd(orig, new)
        self.orig, self.new, self.width = orig // gcd, new // gcd, width

    def kernel(self, device):
        key = (self.orig, self.new, self.width)
        if key not in self._kernels:
            base = min(self.orig, self.new) * 0.99
            idx = torch.arange(-self.width, self.width + self.orig, device=device)[None, None] / self.orig
            t = torch.arange(0, -self.new, -1, device=device)[:, None, None] / self.new + idx
            t = (t * base).clamp_(-self.width, self.width)
            self._kernels[key] = torch.sinc(t) * torch.cos(t * math.pi / self.width / 2) ** 2
        return self._kernels[key]

    def __call__(self, wav):
        padded = F.pad(wav.unsqueeze(1), (self.width, self.width + self.orig))
        out = F.conv1d(padded, self.kernel(wav.device), stride=self.orig)  # raises
        return out.transpose(1, 2).reshape(wav.size(0), -1)


def add_noise(wav, bank, snr_db=10.0):
    """Mixes one noise of the bank into each clip, from a random offset."""
    pick = torch.randint(len(bank), (wav.size(0),))
    shift = int(torch.randint(bank.size(1) - wav.size(1), (1,)))
    noise = bank[pick, shift:shift + wav.size(1)]
    scale = wav.norm(dim=1, keepdim=True) / 10 ** (snr_db / 20)
    return wav + noise * (scale / noise.norm(dim=1, keepdim=True))  # raises


class SingleRNN(nn.Module):
    def __init__(self, dim, hidden, carry=False):
        super().__init__()
        self.rnn, self.carry = nn.LSTM(dim, hidden, batch_first=True), carry
        self.proj = nn.Linear(hidden, dim)

    def init_state(self, batch):
        return tuple(torch.zeros(1, batch, self.rnn.hidden_size) for _ in range(2))

    def forward(self, x):
        if not self.carry:
            return self.proj(self.rnn(x)[0])
        out, _ = self.rnn(x, self.init_state(x.size(0)))  # raises
        return self.proj(out)


class DualPathSeparator(nn.Module):
    """Encoder, intra and inter chunk recurrences, masks, decoder (DPRNN)."""

    def __init__(self, n_src=2, dim=8, kernel=8, chunk=10, carry=False):
        super().__init__()
        self.n_src, self.dim, self.chunk = n_src, dim, chunk
        self.encoder = nn.Conv1d(1, dim, kernel, stride=kernel // 2, bias=False)
        self.intra, self.inter = SingleRNN(dim, 8), SingleRNN(dim, 8, carry)
        self.mask = nn.Conv1d(dim, dim * n_src, 1)
        self.decoder = nn.ConvTranspose1d(dim, 1, kernel, stride=kernel // 2, bias=False)

    def segment(self, x):
        rest = -x.size(2) % self.chunk
        pad = torch.zeros(x.size(0), x.size(1), rest).type(x.type())
        return torch.cat([x, pad], 2).unfold(2, self.chunk, self.chunk), rest

    def forward(self, wav):
        feats = self.encoder(wav.unsqueeze(1))
        chunks, rest = self.segment(feats)
        b, n, s, k = chunks.shape
        x = chunks.permute(0, 2, 3, 1).reshape(b * s, k, n)
        x = (x + self.intra(x)).view(b, s, k, n).transpose(1, 2).reshape(b * k, s, n)
        x = (x + self.inter(x)).view(b, k, s, n).permute(0, 3, 2, 1).reshape(b, n, s * k)
        masks = self.mask(x[..., :s * k - rest]).view(b, self.n_src, n, -1).sigmoid()
        sources = (masks * feats.unsqueeze(1)).flatten(0, 1)
        return self.decoder(sources).view(b, self.n_src, -1)


def pairwise_neg_sisdr(est, ref, eps=1e-8):
    est, ref = (t - t.mean(-1, keepdim=True) for t in (est, ref))
    est, ref = est.unsqueeze(1), ref.unsqueeze(2)
    proj = (est * ref).sum(-1, keepdim=True) * ref / (ref.square().sum(-1, keepdim=True) + eps)
    return -10 * torch.log10(proj.square().sum(-1) / ((est - proj).square().sum(-1) + eps) + eps)


class PITLoss(nn.Module):
    def forward(self, est, ref):
        pairwise = pairwise_neg_sisdr(est, ref)
        n_src = pairwise.size(1)
        perms = torch.tensor(list(permutations(range(n_src))))
        losses = pairwise[:, torch.arange(n_src), perms].mean(-1)
        best, idx = losses.min(dim=1)
        return best.mean(), perms.to(idx.device)[idx]

    @staticmethod
    def reorder(est, order):
        return torch.stack([torch.index_select(s, 0, o) for s, o in zip(est, order)])

    def assign(self, est, ref):
        """Best order by a greedy search on the host, for many sources."""
        order = []
        for cost in pairwise_neg_sisdr(est, ref).detach().cpu().numpy():
            free = list(range(cost.shape[1]))
            order.append([free.pop(int(np.argmin(row[free]))) for row in cost])
        order = torch.tensor(order)
        return est.gather(1, order.unsqueeze(-1).expand_as(est))  # raises


@torch.no_grad()
def apply_model(model, mix, segment=64, overlap=0.25, fade=True):
    """Runs the model on overlapping segments and adds them up with triangular weights (demucs)."""
    stride = int((1 - overlap) * segment)
    out = torch.zeros(mix.size(0), model.n_src, mix.size(-1), device=mix.device)
    total = torch.zeros(mix.size(-1), device=mix.device)
    weight = torch.cat([torch.arange(1, segment // 2 + 1), torch.arange(segment - segment // 2, 0, -1)])
    weight = weight / weight.max() if fade else torch.ones(segment, device=mix.device)
    for offset in range(0, mix.size(-1) - segment + 1, stride):
        chunk = model(mix[:, offset:offset + segment])
        out[..., offset:offset + segment] += weight * chunk  # raises
        total[offset:offset + segment] += weight
    return out / total.clamp(min=1e-8)


def griffin_lim(magnitude, n_fft=64, hop=32, n_iter=3, rand_init=True):
    window = torch.hann_window(n_fft, device=magnitude.device)
    angles = torch.rand(magnitude.size(), dtype=torch.cfloat) if rand_init else torch.ones_like(magnitude)
    for _ in range(n_iter):
        wav = torch.istft(magnitude * angles, n_fft, hop, window=window)  # raises
        rebuilt = torch.stft(wav, n_fft, hop, window=window, return_complex=True)
        angles = rebuilt / rebuilt.abs().clamp(min=1e-16)
    return torch.istft(magnitude * angles, n_fft, hop, window=window)


class SeparationReport:
    def __init__(self, loss=pairwise_neg_sisdr):
        self.loss, self.rows = loss, []

    def append(self, mix, est, ref):
        gain = self.loss(mix.unsqueeze(1).expand_as(ref), ref) - self.loss(est, ref)
        self.rows.append(gain.diagonal(dim1=1, dim2=2).detach())

    def mean(self):
        return torch.cat(self.rows).mean().item()

    def quantiles(self):
        return np.percentile(torch.cat(self.rows), [10, 50, 90])  # raises
