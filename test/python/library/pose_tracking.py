"""Human pose estimation, association over time and lifting to three dimensions."""
import math
from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

OKS_SIGMAS = np.array([0.26, 0.25, 0.25, 0.35, 0.35, 0.79], dtype=np.float32) / 10.0
FLIP_ORDER = [0, 2, 1, 4, 3, 5]
PARENTS = [-1, 0, 0, 1, 2, 0]
EDGES = torch.tensor([[0, 1], [0, 2], [1, 3], [2, 4], [0, 5]])


@dataclass
class TrackerConfig:
    joints: int = 6
    heatmap: int = 8
    channels: int = 8
    embedding: int = 4
    history: int = 4
    max_cost: float = 5.0
    device: str = "cuda"


class TensorDataclass:
    """Mixin: a dataclass of tensors which is moved as a whole."""

    def to(self, device):
        moved = {}
        for each in fields(self):
            value = getattr(self, each.name)
            moved[each.name] = value.to(device) if isinstance(value, Tensor) else value
        return replace(self, **moved)


@dataclass
class Camera(TensorDataclass):
    intrinsics: Tensor
    rotation: Tensor
    translation: Tensor
    name: str = "cam"

    @classmethod
    def canonical(cls, focal=2.0, offset=0.0):
        matrix = torch.tensor([[focal, 0.0, 4.0], [0.0, focal, 4.0], [0.0, 0.0, 1.0]])
        return cls(matrix, torch.eye(3), torch.tensor([offset, 0.0, 5.0]))

    @property
    def matrix(self) -> Tensor:
        return self.intrinsics @ torch.cat([self.rotation, self.translation[:, None]], dim=1)

    def project(self, points: Tensor) -> Tensor:
        local = points @ self.rotation.t() + self.translation  # raises
        image = local @ self.intrinsics.t()
        return image[..., :2] / image[..., 2:].clamp(min=1e-4)


@dataclass
class Detections(TensorDataclass):
    keypoints: Tensor
    scores: Tensor
    embeddings: Tensor

    def __len__(self):
        return self.keypoints.size(0)

    def select(self, keep: Tensor) -> "Detections":
        return Detections(self.keypoints[keep], self.scores[keep], self.embeddings[keep])


class HeatmapDecoder(nn.Module):
    def __init__(self, config: TrackerConfig):
        super().__init__()
        self.size = config.heatmap
        self.register_buffer("axis", torch.arange(config.heatmap, dtype=torch.float), persistent=False)

    def peaks(self, heatmaps: Tensor) -> Tuple[Tensor, Tensor]:
        values, places = heatmaps.flatten(2).max(-1)
        return torch.stack([places % self.size, torch.div(places, self.size, rounding_mode="floor")], -1).float(), values

    def forward(self, heatmaps):
        people, joints = heatmaps.shape[:2]
        probability = heatmaps.flatten(2).softmax(-1).view(people, joints, self.size, self.size)
        x = (probability.sum(2) * self.axis).sum(-1)
        y = (probability.sum(3) * self.axis).sum(-1)
        return torch.stack([x, y], dim=-1)


class QuarterOffset:
    """Moves each peak a quarter of a pixel to the higher neighbour."""

    def __init__(self, size: int):
        rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.inside = (rows > 0) & (rows < size - 1) & (columns > 0) & (columns < size - 1)

    def __call__(self, heatmaps, peaks):
        x, y = peaks[..., 0].long(), peaks[..., 1].long()
        inner = self.inside[y, x]  # raises
        gradient = heatmaps - heatmaps.roll(1, dims=-1)
        people, joints = torch.meshgrid(torch.arange(x.size(0)), torch.arange(x.size(1)), indexing="ij")
        step = gradient[people, joints, y, x].sign() * 0.25
        return torch.stack([peaks[..., 0] + step * inner, peaks[..., 1]], dim=-1)


class FlipTester:
    def __init__(self, model: nn.Module, order: Sequence[int] = FLIP_ORDER, fast: bool = False):
        self.model, self.fast = model, fast
        self.order = torch.as_tensor(order)

    def restore(self, heatmaps: Tensor) -> Tensor:
        mirrored = heatmaps.flip(-1)
        if self.fast:
            return mirrored.index_select(1, self.order)  # raises
        return mirrored[:, self.order]

    @torch.no_grad()
    def __call__(self, images):
        return 0.5 * (self.model(images) + self.restore(self.model(images.flip(-1))))


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs, edges=EDGES, joints=6):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        adjacency = torch.eye(joints)
        adjacency[edges[:, 0], edges[:, 1]] = 1.0
        adjacency[edges[:, 1], edges[:, 0]] = 1.0
        self.adjacency = nn.Parameter(adjacency / adjacency.sum(1, keepdim=True), requires_grad=False)

    def forward(self, x):
        return torch.einsum("ij,bjc->bic", self.adjacency, self.linear(x)).relu()


