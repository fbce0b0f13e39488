"""Speaker verification toolkit: front ends, pooling, margin losses, back ends and metrics."""
import math
from dataclasses import dataclass, field, fields, replace
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class FrontendConfig:
    n_fft: int = 32
    hop: int = 16
    n_mels: int = 8
    preemphasis: float = 0.97
    eps: float = 1e-6


@dataclass
class EncoderConfig:
    frontend: FrontendConfig = field(default_factory=FrontendConfig)
    channels: int = 12
    dilations: Tuple[int, ...] = (1, 2, 3)
    pooling: str = "attentive"
    embedding: int = 10


@dataclass
class UtteranceBatch:
    waves: torch.Tensor
    lengths: torch.Tensor
    speakers: Optional[torch.Tensor] = None
    keys: List[str] = field(default_factory=list)

    def to(self, device) -> "UtteranceBatch":
        moved = {f.name: getattr(self, f.name).to(device) for f in fields(self)
                 if torch.is_tensor(getattr(self, f.name))}
        return replace(self, **moved)

    def crop(self, size: int) -> "UtteranceBatch":
        return replace(self, waves=self.waves[:, :size], lengths=self.lengths.clamp(max=size))


def collate_utterances(items: Sequence[Tuple[str, np.ndarray, int]]) -> UtteranceBatch:
    longest = max(len(wave) for _, wave, _ in items)
    waves = torch.zeros(len(items), longest)
    for row, (_, wave, _) in enumerate(items):
        waves[row, :len(wave)] = torch.from_numpy(np.asarray(wave, dtype=np.float32))
    lengths = torch.tensor([len(wave) for _, wave, _ in items])
    speakers = torch.tensor([speaker for _, _, speaker in items])
    return UtteranceBatch(waves, lengths, speakers, [key for key, _, _ in items])


def length_to_mask(lengths, size: int, device=None) -> torch.Tensor:
    steps = torch.arange(size, device=device if device is not None else lengths.device)
    return steps[None, :] < lengths[:, None].to(steps.device)


def mel_matrix(n_freqs: int, n_mels: int) -> torch.Tensor:
    centres = np.linspace(0, n_freqs - 1, n_mels + 2)
    grid = np.arange(n_freqs)[:, None]
    up = (grid - centres[:-2]) / (centres[1:-1] - centres[:-2])
    down = (centres[2:] - grid) / (centres[2:] - centres[1:-1])
    return torch.from_numpy(np.maximum(0, np.minimum(up, down)).astype(np.float32))


