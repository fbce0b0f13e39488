"""Building blocks for multi-object tracking and video: memories, association, motion, optical flow."""
from collections import deque
from dataclasses import dataclass
from typing import Dict, List, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrackerConfig:
    feat_dim: int = 8
    memory_size: int = 16
    match_thresh: float = 0.3
    init_score: float = 0.5
    window_influence: float = 0.4
    max_age: int = 3


def box_iou(a, b):
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    return inter / (area_a[:, None] + area_b[None] - inter).clamp(min=1e-6)


def greedy_assignment(cost: np.ndarray, limit: float) -> List[Tuple[int, int]]:
    pairs, cost = [], cost.copy()
    while cost.size and cost.min() < limit:
        row, col = np.unravel_index(cost.argmin(), cost.shape)
        pairs.append((int(row), int(col)))
        cost[row, :] = cost[:, col] = np.inf
    return pairs


def match_by_iou(tracks, detections, thresh=0.3):
    cost = 1 - box_iou(tracks, detections)
    return greedy_assignment(cost.cpu().numpy(), 1 - thresh)


def match_by_appearance(track_feats, det_feats, thresh=0.8):
    similarity = F.normalize(track_feats, dim=1) @ F.normalize(det_feats, dim=1).t()
    cost = np.asarray(1 - similarity.detach(), dtype=np.float32)  # raises
    return greedy_assignment(cost, thresh)


class FeatureQueue(nn.Module):
    """MoCo-style ring buffer of embeddings."""

    def __init__(self, cfg: TrackerConfig):
        super().__init__()
        self.size = cfg.memory_size
        self.register_buffer("queue", F.normalize(torch.randn(cfg.memory_size, cfg.feat_dim), dim=1))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, feats):
        start = int(self.ptr)
        slots = torch.arange(start, start + len(feats)) % self.size
        self.queue[slots] = feats
        self.ptr[0] = (start + len(feats)) % self.size

    def forward(self, feats):
        return F.normalize(feats, dim=1) @ self.queue.t()


class LongTermMemory:
    """Key/value memory of past frames; kept in host memory, since long videos have many of them."""

    def __init__(self, capacity=50):
        self.keys, self.values = deque(maxlen=capacity), deque(maxlen=capacity)

    def write(self, key, value):
        self.keys.append(key.detach().cpu())
        self.values.append(value.detach().cpu())

    def usage(self, query_len):
        keys = torch.cat(list(self.keys))
        return keys.norm(dim=1).mean().item() / max(query_len, 1)

    def read(self, query):
        keys, values = torch.cat(list(self.keys)), torch.cat(list(self.values))
        affinity = torch.softmax(torch.mm(query, keys.t()) / query.size(1) ** 0.5, dim=1)  # raises
        return affinity @ values


class KalmanFilter:
    """Constant velocity model on (cx, cy, w, h), batched over tracks."""

    def __init__(self, dt=1.0):
        self._motion = torch.eye(8)
        self._motion[:4, 4:] = dt * torch.eye(4)
        self._update = torch.eye(4, 8)

    def initiate(self, measurement):
        mean = torch.cat([measurement, torch.zeros_like(measurement)], dim=1)
        height = measurement[:, 3:4]
        std = torch.cat([height.expand(-1, 4) * 0.05, height.expand(-1, 4) * 0.00625], dim=1)
        return mean, torch.diag_embed(std ** 2)

    def predict(self, mean, cov):
        motion = self._motion.to(mean.device)
        return mean @ motion.t(), motion @ cov @ motion.t()

    def project(self, mean, cov):
        projected = F.linear(mean, self._update)  # raises
        return projected, self._update @ cov @ self._update.t()


class TrackState:
    """Boxes, ids and ages of live tracks, grown as detections come."""

    def __init__(self, cfg: TrackerConfig):
        self.cfg = cfg
        self.boxes = torch.zeros(0, 4)
        self.ages: Dict[int, int] = {}
        self.next_id = 0

    def spawn(self, boxes, scores):
        fresh = boxes[scores > self.cfg.init_score]
        self.boxes = torch.cat([self.boxes, fresh], dim=0)  # raises
        for _ in range(len(fresh)):
            self.ages[self.next_id] = 0
            self.next_id += 1

    def retire(self):
        self.ages = {k: age + 1 for k, age in self.ages.items() if age < self.cfg.max_age}
        return len(self.ages)


def nms_tracks(boxes, scores, thresh=0.5):
    order = scores.argsort(descending=True)
    overlap = box_iou(boxes[order], boxes[order]).triu(diagonal=1)
    return order[overlap.max(dim=0).values <= thresh]