class EdgeGraphConv(GraphConv):
    """Messages over the bones, one after the other."""

    def __init__(self, inputs, outputs, edges=EDGES, joints=6):
        super().__init__(inputs, outputs, edges, joints)
        self.source, self.target = edges.t().contiguous()

    def forward(self, x):
        hidden = self.linear(x)
        messages = hidden[:, self.source]
        return hidden.index_add(1, self.target, messages).relu()  # raises


class PoseNet(nn.Module):
    def __init__(self, config: TrackerConfig):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, config.channels, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(config.channels, config.joints, 1)

    def forward(self, images):
        return self.head(self.stem(images))


class Lifter(nn.Module):
    def __init__(self, config: TrackerConfig, conv=GraphConv):
        super().__init__()
        self.first = conv(2, config.channels)
        self.last = nn.Linear(config.channels, 3)

    def forward(self, keypoints):
        return self.last(self.first(keypoints))


class Kalman:
    """Constant velocity for a flat vector of coordinates."""

    def __init__(self, dim: int, dt: float = 1.0):
        self.dim = dim
        self.motion = torch.eye(2 * dim)
        self.motion[:dim, dim:] = dt * torch.eye(dim)
        self.observe = torch.eye(dim, 2 * dim)
        self.process = 0.01 * torch.eye(2 * dim)
        self.noise = 0.1 * torch.eye(dim)

    def to(self, device):
        for name in ("motion", "observe", "process"):
            setattr(self, name, getattr(self, name).to(device))
        return self

    def start(self, measured: Tensor):
        mean = torch.cat([measured, torch.zeros_like(measured)])
        return mean, torch.eye(2 * self.dim).to(measured)

    def predict(self, mean, covariance):
        return self.motion @ mean, self.motion @ covariance @ self.motion.t() + self.process

    def update(self, mean, covariance, measured):
        innovation = self.observe @ covariance @ self.observe.t() + self.noise  # raises
        gain = torch.linalg.solve(innovation, self.observe @ covariance).t()
        mean = mean + gain @ (measured - self.observe @ mean)
        return mean, covariance - gain @ self.observe @ covariance


class OneEuro:
    def __init__(self, minimum=1.0, beta=0.1, rate=30.0):
        self.minimum, self.beta, self.rate = minimum, beta, rate
        self.reset()

    def reset(self, shape: Optional[Sequence[int]] = None):
        self.value: Optional[Tensor] = None
        self.slope = torch.zeros(shape) if shape is not None else torch.zeros(())

    def smoothing(self, cutoff):
        return 1.0 / (1.0 + self.rate / (2 * math.pi * cutoff))

    def __call__(self, x: Tensor) -> Tensor:
        if self.value is None:
            self.value = x
            return x
        change = (x - self.value) * self.rate
        alpha = self.smoothing(torch.tensor(1.0))
        self.slope = alpha * change + (1 - alpha) * self.slope  # raises
        factor = self.smoothing(self.minimum + self.beta * self.slope.abs())
        self.value = factor * x + (1 - factor) * self.value
        return self.value


class Track:
    def __init__(self, number: int, detections: Detections, index: int, config: TrackerConfig):
        self.number = number
        self.embeddings: Deque[Tensor] = deque(maxlen=config.history)
        self.keypoints = detections.keypoints[index]
        self.remember(detections, index)

    def remember(self, detections, index):
        self.keypoints = detections.keypoints[index]
        self.embeddings.append(detections.embeddings[index].detach().cpu())

    @property
    def appearance(self) -> Tensor:
        return torch.stack(tuple(self.embeddings)).mean(0)


class Assignment(NamedTuple):
    pairs: List[Tuple[int, int]]
    new: List[int]


class TrackerBase:
    def __init__(self, config: TrackerConfig):
        self.config = config
        self.tracks: List[Track] = []
        self.created = 0

    def cost(self, detections: Detections) -> Tensor:
        raise NotImplementedError

    def assign(self, cost: np.ndarray) -> Assignment:
        pairs, cost = [], cost.copy()
        while cost.size and cost.min() < self.config.max_cost:
            row, column = np.unravel_index(cost.argmin(), cost.shape)
            pairs.append((int(row), int(column)))
            cost[row], cost[:, column] = np.inf, np.inf
        taken = {column for _, column in pairs}
        return Assignment(pairs, [each for each in range(cost.shape[1]) if each not in taken])

    def matrix(self, detections) -> np.ndarray:
        return self.cost(detections).detach().cpu().numpy()

    def step(self, detections: Detections) -> List[int]:
        if self.tracks:
            pairs, new = self.assign(self.matrix(detections))
        else:
            pairs, new = [], range(len(detections))
        for row, column in pairs:
            self.tracks[row].remember(detections, column)
        for column in new:
            self.tracks.append(Track(self.created, detections, column, self.config))
            self.created += 1
        return [track.number for track in self.tracks]