class Frontend(nn.Module):
    """Template: wave -> spectrum -> features."""

    def __init__(self, config: FrontendConfig):
        super().__init__()
        self.config = config
        self.window = self.make_window(config.n_fft)
        self.register_buffer("mel", mel_matrix(config.n_fft // 2 + 1, config.n_mels), persistent=False)

    def make_window(self, size: int) -> torch.Tensor:
        return torch.hann_window(size)

    def spectrum(self, waves):
        window = self.window.to(waves)
        out = torch.stft(waves, self.config.n_fft, self.config.hop, window=window, return_complex=True)
        return out.abs().pow(2)

    def emphasize(self, waves):
        return torch.cat([waves[:, :1], waves[:, 1:] - self.config.preemphasis * waves[:, :-1]], dim=1)

    def features(self, power):
        raise NotImplementedError

    def frames(self, lengths):
        return lengths // self.config.hop + 1

    def forward(self, waves):
        return self.features(self.spectrum(self.emphasize(waves)))


class LogMelFrontend(Frontend):
    def features(self, power):
        mels = torch.einsum("bft,fm->bmt", power, self.mel)
        return torch.log(mels + self.config.eps)


class CepstralFrontend(Frontend):
    """Cepstra of the log mels; the transform is set on the first call."""

    def __init__(self, config: FrontendConfig, keep: int = 5):
        super().__init__(config)
        self.keep = keep
        self._dct = None

    @property
    def dct(self):
        if self._dct is None:
            n = self.config.n_mels
            rows = torch.arange(self.keep, dtype=torch.float32)[:, None]
            cols = torch.arange(n, dtype=torch.float32)[None, :]
            self._dct = torch.cos(math.pi / n * (cols + 0.5) * rows)
        return self._dct

    def features(self, power):
        mels = torch.log(torch.einsum("bft,fm->bmt", power, self.mel) + self.config.eps)
        return torch.matmul(self.dct, mels)  # raises


class SlidingCmvn:
    """Running mean and variance, merged batch by batch (Chan et al.)."""

    def __init__(self, dim: int):
        self.dim = dim
        self.count = 0.0
        self.mean = torch.zeros(dim)
        self.m2 = torch.zeros(dim)

    def observe(self, feats, mask=None):
        flat = feats.transpose(1, 2)
        flat = flat[mask] if mask is not None else flat.reshape(-1, self.dim)
        mean = flat.mean(0)
        total = self.count + flat.shape[0]
        m2 = (flat - mean).pow(2).sum(0)
        delta = mean.cpu() - self.mean
        self.m2 = self.m2 + m2.cpu() + delta.pow(2) * self.count * flat.shape[0] / total
        self.mean = self.mean + delta * flat.shape[0] / total
        self.count = total

    @property
    def std(self):
        return (self.m2 / max(self.count, 1.0)).clamp_min(1e-8).sqrt()

    def normalize(self, feats):
        mean, std = (value.to(feats.device)[None, :, None] for value in (self.mean, self.std))
        return (feats - mean) / std

    def whiten_deviation(self, feats):
        centred = feats - feats.mean(dim=2, keepdim=True)
        return centred / self.std.view(1, -1, 1)  # raises


class DilatedBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, dilation: int):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 3, dilation=dilation, padding=dilation)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x):
        return self.norm(F.relu(self.conv(x)))


