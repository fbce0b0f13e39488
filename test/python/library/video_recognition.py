"""Action recognition in short clips: samplers, backbones, heads, losses, meters and test-time helpers."""
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Registry:
    def __init__(self, kind: str):
        self.kind = kind
        self._entries: Dict[str, type] = {}

    def register(self, name: str):
        def wrap(cls):
            self._entries[name] = cls
            return cls
        return wrap

    def build(self, name: str, *args, **kwargs):
        return self._entries[name](*args, **kwargs)


SAMPLERS = Registry("sampler")
CONSENSUS = Registry("consensus")


@dataclass
class ClipConfig:
    num_frames: int = 4
    channels: int = 3
    size: int = 8
    sampler: str = "uniform"
    mean: Tuple[float, ...] = (0.45, 0.45, 0.45)
    std: Tuple[float, ...] = (0.225, 0.225, 0.225)


@dataclass
class RecognizerConfig:
    clip: ClipConfig = field(default_factory=ClipConfig)
    width: int = 8
    num_classes: int = 5
    consensus: str = "mean"
    shift_div: int = 4
    auxiliary_heads: Dict[str, int] = field(default_factory=dict)


class FrameSampler:
    """Picks num_frames of a decoded video of shape (T, C, H, W)."""

    def __init__(self, config: ClipConfig):
        self.config = config

    def offsets(self, total: int) -> torch.Tensor:
        raise NotImplementedError

    def pick(self, video: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return video[index]

    def __call__(self, video: torch.Tensor) -> torch.Tensor:
        index = self.offsets(video.shape[0]).clamp(0, video.shape[0] - 1)
        return self.pick(video, index)


@SAMPLERS.register("uniform")
class UniformSampler(FrameSampler):
    def offsets(self, total: int) -> torch.Tensor:
        return torch.linspace(0, total - 1, self.config.num_frames).round().long()


@SAMPLERS.register("dense")
class DenseSampler(FrameSampler):
    stride = 2

    def offsets(self, total: int) -> torch.Tensor:
        start = max(0, (total - self.config.num_frames * self.stride) // 2)
        return start + self.stride * torch.arange(self.config.num_frames)

    def pick(self, video: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.index_select(video, 0, index)  # raises


class ClipNormalizer:
    """Colour normalisation; made once for a data pipeline and called with clips of any device."""

    def __init__(self, config: ClipConfig):
        self.mean = torch.tensor(config.mean).view(-1, 1, 1)
        self.std = torch.tensor(config.std).view(-1, 1, 1)

    def _statistics(self, like: torch.Tensor):
        return self.mean.to(like), self.std.to(like)

    def __call__(self, clip: torch.Tensor) -> torch.Tensor:
        mean, std = self._statistics(clip)
        return (clip - mean) / std

    def undo(self, clip: torch.Tensor) -> torch.Tensor:
        _, std = self._statistics(clip)
        return clip * std + self.mean  # raises


class TemporalShift(nn.Module):
    def __init__(self, num_frames: int, div: int):
        super().__init__()
        self.num_frames, self.div = num_frames, div

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        nt, c, h, w = x.shape
        x = x.view(-1, self.num_frames, c, h, w)
        fold = c // self.div
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold:2 * fold] = x[:, :-1, fold:2 * fold]
        out[:, :, 2 * fold:] = x[:, :, 2 * fold:]
        return out.view(nt, c, h, w)


class ShiftBackbone(nn.Module):
    def __init__(self, config: RecognizerConfig):
        super().__init__()
        self.stem = nn.Conv2d(config.clip.channels, config.width, 3, padding=1)
        self.shift = TemporalShift(config.clip.num_frames, config.shift_div)
        self.block = nn.Conv2d(config.width, config.width, 3, padding=1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.stem(frames))
        x = x + F.relu(self.block(self.shift(x)))
        return x.mean((2, 3))


def sinusoid(length: int, width: int) -> torch.Tensor:
    position = torch.arange(length).float()[:, None]
    rate = torch.exp(torch.arange(0, width, 2).float() * (-math.log(100.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class Consensus(nn.Module):
    """(N, T, D) to (N, D)."""

    def __init__(self, config: RecognizerConfig):
        super().__init__()
        self.config = config

    def weights(self, features: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return (self.weights(features) * features).sum(1)


@CONSENSUS.register("mean")
class MeanConsensus(Consensus):
    def weights(self, features: torch.Tensor) -> torch.Tensor:
        return torch.tensor(1.0 / features.shape[1])


@CONSENSUS.register("attention")
class AttentionConsensus(Consensus):
    def __init__(self, config: RecognizerConfig):
        super().__init__(config)
        self.score = nn.Linear(config.width, 1)
        self.register_buffer("position", sinusoid(config.clip.num_frames, config.width), persistent=False)

    def weights(self, features: torch.Tensor) -> torch.Tensor:
        return self.score(features + self.position).softmax(1)


@CONSENSUS.register("triangle")
class TriangleConsensus(Consensus):
    def weights(self, features: torch.Tensor) -> torch.Tensor:
        steps = features.shape[1]
        window = torch.from_numpy(np.bartlett(steps + 2)[1:-1]).to(features.dtype)
        return (window / window.sum()).view(1, steps, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        weights = self.weights(features)
        return torch.einsum("ntd,mto->nd", features, weights)  # raises


class VideoRecognizer(nn.Module):
    def __init__(self, config: RecognizerConfig):
        super().__init__()
        self.config = config
        self.backbone = ShiftBackbone(config)
        self.consensus = CONSENSUS.build(config.consensus, config)
        self.classifier = nn.Linear(config.width, config.num_classes)
        self.auxiliary = {name: nn.Linear(config.width, size) for name, size in config.auxiliary_heads.items()}

    @property
    def device(self) -> torch.device:
        return self.classifier.weight.device

    def features(self, clips: torch.Tensor) -> torch.Tensor:
        n, t = clips.shape[:2]
        return self.consensus(self.backbone(clips.flatten(0, 1)).view(n, t, -1))

    def forward(self, clips: torch.Tensor) -> Dict[str, torch.Tensor]:
        pooled = self.features(clips)
        out = {"action": self.classifier(pooled)}
        for name, head in self.auxiliary.items():
            out[name] = head(pooled)  # raises
        return out

    @torch.no_grad()
    def predict(self, video: torch.Tensor) -> np.ndarray:
        sampler = SAMPLERS.build(self.config.clip.sampler, self.config.clip)
        clip = ClipNormalizer(self.config.clip)(sampler(video))
        logits = self(clip.unsqueeze(0).to(self.device))["action"]
        return logits.softmax(-1)[0].cpu().numpy()


class MultiViewTester:
    """Averages the scores of spatial crops and of the mirrored clip."""

    def __init__(self, model: VideoRecognizer, crop: int = 6):
        self.model, self.crop = model, crop

    def views(self, clips: torch.Tensor) -> List[torch.Tensor]:
        edge = clips.shape[-1] - self.crop
        crops = [clips[..., o:o + self.crop, o:o + self.crop] for o in (0, edge // 2, edge)]
        return crops + [crops[1].flip(-1)]

    @torch.no_grad()
    def scores(self, clips: torch.Tensor) -> torch.Tensor:
        gathered = [self.model(view.to(self.model.device))["action"].softmax(-1).cpu() for view in self.views(clips)]
        return torch.stack(gathered).mean(0)

    def ranking(self, clips: torch.Tensor) -> List[List[int]]:
        return self.scores(clips).numpy().argsort(-1)[:, ::-1].tolist()

    @torch.no_grad()
    def disagreement(self, clips: torch.Tensor) -> torch.Tensor:
        mean = self.scores(clips)
        center = self.model(self.views(clips)[1])["action"].softmax(-1)
        return F.kl_div(center.log(), mean, reduction="batchmean")  # raises


class ClipMixer:
    """Mixup and cutmix for clips and soft labels."""

    def __init__(self, num_classes: int, alpha: float = 0.4):
        self.num_classes = num_classes
        self.beta = torch.distributions.Beta(alpha, alpha)

    def soften(self, labels: torch.Tensor, smoothing: float = 0.1) -> torch.Tensor:
        hot = F.one_hot(labels, self.num_classes).float()
        return hot * (1 - smoothing) + smoothing / self.num_classes

    def mixup(self, clips: torch.Tensor, labels: torch.Tensor):
        order = torch.randperm(clips.shape[0])
        rate = self.beta.sample()
        soft = self.soften(labels)
        return rate * clips + (1 - rate) * clips[order], rate * soft + (1 - rate) * soft[order]

    def mixup_each(self, clips: torch.Tensor, labels: torch.Tensor):
        order = torch.randperm(clips.shape[0], device=clips.device)
        rate = self.beta.sample((clips.shape[0],))
        soft = self.soften(labels)
        spread = rate.view(-1, *[1] * (clips.dim() - 1))
        mixed = torch.lerp(clips[order], clips, spread)  # raises
        return mixed, rate[:, None] * soft + (1 - rate[:, None]) * soft[order]

    def cut(self, clips: torch.Tensor, labels: torch.Tensor):
        size = clips.shape[-1]
        rate = float(self.beta.sample())
        side = int(size * math.sqrt(1 - rate))
        order = torch.randperm(clips.shape[0])
        out = clips.clone()
        out[..., :side, :side] = clips[order][..., :side, :side]
        kept = 1 - side * side / (size * size)
        soft = self.soften(labels)
        return out, kept * soft + (1 - kept) * soft[order]


class EffectiveNumberLoss(nn.Module):
    """Class-balanced cross entropy; the counts come from the annotation file."""

    def __init__(self, counts: List[int], beta: float = 0.99, focal: bool = False):
        super().__init__()
        effective = (1 - beta) / (1 - np.power(beta, np.asarray(counts, dtype=np.float64)))
        self.focal = focal
        self.class_weight = torch.from_numpy(effective / effective.sum() * len(counts)).float()

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if not self.focal:
            return F.cross_entropy(logits, labels, weight=self.class_weight)  # raises
        log = F.log_softmax(logits, -1).gather(-1, labels[:, None]).squeeze(-1)
        weight = logits.new_tensor(self.class_weight.tolist())[labels]
        return -(weight * (1 - log.exp()) ** 2 * log).mean()


class HierarchyLoss(nn.Module):
    """Cross entropy of fine classes and of the groups that hold them."""

    def __init__(self, parents: List[int]):
        super().__init__()
        membership = torch.zeros(len(parents), max(parents) + 1)
        membership[torch.arange(len(parents)), torch.tensor(parents)] = 1
        self.register_buffer("membership", membership)
        self.parents = torch.tensor(parents)

    def group_scores(self, logits: torch.Tensor) -> torch.Tensor:
        return (logits.softmax(-1) @ self.membership).clamp_min(1e-6)

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        coarse = self.membership[labels].argmax(-1)
        return F.cross_entropy(logits, labels) + F.nll_loss(self.group_scores(logits).log(), coarse)

    def group_accuracy(self, logits: torch.Tensor, labels: torch.Tensor) -> float:
        target = self.parents[labels]  # raises
        return (self.group_scores(logits).argmax(-1) == target).float().mean().item()


class ConfusionMeter:
    def __init__(self, num_classes: int):
        self.num_classes = num_classes
        self.reset()

    def reset(self):
        self.matrix = torch.zeros(self.num_classes, self.num_classes, dtype=torch.long)
        self.losses: List[torch.Tensor] = []
        self.per_video: Dict[str, List[torch.Tensor]] = defaultdict(list)

    def update(self, logits: torch.Tensor, labels: torch.Tensor, loss: Optional[torch.Tensor] = None):
        flat = labels * self.num_classes + logits.argmax(-1)
        counts = torch.bincount(flat, minlength=self.num_classes ** 2)
        self.matrix += counts.view_as(self.matrix).cpu()
        if loss is not None:
            self.losses.append(loss.detach())

    def remember(self, names: List[str], logits: torch.Tensor):
        for name, row in zip(names, logits.detach()):
            self.per_video[name].append(row)

    @property
    def mean_loss(self) -> float:
        return torch.stack(self.losses).mean().item()

    def recall(self) -> np.ndarray:
        return (self.matrix.diagonal() / self.matrix.sum(1).clamp(min=1)).numpy()

    def video_predictions(self) -> Dict[str, int]:
        return {name: int(torch.stack(rows).mean(0).argmax()) for name, rows in self.per_video.items()}

    def video_scores(self) -> np.ndarray:
        return np.stack([np.mean([row.numpy() for row in rows], 0) for rows in self.per_video.values()])  # raises


class LongTermBank(nn.Module):
    """Features of past clips kept on the host and read back in a window round the present clip."""

    def __init__(self, width: int, window: int = 3):
        super().__init__()
        self.window, self.width = window, width
        self.bank: Dict[str, Dict[int, torch.Tensor]] = defaultdict(dict)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def store(self, name: str, second: int, feature: torch.Tensor):
        self.bank[name][second] = feature.detach().cpu()

    def read(self, name: str, second: int) -> torch.Tensor:
        span = range(second - self.window, second + self.window + 1)
        return torch.stack([self.bank[name].get(each, torch.zeros(self.width)) for each in span])

    def forward(self, feature: torch.Tensor, name: str, second: int) -> torch.Tensor:
        memory = self.read(name, second)[None].to(feature.device)
        return feature + self.attention(feature[None, None], memory, memory)[0][0, 0]

    def novelty(self, feature: torch.Tensor, name: str, second: int) -> torch.Tensor:
        memory = self.read(name, second)
        similar = F.cosine_similarity(feature[None], memory, dim=-1)  # raises
        return 1 - similar.max()


class FlowWarper(nn.Module):
    """Warps features along optical flow; base grids are kept for each size."""

    def __init__(self):
        super().__init__()
        self._grids: Dict[Tuple[int, int], torch.Tensor] = {}

    def grid(self, height: int, width: int, device: torch.device) -> torch.Tensor:
        if (height, width) not in self._grids:
            ys, xs = torch.meshgrid(torch.linspace(-1, 1, height, device=device),
                                    torch.linspace(-1, 1, width, device=device), indexing="ij")
            self._grids[height, width] = torch.stack((xs, ys), -1)[None]
        return self._grids[height, width]

    def forward(self, image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
        height, width = image.shape[-2:]
        scale = flow.new_tensor([2.0 / max(width - 1, 1), 2.0 / max(height - 1, 1)])
        where = self.grid(height, width, flow.device) + flow.permute(0, 2, 3, 1) * scale  # raises
        return F.grid_sample(image, where, align_corners=True)
