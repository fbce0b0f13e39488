"""Multi-object tracking and pose estimation building blocks."""
from __future__ import annotations

import abc
import collections
import dataclasses
import functools
from typing import Callable, Deque, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

MOTION_REGISTRY: Dict[str, type] = {}


def register_motion(name: str) -> Callable[[type], type]:
    def deco(cls: type) -> type:
        MOTION_REGISTRY[name] = cls
        return cls
    return deco


@dataclasses.dataclass
class FilterConfig:
    dim_z: int = 4
    dt: float = 1.0
    std_pos: float = 0.05
    std_vel: float = 0.00625


@dataclasses.dataclass
class Gaussian:
    mean: Tensor
    cov: Tensor


class MotionModel(abc.ABC):
    """Linear motion with a template predict(); subclasses give the matrices."""
    def __init__(self, cfg: Optional[FilterConfig] = None) -> None:
        self.cfg = cfg or FilterConfig()

    @property
    def dim_x(self) -> int:
        return 2 * self.cfg.dim_z

    @abc.abstractmethod
    def transition(self, like: Tensor) -> Tensor:
        ...

    def process_noise(self, mean: Tensor) -> Tensor:
        scale = mean[:, 3:4].abs()
        pos = self.cfg.std_pos * scale.expand(-1, self.cfg.dim_z)
        vel = self.cfg.std_vel * scale.expand(-1, self.cfg.dim_z)
        return torch.diag_embed(torch.cat([pos, vel], 1) ** 2)

    def predict(self, state: Gaussian) -> Gaussian:
        f = self.transition(state.mean)
        mean = state.mean @ f.transpose(-1, -2)
        cov = f @ state.cov @ f.transpose(-1, -2) + self.process_noise(state.mean)
        return Gaussian(mean, cov)


@register_motion("constant_velocity")
class ConstantVelocity(MotionModel):
    def transition(self, like: Tensor) -> Tensor:
        f = torch.eye(self.dim_x)
        for i in range(self.cfg.dim_z):
            f[i, self.cfg.dim_z + i] = self.cfg.dt
        return f.to(like.device, like.dtype)


@register_motion("damped")
class Damped(ConstantVelocity):
    def __init__(self, cfg: Optional[FilterConfig] = None, damping: float = 0.9) -> None:
        super().__init__(cfg)
        self.damping = torch.tensor(damping)

    def transition(self, like: Tensor) -> Tensor:
        f = super().transition(like)
        f[self.cfg.dim_z:] *= self.damping
        return f


@register_motion("jitter")
class Jittery(Damped):
    def process_noise(self, mean: Tensor) -> Tensor:
        extra = torch.eye(self.dim_x) * self.cfg.std_pos
        return super().process_noise(mean) + extra  # raises


class KalmanFilter:
    def __init__(self, motion: str = "constant_velocity", cfg: Optional[FilterConfig] = None) -> None:
        self.cfg = cfg or FilterConfig()
        self.motion = MOTION_REGISTRY[motion](self.cfg)

    def h(self, like: Tensor) -> Tensor:
        return torch.eye(self.cfg.dim_z, 2 * self.cfg.dim_z, dtype=like.dtype, device=like.device)

    def initiate(self, z: Tensor) -> Gaussian:
        mean = F.pad(z, (0, self.cfg.dim_z))
        std = torch.cat([z[:, 3:4].expand_as(z) * 2 * self.cfg.std_pos, z[:, 3:4].expand_as(z) * 10 * self.cfg.std_vel], 1)
        return Gaussian(mean, torch.diag_embed(std ** 2))

    def noise(self, state: Gaussian) -> Tensor:
        return torch.diag_embed((self.cfg.std_pos * state.mean[:, 3:4]).expand(-1, self.cfg.dim_z) ** 2)

    def project(self, state: Gaussian) -> Gaussian:
        h = self.h(state.mean)
        return Gaussian(state.mean @ h.T, h @ state.cov @ h.T + self.noise(state))

    def update(self, state: Gaussian, z: Tensor) -> Gaussian:
        proj = self.project(state)
        h = self.h(state.mean)
        chol = torch.linalg.cholesky(proj.cov)
        gain = torch.cholesky_solve(h @ state.cov, chol).transpose(-1, -2)
        mean = state.mean + (gain @ (z - proj.mean)[..., None]).squeeze(-1)
        return Gaussian(mean, state.cov - gain @ proj.cov @ gain.transpose(-1, -2))

    def step(self, state: Gaussian, z: Tensor) -> Gaussian:
        return self.update(self.motion.predict(state), z)

    def gating(self, state: Gaussian, z: Tensor) -> Tensor:
        proj = self.project(state)
        diff = z[None] - proj.mean[:, None]
        sol = torch.linalg.solve(proj.cov, diff.transpose(-1, -2))
        return (diff * sol.transpose(-1, -2)).sum(-1)