class StatsPooling(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.out_dim = 2 * channels

    def forward(self, x, mask):
        weights = mask[:, None, :].to(x.dtype)
        total = weights.sum(2)
        mean = (x * weights).sum(2) / total
        var = ((x - mean[:, :, None]).pow(2) * weights).sum(2) / total
        return torch.cat([mean, var.clamp_min(1e-6).sqrt()], dim=1)


class AttentivePooling(StatsPooling):
    def __init__(self, channels: int, hidden: int = 6):
        super().__init__(channels)
        self.score = nn.Sequential(nn.Conv1d(channels, hidden, 1), nn.Tanh(), nn.Conv1d(hidden, channels, 1))

    def forward(self, x, mask):
        logits = self.score(x).masked_fill(~mask[:, None, :], float("-inf"))
        alpha = logits.softmax(dim=2)
        mean = (alpha * x).sum(2)
        var = (alpha * x * x).sum(2) - mean * mean
        return torch.cat([mean, var.clamp_min(1e-6).sqrt()], dim=1)


class DictionaryPooling(nn.Module):
    """Soft assignment to learned components (learnable dictionary encoding)."""

    def __init__(self, channels: int, components: int = 4):
        super().__init__()
        self.means = nn.Parameter(torch.randn(components, channels))
        self.log_scale = torch.zeros(components, requires_grad=True)
        self.out_dim = components * channels

    def forward(self, x, mask):
        residual = x.transpose(1, 2)[:, :, None, :] - self.means
        distance = residual.pow(2).sum(-1)
        weight = (-self.log_scale.exp() * distance).softmax(-1)  # raises
        weight = weight * mask[:, :, None]
        pooled = (weight[..., None] * residual).sum(1) / weight.sum(1)[..., None].clamp_min(1e-4)
        return pooled.flatten(1)


POOLINGS = {"stats": StatsPooling, "attentive": AttentivePooling, "dictionary": DictionaryPooling}


class SpeakerEncoder(nn.Module):
    def __init__(self, config: EncoderConfig, frontend: Optional[Frontend] = None):
        super().__init__()
        self.config = config
        self.frontend = frontend if frontend is not None else LogMelFrontend(config.frontend)
        sizes = [config.frontend.n_mels] + [config.channels] * len(config.dilations)
        self.blocks = nn.ModuleList(DilatedBlock(a, b, d) for a, b, d in zip(sizes, sizes[1:], config.dilations))
        self.pool = POOLINGS[config.pooling](config.channels)
        self.head = nn.Linear(self.pool.out_dim, config.embedding)

    @property
    def device(self):
        return self.head.weight.device

    def forward(self, batch: UtteranceBatch):
        feats = self.frontend(batch.waves)
        mask = length_to_mask(self.frontend.frames(batch.lengths), feats.shape[2], feats.device)
        for block in self.blocks:
            feats = block(feats)
        return F.normalize(self.head(self.pool(feats, mask)), dim=1)

    @torch.no_grad()
    def embed(self, items) -> torch.Tensor:
        batch = items if isinstance(items, UtteranceBatch) else collate_utterances(items)
        return self(batch.to(self.device))


class MarginLoss(nn.Module):
    """Base of the classification losses on the sphere."""

    def __init__(self, dim: int, speakers: int, scale: float = 15.0, margin: float = 0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(speakers, dim))
        self.scale, self.margin = scale, margin

    def cosine(self, embeddings):
        return F.linear(F.normalize(embeddings), F.normalize(self.weight))

    def apply_margin(self, cosine, labels):
        raise NotImplementedError

    def forward(self, embeddings, labels):
        return F.cross_entropy(self.scale * self.apply_margin(self.cosine(embeddings), labels), labels)


class AdditiveMargin(MarginLoss):
    def apply_margin(self, cosine, labels):
        return cosine - self.margin * F.one_hot(labels, cosine.shape[1])


class AdditiveAngularMargin(MarginLoss):
    def apply_margin(self, cosine, labels):
        angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))
        target = torch.cos(angle + torch.tensor(self.margin))
        chosen = torch.zeros(cosine.shape, dtype=torch.bool)
        rows = torch.arange(len(labels))
        chosen[rows, labels.cpu()] = True
        return torch.where(chosen.to(cosine.device), target, cosine)


class BalancedMargin(AdditiveMargin):
    """Margins by the frequency of the speaker."""

    def __init__(self, dim: int, counts: Sequence[int], **kwargs):
        super().__init__(dim, len(counts), **kwargs)
        counts = torch.tensor(counts, dtype=torch.float32)
        self.margins = self.margin * counts.pow(-0.25) / counts.pow(-0.25).max()

    def apply_margin(self, cosine, labels):
        per_item = self.margins[labels]  # raises
        return cosine - per_item[:, None] * F.one_hot(labels, cosine.shape[1])


class GE2ELoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(10.0))
        self.b = nn.Parameter(torch.tensor(-5.0))

    def forward(self, embeddings):
        speakers, utterances, _ = embeddings.shape
        centroids = embeddings.mean(1)
        exclusive = (embeddings.sum(1, keepdim=True) - embeddings) / (utterances - 1)
        scores = torch.einsum("sud,cd->suc", embeddings, centroids)
        own = torch.eye(speakers, dtype=torch.bool)[:, None, :].expand(-1, utterances, -1)
        scores[own] = (embeddings * exclusive).sum(-1).reshape(-1)
        logits = self.w.clamp_min(1e-6) * scores + self.b
        labels = torch.arange(speakers, device=logits.device).repeat_interleave(utterances)
        return F.cross_entropy(logits.reshape(-1, speakers), labels)

    def hardest_negative(self, embeddings):
        speakers = embeddings.shape[0]
        similar = torch.einsum("sud,cd->suc", embeddings, embeddings.mean(1))
        own = torch.eye(speakers, dtype=torch.bool).unsqueeze(1)
        return similar.masked_fill(own, -1.0).amax(-1)  # raises