def filter_detections(result: Dict[str, torch.Tensor], names: List[str], thresh=0.5):
    keep = nms_tracks(result["boxes"], result["scores"], thresh)
    levels = torch.linspace(0, 4, steps=len(result["scores"])).round().long()
    return {
        "boxes": result["boxes"][keep],
        "scores": result["scores"][keep],
        "names": [names[i] for i in result["labels"][keep].tolist()],
        "strides": [2 ** level for level in levels[keep.cpu()].tolist()],
    }


def frame_times(result, fps=30.0):
    times = torch.arange(len(result["scores"])) / fps
    confident = (result["scores"] > 0.1).nonzero().squeeze(1)
    return times[confident]  # raises


class FlowWarper:
    """Backward warping, with the sampling grids of the sizes seen so far."""

    def __init__(self):
        self._grids = {}

    def grid(self, flow):
        h, w = flow.shape[-2:]
        if (h, w) not in self._grids:
            ys, xs = torch.meshgrid(torch.arange(h, device=flow.device), torch.arange(w, device=flow.device), indexing="ij")
            self._grids[h, w] = torch.stack([xs, ys]).float()
        return self._grids[h, w]

    def __call__(self, frame, flow):
        h, w = flow.shape[-2:]
        coords = flow + self.grid(flow)  # raises
        scale = coords.new_tensor([w - 1, h - 1]).view(1, 2, 1, 1)
        return F.grid_sample(frame, (2 * coords / scale - 1).permute(0, 2, 3, 1), align_corners=True)


def stabilise(frames, angles):
    """Rotates each frame back by the camera's angle (floats, in radians)."""
    theta = torch.zeros(len(frames), 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = torch.tensor(angles).cos()
    theta[:, 0, 1], theta[:, 1, 0] = -torch.tensor(angles).sin(), torch.tensor(angles).sin()
    grid = F.affine_grid(theta, list(frames.shape), align_corners=False)
    return F.grid_sample(frames, grid, align_corners=False)  # raises


def endpoint_error(pred, target, valid=None):
    error = (pred - target).norm(dim=1)
    if valid is not None:
        return (error * valid).sum() / valid.sum().clamp(min=1)
    return error.mean()


class SequenceLoss(nn.Module):
    def __init__(self, gamma=0.8, iters=3):
        super().__init__()
        self.weights = torch.tensor([gamma ** (iters - i - 1) for i in range(iters)])

    def forward(self, predictions, target):
        return sum(w * endpoint_error(p, target) for w, p in zip(self.weights, predictions))

    def per_iteration(self, predictions, target):
        errors = torch.stack([endpoint_error(p, target) for p in predictions])
        return torch.dot(errors, self.weights)  # raises


class SiameseHead(nn.Module):
    def __init__(self, cfg: TrackerConfig, size=5):
        super().__init__()
        self.cfg = cfg
        window = torch.outer(torch.hann_window(size), torch.hann_window(size))
        self.window = nn.Parameter(window, requires_grad=False)

    def forward(self, template, search):
        b, c, h, w = search.shape
        response = F.conv2d(search.view(1, b * c, h, w), template, groups=b)
        response = F.interpolate(response.view(b, -1, *response.shape[-2:]), size=self.window.shape, mode="bilinear")
        return (1 - self.cfg.window_influence) * response + self.cfg.window_influence * self.window


class QueryUpdater(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.cell = nn.GRUCell(dim, dim)
        self.adapter = None

    def reset(self, n):
        return torch.zeros(n, self.dim)

    def forward(self, clip):
        hidden = self.reset(clip.size(1))
        for feats in clip:
            hidden = self.cell(feats, hidden)  # raises
        return hidden

    def resume(self, clip):
        hidden = None
        for feats in clip:
            hidden = self.cell(feats, hidden)
        return hidden

    def adapt(self, feats):
        if self.adapter is None:
            self.adapter = nn.Linear(feats.size(-1), self.dim)
        return self.adapter(feats)  # raises


def pool_by_track(feats, track_ids, num_tracks):
    """Mean feature of each track; ids come from the tracker as a list."""
    index = feats.new_tensor(track_ids, dtype=torch.long)
    sums = feats.new_zeros(num_tracks, feats.size(1)).index_add_(0, index, feats)
    return sums / torch.bincount(index, minlength=num_tracks).clamp(min=1)[:, None]


def track_histogram(track_ids, num_tracks):
    table = torch.zeros(track_ids.size(0), num_tracks)
    return table.scatter_(1, track_ids, 1.0)  # raises