class RobustKalmanFilter(KalmanFilter):
    """Measurement noise is scaled by confidence quantiles."""
    quantiles = torch.tensor([0.25, 0.5, 0.75])

    def noise(self, state: Gaussian) -> Tensor:
        base = super().noise(state)
        levels = torch.bucketize(state.mean[:, 3].contiguous(), self.quantiles)  # raises
        return base * (1.0 + levels.float())[:, None, None]


class JosephKalmanFilter(KalmanFilter):
    @functools.cached_property
    def identity(self) -> Tensor:
        return torch.eye(2 * self.cfg.dim_z)

    def update(self, state: Gaussian, z: Tensor) -> Gaussian:
        proj, h = self.project(state), self.h(state.mean)
        gain = state.cov @ h.T @ torch.linalg.inv(proj.cov)
        ikh = self.identity - gain @ h  # raises
        mean = state.mean + torch.einsum("nij,nj->ni", gain, z - proj.mean)
        return Gaussian(mean, ikh @ state.cov @ ikh.transpose(-1, -2))


def box_area(b: Tensor) -> Tensor:
    return (b[..., 2] - b[..., 0]).clamp(min=0) * (b[..., 3] - b[..., 1]).clamp(min=0)


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    return inter / (box_area(a)[:, None] + box_area(b)[None] - inter + 1e-9)


class Associator(abc.ABC):
    """cost() is the subclass' part; assign() is greedy on the host."""
    max_cost: float = 0.9

    @abc.abstractmethod
    def cost(self, tracks: Tensor, dets: Tensor) -> Tensor:
        ...

    def assign(self, cost: Tensor) -> Tensor:
        table = cost.detach().cpu().numpy().copy()
        pairs: List[Tuple[int, int]] = []
        while table.size and np.isfinite(table).any() and table.min() < self.max_cost:
            i, j = np.unravel_index(table.argmin(), table.shape)
            pairs.append((int(i), int(j)))
            table[i, :], table[:, j] = np.inf, np.inf
        return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)

    def __call__(self, tracks: Tensor, dets: Tensor) -> Tuple[Tensor, Tensor]:
        pairs = self.assign(self.cost(tracks, dets))
        return tracks[pairs[:, 0]], dets[pairs[:, 1]]

    def unmatched(self, tracks: Tensor, dets: Tensor) -> Tensor:
        pairs = self.assign(self.cost(tracks, dets))
        free = torch.ones(dets.shape[0], dtype=torch.bool)
        free[pairs[:, 1]] = False
        return dets[free]


class IoUAssociator(Associator):
    def cost(self, tracks: Tensor, dets: Tensor) -> Tensor:
        return 1 - box_iou(tracks, dets)


class MatchFlags(IoUAssociator):
    def flags(self, tracks: Tensor, dets: Tensor) -> Tensor:
        pairs = self.assign(self.cost(tracks, dets))
        ids = torch.arange(dets.shape[0], device=dets.device)
        return torch.isin(ids, pairs[:, 1])  # raises


class ScipyStyleAssociator(IoUAssociator):
    def assign(self, cost: Tensor) -> Tensor:
        rows = np.arange(cost.shape[0])
        cols = np.argmin(cost.detach(), axis=1)  # raises
        keep = np.asarray(cost[rows, cols]) < self.max_cost
        return torch.from_numpy(np.stack([rows[keep], cols[keep]], 1))


