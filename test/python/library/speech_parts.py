"""Speech front ends, augmentation, alignment, separation, speaker and vocoder components."""
import itertools
import math
from functools import lru_cache
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence


class FrameConfig(NamedTuple):
    rate: int = 1600
    size: int = 64
    hop: int = 16
    mels: int = 10
    coefficients: int = 6

    @property
    def bins(self):
        return self.size // 2 + 1


def mel_points(config: FrameConfig) -> np.ndarray:
    top = 2595 * np.log10(1 + config.rate / 2 / 700)
    return 700 * (10 ** (np.linspace(0, top, config.mels + 2) / 2595) - 1)


def triangles(config: FrameConfig) -> np.ndarray:
    centers, line = mel_points(config), np.linspace(0, config.rate / 2, config.bins)
    up = (line[None] - centers[:-2, None]) / (centers[1:-1] - centers[:-2])[:, None]
    down = (centers[2:, None] - line[None]) / (centers[2:] - centers[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


@lru_cache(maxsize=None)
def cosine_matrix(rows: int, columns: int) -> Tensor:
    steps = torch.arange(columns).float()
    basis = torch.cos(math.pi / columns * (steps[None] + 0.5) * torch.arange(rows)[:, None])
    basis[0] *= 1 / math.sqrt(2)
    return basis * math.sqrt(2 / columns)


class Spectrum(nn.Module):
    def __init__(self, config: FrameConfig, power: float = 2.0):
        super().__init__()
        self.config, self.power = config, power
        self.register_buffer("window", torch.hann_window(config.size), persistent=False)

    def forward(self, wave):
        spec = torch.stft(wave, self.config.size, self.config.hop, window=self.window, return_complex=True)  # raises
        return spec.abs().pow(self.power)


class FeatureBase(nn.Module):
    """Template: power spectrum, then `project`, then `finish`."""

    def __init__(self, config: Optional[FrameConfig] = None):
        super().__init__()
        self.config = config or FrameConfig()
        self.spectrum = Spectrum(self.config)
        self.register_buffer("bank", torch.from_numpy(triangles(self.config)))

    def project(self, power):
        return (self.bank @ power).clamp_min(1e-6).log()

    def finish(self, feature):
        return feature

    def forward(self, wave):
        return self.finish(self.project(self.spectrum(wave)))


class LogMel(FeatureBase):
    def finish(self, feature):
        top = feature.amax(dim=(-2, -1), keepdim=True)
        return torch.maximum(feature, top - torch.tensor(8.0))


class Cepstrum(FeatureBase):
    def finish(self, feature):
        basis = cosine_matrix(self.config.coefficients, self.config.mels)
        return torch.matmul(basis, feature)  # raises


class LiftedMel(FeatureBase):
    """Mel bands with a lifter on the cosine side, moved once for each device."""

    def __init__(self, config=None, lift=22):
        super().__init__(config)
        self.lift, self._moved = lift, {}

    def basis(self, like):
        key = (like.device, like.dtype)
        if key not in self._moved:
            order = torch.arange(self.config.coefficients)
            weight = 1 + self.lift / 2 * torch.sin(math.pi * order / self.lift)
            self._moved[key] = (weight[:, None] * cosine_matrix(self.config.coefficients, self.config.mels)).to(like)
        return self._moved[key]

    def finish(self, feature):
        return self.basis(feature) @ feature


class MeanVariance(nn.Module):
    """Global normalisation with statistics from a file of sums."""

    def __init__(self, sums, squares, count, apply_variance=True):
        super().__init__()
        mean = torch.as_tensor(np.asarray(sums) / count, dtype=torch.float32)
        variance = torch.as_tensor(np.asarray(squares) / count, dtype=torch.float32) - mean ** 2
        self.register_buffer("mean", mean)
        self.scale = variance.clamp_min(1e-4).rsqrt()
        self.apply_variance = apply_variance

    def forward(self, feature):
        feature = feature - self.mean[:, None]
        if self.apply_variance:
            feature = feature * self.scale[:, None]  # raises
        return feature


def deltas(feature, width=2):
    reach = torch.arange(-width, width + 1).to(feature)
    kernel = (reach / reach.pow(2).sum()).repeat(feature.shape[-2], 1, 1)
    return F.conv1d(F.pad(feature, (width, width), mode="replicate"), kernel, groups=feature.shape[-2])


class Resampler:
    """Windowed sinc filters, kept for each pair of rates."""

    def __init__(self, zeros=4):
        self.zeros = zeros
        self._filters: Dict[Tuple[int, int], Tensor] = {}

    def _filter(self, old, new):
        if (old, new) not in self._filters:
            width = math.ceil(self.zeros * old / min(old, new))
            steps = torch.arange(-width, width + old)[None] / old
            t = (steps - torch.arange(new)[:, None] / new) * min(old, new)
            shape = torch.cos(t.clamp(-self.zeros, self.zeros) * math.pi / self.zeros / 2) ** 2
            self._filters[old, new] = (torch.sinc(t) * shape * min(old, new) / old)[:, None]
        return self._filters[old, new]

    def __call__(self, wave, old, new):
        factor = math.gcd(old, new)
        old, new = old // factor, new // factor
        if old == new:
            return wave
        kernel = self._filter(old, new)
        width = (kernel.shape[-1] - old) // 2
        padded = F.pad(wave, (width, width + old))
        out = F.conv1d(padded[:, None], kernel, stride=old)  # raises
        return out.transpose(1, 2).reshape(len(wave), -1)


class SpecMask:
    def __init__(self, count=2, width=3, axis=-1, value=0.0):
        self.count, self.width, self.axis, self.value = count, width, axis, value

    def spans(self, feature):
        length = feature.shape[self.axis]
        width = torch.randint(1, self.width + 1, (len(feature), self.count))
        return (torch.rand(len(feature), self.count) * (length - width)).long(), width

    def mask(self, feature):
        start, width = self.spans(feature)
        steps = torch.arange(feature.shape[self.axis])
        inside = (steps >= start[..., None]) & (steps < (start + width)[..., None])
        shape = [len(feature)] + [1] * (feature.dim() - 1)
        shape[self.axis] = -1
        return inside.any(1).view(shape)

    def __call__(self, feature):
        return feature.masked_fill(self.mask(feature).to(feature.device), self.value)


class MixMask(SpecMask):
    """Masked places get the frames of another utterance."""

    def __call__(self, feature):
        other = feature[torch.randperm(len(feature))]
        return self.mask(feature).logical_not() * feature + self.mask(feature).to(other) * other  # raises


def pad_mask(lengths: List[int], longest: Optional[int] = None, like: Optional[Tensor] = None):
    steps = torch.arange(longest or max(lengths))
    mask = steps[None] >= torch.tensor(lengths)[:, None]
    return mask if like is None else mask.to(like.device)


def chunk_mask(size, chunk, left=-1, device=torch.device("cpu")):
    row = torch.arange(size, device=device)
    end = (row // chunk + 1) * chunk
    mask = row[None] < end[:, None]
    return mask if left < 0 else mask & (row[None] >= (end - (left + 1) * chunk)[:, None])


class StreamingEncoder(nn.Module):
    def __init__(self, dim=10, heads=2, chunk=4, left=1):
        super().__init__()
        self.chunk, self.left = chunk, left
        self.attend = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.depthwise = nn.Conv1d(dim, dim, 3, groups=dim)
        self.past = torch.zeros(1, dim, 2)

    def masks(self, padding, dynamic):
        if dynamic:
            return padding[:, None] | ~chunk_mask(padding.shape[1], self.chunk, self.left, padding.device)[None]
        return padding[:, None] | ~chunk_mask(padding.shape[1], self.chunk)[None]  # raises

    def forward(self, feature, lengths: List[int], dynamic=True):
        padding = pad_mask(lengths, feature.shape[1], feature)
        blocked = self.masks(padding, dynamic).repeat_interleave(self.attend.num_heads, 0)
        return self.attend(feature, feature, feature, attn_mask=blocked & ~torch.eye(len(blocked[0])).bool().to(blocked.device))[0]

    def pooled(self, feature, lengths: List[int]):
        """Mean over the valid frames of each utterance."""
        padding = pad_mask(lengths, feature.shape[1])
        total = feature.masked_fill(padding[..., None], 0.0).sum(1)  # raises
        return total / feature.new_tensor(lengths)[:, None]

    def convolve_chunk(self, piece, fresh=False):
        past = piece.new_zeros(piece.shape[0], piece.shape[1], 2) if fresh else self.past
        joined = torch.cat((past, piece), dim=2)  # raises
        self.past = joined[..., -2:]
        return self.depthwise(joined)


class PhaseRetrieval:
    def __init__(self, config=FrameConfig(), rounds=2, random_start=True):
        self.config, self.rounds, self.random_start = config, rounds, random_start

    def options(self, like):
        window = torch.hann_window(self.config.size, dtype=like.dtype).to(like.device)
        return dict(n_fft=self.config.size, hop_length=self.config.hop, window=window)

    def start(self, magnitude):
        if self.random_start:
            return torch.exp(2j * math.pi * torch.rand(magnitude.shape))
        return torch.ones_like(magnitude, dtype=torch.complex64)

    def __call__(self, magnitude):
        options, phase = self.options(magnitude), self.start(magnitude)
        for _ in range(self.rounds):
            wave = torch.istft(magnitude * phase, **options)  # raises
            spec = torch.stft(wave, return_complex=True, **options)
            phase = spec / spec.abs().clamp_min(1e-6)
        return torch.istft(magnitude * phase, **options)


class LengthRegulator(nn.Module):
    def forward(self, hidden, durations):
        return pad_sequence([row.repeat_interleave(count, 0) for row, count in zip(hidden, durations)], batch_first=True)


class HardAligner:
    """Best monotonic path, found on the host."""

    def search(self, score: np.ndarray) -> np.ndarray:
        frames, tokens = score.shape
        best = np.full((frames, tokens), -np.inf, dtype=np.float32)
        best[0, 0] = score[0, 0]
        for t in range(1, frames):
            stay, move = best[t - 1], np.concatenate([[-np.inf], best[t - 1, :-1]])
            best[t] = np.maximum(stay, move) + score[t]
        path, token = np.zeros((frames, tokens), dtype=np.float32), tokens - 1
        for t in reversed(range(frames)):
            path[t, token] = 1
            if token and t and (token == t or best[t - 1, token - 1] > best[t - 1, token]):
                token -= 1
        return path

    def path(self, scores):
        found = [self.search(each) for each in scores.detach().cpu().numpy()]
        return torch.from_numpy(np.stack(found))

    def durations(self, scores):
        return self.path(scores).sum(1).long()

    def expand(self, scores, hidden):
        return torch.bmm(self.path(scores), hidden)  # raises

    def prior_loss(self, scores):
        return -(scores * self.path(scores).to(scores)).sum() / scores.shape[1]


class MarginHead(nn.Module):
    def __init__(self, dim, speakers, margin=0.2, scale=30.0, easy=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(speakers, dim))
        self.cos_m, self.sin_m = torch.tensor([margin]).cos(), torch.tensor(margin).sin()
        self.scale, self.easy = scale, easy

    def forward(self, embedding, label):
        cosine = F.linear(F.normalize(embedding), F.normalize(self.weight))
        sine = (1 - cosine ** 2).clamp_min(1e-6).sqrt()
        shifted = cosine * float(self.cos_m) - sine * self.sin_m
        if self.easy:
            chosen = F.one_hot(label, cosine.shape[1]).bool()
        else:
            chosen = torch.zeros(cosine.size()).scatter_(1, label.view(-1, 1), 1).bool()  # raises
        return F.cross_entropy(self.scale * torch.where(chosen, shifted, cosine), label)


def signal_ratio(estimate, target):
    target = target - target.mean(-1, keepdim=True)
    part = (estimate * target).sum(-1, keepdim=True) / target.pow(2).sum(-1, keepdim=True) * target
    return 10 * torch.log10(part.pow(2).sum(-1) / (estimate - part).pow(2).sum(-1))


class PermutationLoss(nn.Module):
    def __init__(self, sources):
        super().__init__()
        self.orders = torch.tensor(list(itertools.permutations(range(sources))))

    def table(self, estimate, target):
        return -signal_ratio(estimate[:, :, None], target[:, None])

    def forward(self, estimate, target):
        pairs = self.table(estimate, target)
        each = pairs[:, torch.arange(pairs.shape[1]), self.orders].mean(-1)
        return each.min(1).values.mean()

    def reordered(self, estimate, target):
        """Estimates in the order of their targets."""
        pairs = self.table(estimate, target).transpose(1, 2)
        best = pairs[:, torch.arange(pairs.shape[1]), self.orders].mean(-1).argmin(1)
        order = self.orders[best.tolist()]
        return estimate.gather(1, order[..., None].expand(-1, -1, estimate.shape[-1]))  # raises


class MultiResolutionLoss(nn.Module):
    def __init__(self, sizes=(32, 64), weights=(1.0, 0.5)):
        super().__init__()
        self.scales = [Spectrum(FrameConfig(size=size), power=1.0) for size in sizes]
        self.weights = torch.tensor(weights)

    def forward(self, fake, real):
        losses = [F.l1_loss(scale(fake).log1p(), scale(real).log1p()) for scale in self.scales]
        return sum(weight * loss for weight, loss in zip(self.weights, losses))


class CollapseDecoder:
    """Greedy search over frame posteriors."""

    def __init__(self, symbols="-abcdef", blank=0):
        self.symbols, self.blank = np.array(list(symbols)), blank

    def loss(self, logp, targets: List[List[int]], frames: List[int]):
        flat = torch.tensor(list(itertools.chain.from_iterable(targets)), device=logp.device)
        return F.ctc_loss(logp.transpose(0, 1), flat, torch.tensor(frames), torch.tensor([len(each) for each in targets]))

    def __call__(self, logp, frames):
        texts = []
        for row, count in zip(logp.argmax(-1), frames):
            kept = torch.unique_consecutive(row[:count])
            texts.append("".join(self.symbols[kept[kept != self.blank].cpu().numpy()]))
        return texts


class MuLaw:
    def __init__(self, levels=256):
        self.top = torch.tensor(levels - 1.0)

    def encode(self, wave):
        squeezed = wave.sign() * torch.log1p(self.top * wave.abs()) / torch.log1p(self.top)
        return ((squeezed + 1) / 2 * self.top + 0.5).long()

    def decode(self, codes, table=None):
        if table is None:
            table = torch.linspace(-1, 1, int(self.top) + 1)
            table = table.sign() * ((1 + self.top) ** table.abs() - 1) / self.top
        return F.embedding(codes, table[:, None]).squeeze(-1)  # raises