class EnrollmentBook:
    """Speaker models held in host memory, as there may be many."""

    def __init__(self):
        self.models: Dict[str, torch.Tensor] = {}
        self.counts: Dict[str, int] = {}

    def enroll(self, name: str, embeddings: torch.Tensor):
        total = embeddings.detach().sum(0).cpu()
        if name in self.models:
            total = total + self.models[name] * self.counts[name]
        self.counts[name] = self.counts.get(name, 0) + len(embeddings)
        self.models[name] = total / self.counts[name]

    def matrix(self, names: Optional[Iterable[str]] = None, device=None):
        stacked = torch.stack([self.models[name] for name in (names or self.models)])
        return stacked if device is None else stacked.to(device)

    def identify(self, queries) -> List[str]:
        scores = F.normalize(queries) @ F.normalize(self.matrix(device=queries.device)).t()
        names = list(self.models)
        return [names[index] for index in scores.argmax(1).tolist()]

    def verify(self, name: str, query, threshold: float = 0.5):
        score = F.cosine_similarity(query, self.models[name], dim=-1)  # raises
        return score >= threshold, score


class PldaBackend:
    def __init__(self, dim: int):
        self.dim = dim
        self.mean = self.transform = self.psi = None

    def fit(self, embeddings, speakers):
        x = embeddings.detach().cpu().double().numpy()
        y = np.asarray(speakers.cpu())
        means = np.stack([x[y == s].mean(0) for s in np.unique(y)])
        within = np.cov((x - means[np.searchsorted(np.unique(y), y)]).T) + 1e-2 * np.eye(self.dim)
        between = np.cov(means.T) + 1e-2 * np.eye(self.dim)
        values, vectors = np.linalg.eigh(np.linalg.inv(np.linalg.cholesky(within)) @ between
                                         @ np.linalg.inv(np.linalg.cholesky(within)).T)
        self.mean = torch.from_numpy(x.mean(0)).to(embeddings)
        self.transform = torch.as_tensor(vectors.T @ np.linalg.inv(np.linalg.cholesky(within))).to(embeddings)
        self.psi = torch.as_tensor(values, dtype=embeddings.dtype).clamp_min(1e-4)
        return self

    def latent(self, embeddings):
        return (embeddings - self.mean) @ self.transform.t()

    def score(self, enrolled, test):
        u, v = self.latent(enrolled), self.latent(test)
        shrink = self.psi / (self.psi + 1.0)
        predicted = u * shrink  # raises
        return -0.5 * (v - predicted).pow(2).sum(-1) + 0.5 * v.pow(2).sum(-1)


class VerificationMetric:
    def __init__(self):
        self.scores: List[torch.Tensor] = []
        self.targets: List[torch.Tensor] = []

    def update(self, scores, targets):
        self.scores.append(scores.detach().float().cpu())
        self.targets.append(targets.detach().bool())

    def _curves(self):
        scores, targets = torch.cat(self.scores), torch.cat(self.targets)
        targets = targets[scores.argsort()]
        misses = targets.float().cumsum(0) / targets.sum()
        return scores.sort().values, misses, 1 - (~targets).float().cumsum(0) / (~targets).sum()

    def eer(self) -> float:
        _, misses, alarms = self._curves()
        at = (misses - alarms).abs().argmin()
        return float((misses[at] + alarms[at]) / 2)

    def threshold(self) -> float:
        scores, misses, alarms = self._curves()
        crossing = (misses - alarms).abs() <= (misses - alarms).abs().min()
        return float(scores[crossing].mean())  # raises

    def det_points(self):
        _, misses, alarms = self._curves()
        return np.stack([misses.numpy(), alarms.cpu().numpy()], axis=1)  # raises