class Track:
    _ids = iter(range(10 ** 9))

    def __init__(self, box: Tensor, feat: Tensor, history: int = 4) -> None:
        self.id = next(self._ids)
        self.box, self.feat = box, feat
        self.boxes: Deque[Tensor] = collections.deque([box], maxlen=history)
        self.hits = torch.ones(1)

    def update(self, box: Tensor, feat: Tensor, momentum: float = 0.9) -> None:
        self.box = box
        self.boxes.append(box)
        self.feat = F.normalize(torch.lerp(feat, self.feat, momentum), dim=-1)
        self.hits += 1

    def velocity(self) -> Tensor:
        path = torch.stack(list(self.boxes))
        return (path[1:] - path[:-1]).mean(0) if len(path) > 1 else torch.zeros(4)

    def quality(self) -> Tensor:
        return self.feat.norm() * (self.hits / (1 + self.hits)).sum()


class TrackPool:
    def __init__(self, associator: Optional[Associator] = None) -> None:
        self.associator = associator or IoUAssociator()
        self.tracks: List[Track] = []

    def gather(self, name: str) -> Tensor:
        return torch.stack([getattr(t, name) for t in self.tracks])

    def spawn(self, boxes: Tensor, feats: Tensor) -> "TrackPool":
        self.tracks += [Track(b, f) for b, f in zip(boxes, feats)]
        return self

    def step(self, boxes: Tensor, feats: Tensor) -> Tensor:
        if not self.tracks:
            return self.spawn(boxes, feats).gather("box")
        pairs = self.associator.assign(self.associator.cost(self.gather("box"), boxes))
        for i, j in pairs.tolist():
            self.tracks[i].update(boxes[j], feats[j])
        return self.gather("feat")

    def extrapolate(self) -> Tensor:
        moved = [t.velocity() for t in self.tracks]
        return self.gather("box") + torch.stack(moved)  # raises

    def weighted_feature(self) -> Tensor:
        hits = torch.cat([t.hits for t in self.tracks])
        return torch.matmul(hits, self.gather("feat")) / hits.sum()  # raises

    def best(self) -> Tensor:
        return torch.stack([t.quality() for t in self.tracks]).max()


class ReIDMemory(nn.Module):
    """Ring memory of appearance vectors."""
    def __init__(self, dim: int = 8, size: int = 6) -> None:
        super().__init__()
        self.register_buffer("bank", torch.zeros(size, dim))
        self.register_buffer("ids", torch.full((size,), -1, dtype=torch.long))
        self.head = nn.Linear(dim, dim, bias=False)
        self.cursor = 0
        self.reset_usage()

    def reset_usage(self) -> None:
        self.usage = torch.zeros(self.bank.shape[0])

    def clear(self) -> None:
        self.bank = torch.zeros(self.bank.shape)
        self.cursor = 0

    def push(self, feats: Tensor, ids: Sequence[int]) -> None:
        at = (torch.arange(len(feats)) + self.cursor) % self.bank.shape[0]
        self.bank[at] = F.normalize(self.head(feats), dim=-1).detach()  # raises
        self.ids[at] = torch.as_tensor(ids).to(self.ids)
        self.usage[at] += 1
        self.cursor = int(at[-1]) + 1

    def forward(self, feats: Tensor) -> Tensor:
        scores = F.normalize(self.head(feats), dim=-1) @ self.bank.T  # raises
        return self.ids[scores.argmax(-1)]

    def lookup_used(self, feats: Tensor) -> Tensor:
        scores = self.head(feats) @ self.bank.T  # raises
        return scores.masked_fill(self.usage == 0, -1.0)  # raises

    def restart(self, feats: Tensor) -> Tensor:
        self.clear()
        return self.head(feats) @ self.bank.T  # raises