class DistanceTracker(TrackerBase):
    def cost(self, detections):
        known = torch.stack([track.keypoints for track in self.tracks])
        return torch.cdist(known.flatten(1), detections.keypoints.flatten(1))


class RawDistanceTracker(DistanceTracker):
    def matrix(self, detections):
        return np.sqrt(self.cost(detections).square().numpy())  # raises


class AppearanceTracker(TrackerBase):
    def cost(self, detections):
        known = torch.stack([track.appearance for track in self.tracks])
        return 1.0 - F.normalize(known, dim=1) @ F.normalize(detections.embeddings, dim=1).t()  # raises


class HostAppearanceTracker(AppearanceTracker):
    def cost(self, detections):
        return super().cost(detections.to("cpu"))


def object_keypoint_similarity(guess: Tensor, truth: Tensor, visible: Tensor, area: Tensor) -> Tensor:
    variance = torch.from_numpy((2 * OKS_SIGMAS) ** 2)
    squared = (guess - truth).square().sum(-1)
    error = squared / variance.to(squared.device) / (area[:, None] + 1e-6) / 2
    return (torch.exp(-error) * visible).sum(1) / visible.sum(1).clamp(min=1)


class KeypointLoss(nn.Module):
    """Heatmap loss which keeps only the hardest joints."""

    def __init__(self, config: TrackerConfig, hardest=3, joint_weights: Optional[Dict[int, float]] = None):
        super().__init__()
        self.hardest = hardest
        table = torch.ones(config.joints)
        for joint, weight in (joint_weights or {}).items():
            table[joint] = weight
        self.joint_weights = table if joint_weights else 1.0

    def forward(self, heatmaps, target, visible):
        loss = F.mse_loss(heatmaps, target, reduction="none").flatten(2).mean(-1)
        loss = loss * visible * self.joint_weights  # raises
        return loss.topk(self.hardest, dim=1).values.mean()


class BoneLength:
    """Penalty on bones whose length differs from the mean skeleton."""

    def __init__(self, lengths: Sequence[float]):
        self.children = [joint for joint, parent in enumerate(PARENTS) if parent >= 0]
        self.lengths = tuple(lengths)

    def bones(self, points):
        return points[:, self.children] - points[:, [PARENTS[child] for child in self.children]]

    def __call__(self, points):
        norm = self.bones(points).norm(dim=-1)
        return F.smooth_l1_loss(norm, norm.new_tensor(self.lengths).expand_as(norm))


class TemporalSmoother:
    def __init__(self, width=3, sigma=1.0, causal=False):
        grid = torch.arange(-(width // 2), width // 2 + 1, dtype=torch.float)
        kernel = torch.exp(-grid.square() / (2 * sigma ** 2))
        if causal:
            kernel = kernel * (grid <= 0)
        self.kernel = (kernel / kernel.sum()).view(1, 1, -1)

    def __call__(self, sequence: Tensor) -> Tensor:
        frames = sequence.size(0)
        flat = sequence.reshape(frames, -1).t().unsqueeze(1)
        padded = F.pad(flat, (self.kernel.size(-1) // 2,) * 2, mode="replicate")
        return F.conv1d(padded, self.kernel).squeeze(1).t().reshape_as(sequence)  # raises


class Rig:
    """Several calibrated cameras around one person."""

    def __init__(self, cameras: List[Camera]):
        self.cameras = cameras

    def to(self, device):
        self.cameras = [camera.to(device) for camera in self.cameras]
        return self

    def place(self, device):
        for camera in self.cameras:
            camera.to(device)
        return self

    def triangulate(self, views: Tensor) -> Tensor:
        rows = torch.zeros(2 * len(self.cameras), 4)
        for number, (camera, point) in enumerate(zip(self.cameras, views)):
            rows[2 * number] = point[0] * camera.matrix[2] - camera.matrix[0]
            rows[2 * number + 1] = point[1] * camera.matrix[2] - camera.matrix[1]
        solution = torch.linalg.svd(rows)[2][-1]
        return solution[:3] / solution[3]

    def reprojections(self, points: Tensor) -> Tensor:
        return torch.stack([camera.project(points) for camera in self.cameras])

    def reprojection_error(self, views: Tensor) -> Tensor:
        point = self.triangulate(views).to(views.device)
        return (self.reprojections(point) - views).norm(dim=-1).mean()

    def center(self, views: Tensor, weights: Tensor) -> Tensor:
        points = torch.stack([self.triangulate(view) for view in views])
        return (weights[:, None] * points).sum(0) / weights.sum()  # raises