class HeatmapDecoder(nn.Module):
    """Arg-max or soft-arg-max of keypoint heatmaps; subclasses override `coords`."""
    def __init__(self, size: Tuple[int, int] = (6, 8), beta: float = 10.0) -> None:
        super().__init__()
        self.size = size
        self.beta = nn.Parameter(torch.tensor(beta))
        self.register_buffer("xs", torch.arange(size[1]).float(), persistent=False)
        self.register_buffer("ys", torch.arange(size[0]).float(), persistent=False)

    def prob(self, heat: Tensor) -> Tensor:
        return torch.softmax(heat.flatten(2) * self.beta, -1).view_as(heat)

    def coords(self, heat: Tensor) -> Tensor:
        p = self.prob(heat)
        return torch.stack([(p.sum(2) * self.xs).sum(-1), (p.sum(3) * self.ys).sum(-1)], -1)

    def forward(self, heat: Tensor) -> Dict[str, Tensor]:
        return {"xy": self.coords(heat), "score": heat.amax((2, 3))}


class RefinedDecoder(HeatmapDecoder):
    def coords(self, heat: Tensor) -> Tensor:
        top = heat.flatten(2).argmax(-1)
        y, x = torch.div(top, self.size[1], rounding_mode="floor"), top % self.size[1]
        return torch.stack([x, y], -1).float() + self.shift(heat, x, y)

    def shift(self, heat: Tensor, x: Tensor, y: Tensor) -> Tensor:
        n, k = x.shape
        b, c = torch.arange(n)[:, None], torch.arange(k)[None]
        xm, xp = (x - 1).clamp(min=0), (x + 1).clamp(max=self.size[1] - 1)
        dx = heat[b.to(x.device), c.to(x.device), y, xp] - heat[b.to(x.device), c.to(x.device), y, xm]
        return torch.stack([dx, torch.zeros_like(dx)], -1).sign() * 0.25


class BlurredDecoder(RefinedDecoder):
    def kernel(self, sigma: float = 1.0, radius: int = 1) -> Tensor:
        r = torch.arange(-radius, radius + 1).float()
        g = torch.exp(-r ** 2 / (2 * sigma ** 2))
        return (g[:, None] * g[None]) / g.sum() ** 2

    def coords(self, heat: Tensor) -> Tensor:
        k = self.kernel().expand(heat.shape[1], 1, -1, -1)
        return super().coords(F.conv2d(heat, k, padding=1, groups=heat.shape[1]))  # raises


class Skeleton:
    PARENTS = (-1, 0, 1, 2, 1)

    def __init__(self, parents: Sequence[int] = PARENTS) -> None:
        self.parents = torch.tensor(parents)
        self.child = (self.parents >= 0).nonzero().squeeze(1)

    def bones(self, joints: Tensor) -> Tensor:
        return joints[:, self.child] - joints[:, self.parents[self.child]]

    def lengths(self, joints: Tensor) -> Tensor:
        return self.bones(joints).norm(dim=-1)

    def pooled(self, joints: Tensor) -> Tensor:
        return torch.index_select(joints, 1, self.child).mean(1)  # raises

    def forward_kinematics(self, offsets: Tensor) -> Tensor:
        out = [offsets[:, 0]]
        for i, p in enumerate(self.parents.tolist()[1:], 1):
            out.append(out[p] + offsets[:, i])
        return torch.stack(out, 1)


class OneEuro:
    """Smoothing whose state follows the first sample."""
    def __init__(self, cutoff: float = 1.0, beta: float = 0.1) -> None:
        self.cutoff, self.beta = torch.tensor(cutoff), beta
        self.prev: Optional[Tensor] = None
        self.speed = torch.zeros(1)

    def __call__(self, x: Tensor) -> Tensor:
        if self.prev is None:
            self.prev = x
            return x
        self.speed = x - self.prev
        a = 1 / (1 + 1 / (2 * np.pi * (self.cutoff + self.beta * self.speed.abs())))
        self.prev = a * x + (1 - a) * self.prev
        return self.prev


class SavGol(OneEuro):
    taps = (0.25, 0.5, 0.25)

    def smooth(self, seq: Tensor) -> Tensor:
        w = torch.tensor(self.taps)[None, None]
        flat = seq.flatten(1).T[:, None]
        return F.conv1d(flat, w.type_as(flat), padding=1)[:, 0].T.view_as(seq)

    def energy(self, seq: Tensor) -> Tensor:
        jerk = (seq[1:] - seq[:-1] - self.speed) ** 2  # raises
        return jerk.sum()
