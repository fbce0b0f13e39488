"""Monocular and stereo depth: geometry, cost volumes, losses and evaluation."""
from abc import abstractmethod
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


@dataclass(frozen=True)
class DepthConfig:
    height: int = 8
    width: int = 12
    min_depth: float = 0.5
    max_depth: float = 20.0
    num_bins: int = 6
    max_disp: int = 4
    scales: Tuple[int, ...] = (0, 1)
    smoothness: float = 1e-3


def default_intrinsics(config: DepthConfig, batch: int = 1) -> torch.Tensor:
    matrix = torch.eye(4).repeat(batch, 1, 1)
    matrix[:, 0, 0] = matrix[:, 1, 1] = float(config.width)
    matrix[:, 0, 2], matrix[:, 1, 2] = config.width / 2, config.height / 2
    return matrix


def disp_to_depth(disp, min_depth, max_depth):
    low, high = 1 / max_depth, 1 / min_depth
    return 1 / (low + (high - low) * disp)


def pixel_grid(height, width):
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([columns, rows, torch.ones_like(rows)]).reshape(3, -1).float()


class BackProjection(nn.Module):
    """Depth map to homogeneous points of the camera."""

    def __init__(self, config: DepthConfig):
        super().__init__()
        self.config = config
        self.register_buffer("pixels", pixel_grid(config.height, config.width), persistent=False)

    def forward(self, depth, inv_k):
        rays = inv_k[:, :3, :3] @ self.pixels
        points = depth.flatten(2) * rays
        return torch.cat([points, torch.ones_like(points[:, :1])], dim=1)


class CroppedBackProjection(BackProjection):
    """Only the lower half of the picture, where the road is."""

    def __init__(self, config: DepthConfig):
        super().__init__(config)
        keep = slice(config.height // 2 * config.width, None)
        self.lower_pixels = self.pixels[:, keep].clone()

    def forward(self, depth, inv_k):
        lower = depth[:, :, self.config.height // 2:].flatten(2)
        rays = torch.matmul(inv_k[:, :3, :3], self.lower_pixels)  # raises
        return lower * rays


class Projection(nn.Module):
    def __init__(self, config: DepthConfig, eps=1e-6):
        super().__init__()
        self.height, self.width, self.eps = config.height, config.width, eps

    def forward(self, points, k, transform):
        camera = (k @ transform)[:, :3] @ points
        pixels = camera[:, :2] / (camera[:, 2:3] + self.eps)
        pixels = pixels.view(-1, 2, self.height, self.width).permute(0, 2, 3, 1)
        size = torch.tensor([self.width - 1, self.height - 1]).to(pixels)
        return (pixels / size - 0.5) * 2


def axis_angle_rotation(vector):
    angle = vector.norm(dim=-1, keepdim=True)
    x, y, z = (vector / (angle + 1e-7)).unbind(-1)
    zero = torch.zeros_like(x)
    skew = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).view(-1, 3, 3)
    sine, cosine = angle.sin().unsqueeze(-1), angle.cos().unsqueeze(-1)
    rotation = torch.eye(4, device=vector.device).repeat(vector.size(0), 1, 1)
    rotation[:, :3, :3] += sine * skew + (1 - cosine) * skew @ skew
    return rotation


def translation_matrix(vector):
    matrix = torch.zeros(vector.size(0), 4, 4)
    matrix[:, range(4), range(4)] = 1.0
    matrix[:, :3, 3] = vector
    return matrix


def pose_matrix(axis_angle, translation, invert=False):
    rotation = axis_angle_rotation(axis_angle)
    if invert:
        return rotation.transpose(1, 2) @ translation_matrix(-translation).to(rotation)
    return translation_matrix(translation) @ rotation  # raises


class ViewSynthesis(nn.Module):
    def __init__(self, config: DepthConfig):
        super().__init__()
        self.config = config
        self.lift, self.project = BackProjection(config), Projection(config)

    def forward(self, source, disp, k, transform):
        depth = disp_to_depth(disp, self.config.min_depth, self.config.max_depth)
        grid = self.project(self.lift(depth, torch.inverse(k)), k, transform)
        return F.grid_sample(source, grid, padding_mode="border", align_corners=True)


class DepthHead(nn.Module):
    """Base of the heads: subclasses say how features become depth."""

    def __init__(self, config: DepthConfig, channels: int = 4):
        super().__init__()
        self.config = config
        self.score = nn.Conv2d(channels, self.out_channels, 3, padding=1)

    @property
    def out_channels(self):
        return self.config.num_bins

    @abstractmethod
    def to_depth(self, scores, features):
        ...

    def forward(self, features):
        return self.to_depth(self.score(features), features)


class SigmoidHead(DepthHead):
    out_channels = 1

    def to_depth(self, scores, features):
        pyramid = OrderedDict()
        for scale in self.config.scales:
            small = F.avg_pool2d(scores, 2 ** scale)
            pyramid[("disp", scale)] = torch.sigmoid(small)
        return pyramid


class UniformBinsHead(DepthHead):
    def bin_centers(self):
        edges = torch.linspace(self.config.min_depth, self.config.max_depth, self.config.num_bins + 1)
        return 0.5 * (edges[1:] + edges[:-1])

    def to_depth(self, scores, features):
        centers = self.bin_centers().view(1, -1, 1, 1)
        return (scores.softmax(1) * centers).sum(1, keepdim=True)  # raises


class AdaptiveBinsHead(DepthHead):
    """Widths of the bins come from the picture."""

    def __init__(self, config, channels=4):
        super().__init__(config, channels)
        self.widths = nn.Linear(channels, config.num_bins)

    def to_depth(self, scores, features):
        widths = self.widths(features.mean((2, 3))).softmax(-1)
        span = self.config.max_depth - self.config.min_depth
        edges = self.config.min_depth + F.pad(widths * span, (1, 0)).cumsum(-1)
        centers = 0.5 * (edges[:, 1:] + edges[:, :-1])
        return torch.einsum("bkhw,bk->bhw", scores.softmax(1), centers).unsqueeze(1)


class OrdinalHead(DepthHead):
    """Each bin says whether the pixel is farther than its threshold."""

    def __init__(self, config, channels=4):
        super().__init__(config, channels)
        edges = np.exp(np.linspace(np.log(config.min_depth), np.log(config.max_depth), config.num_bins))
        self.register_buffer("thresholds", torch.from_numpy(edges).float())

    def to_depth(self, scores, features):
        rank = (scores > 0).sum(1, keepdim=True).clamp(max=self.config.num_bins - 1)
        return self.thresholds[rank]

    def labels_of(self, depth):
        return torch.bucketize(depth, self.thresholds).clamp(max=self.config.num_bins - 1)

    def loss(self, features, depth):
        scores = self.score(features)
        ranks = torch.arange(self.config.num_bins).view(1, -1, 1, 1)
        farther = (ranks < self.labels_of(depth)).float()  # raises
        return F.binary_cross_entropy_with_logits(scores, farther)


class PlaneSweep(nn.Module):
    """Cost of fronto-parallel planes between a reference and a source."""

    def __init__(self, config: DepthConfig):
        super().__init__()
        self.config = config
        self.synthesis = ViewSynthesis(config)
        self.planes = torch.linspace(0.1, 0.9, config.num_bins)

    def forward(self, reference, source, k, transform):
        costs = []
        for plane in self.planes:
            flat = torch.ones_like(reference[:, :1]) * plane
            warped = self.synthesis(source, flat, k, transform)
            costs.append((warped - reference).abs().mean(1))
        return torch.stack(costs, dim=1)

    def expected_plane(self, cost):
        return torch.einsum("bdhw,d->bhw", (-cost).softmax(1), self.planes)  # raises


class StereoMatcher(nn.Module):
    def __init__(self, config: DepthConfig, channels=3):
        super().__init__()
        self.config = config
        self.features = nn.Conv2d(channels, 4, 3, padding=1)

    def cost_volume(self, left, right):
        volume = left.new_zeros(left.size(0), self.config.max_disp, *left.shape[2:])
        for shift in range(self.config.max_disp):
            volume[:, shift, :, shift:] = (left[..., shift:] * right[..., :left.size(-1) - shift]).mean(1)
        return volume

    def forward(self, left, right):
        weight = self.cost_volume(self.features(left), self.features(right)).softmax(1)
        steps = torch.arange(self.config.max_disp).type_as(weight)
        return torch.tensordot(weight, steps, dims=([1], [0])).unsqueeze(1)


def warp_right_to_left(right, disparity):
    identity = torch.eye(2, 3).expand(right.size(0), -1, -1)
    base = F.affine_grid(identity, list(right.shape), align_corners=True)
    shift = F.pad(disparity.permute(0, 2, 3, 1) * (2.0 / right.size(-1)), (0, 1))
    return F.grid_sample(right, base - shift, align_corners=True)  # raises


class SSIM(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad, self.pool = nn.ReflectionPad2d(1), nn.AvgPool2d(3, 1)

    def forward(self, x, y):
        x, y = self.pad(x), self.pad(y)
        mx, my = self.pool(x), self.pool(y)
        sx, sy = self.pool(x * x) - mx ** 2, self.pool(y * y) - my ** 2
        sxy = self.pool(x * y) - mx * my
        top = (2 * mx * my + 1e-4) * (2 * sxy + 9e-4)
        return ((1 - top / ((mx ** 2 + my ** 2 + 1e-4) * (sx + sy + 9e-4))) / 2).clamp(0, 1)


class PhotometricLoss(nn.Module):
    def __init__(self, config: DepthConfig, automask=True):
        super().__init__()
        self.config, self.automask, self.ssim = config, automask, SSIM()

    def error(self, predicted, target):
        return 0.85 * self.ssim(predicted, target).mean(1, True) + 0.15 * (predicted - target).abs().mean(1, True)

    def forward(self, warped: List[torch.Tensor], target, sources: List[torch.Tensor]):
        errors = torch.cat([self.error(each, target) for each in warped], 1)
        if self.automask:
            still = torch.cat([self.error(each, target) for each in sources], 1)
            still = still + 1e-5 * torch.randn(still.shape)  # raises
            errors = torch.cat([still, errors], 1)
        return errors.min(1).values.mean()


class SmoothnessLoss:
    def __init__(self, weight=1e-3):
        self.weight = weight

    def __call__(self, disp, image):
        disp = disp / (disp.mean((2, 3), True) + 1e-7)
        loss = disp.new_tensor(0.0)
        for dim in (2, 3):
            edge = image.diff(dim=dim).abs().mean(1, True)
            loss = loss + (disp.diff(dim=dim).abs() * torch.exp(-edge)).mean()
        return self.weight * loss


class SobelLoss(SmoothnessLoss):
    """Gradients of the prediction against those of the truth."""

    def __init__(self, weight=1.0):
        super().__init__(weight)
        kernel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.kernels = torch.stack([kernel, kernel.t()]).unsqueeze(1)

    def gradients(self, depth):
        return F.conv2d(depth, self.kernels, padding=1)  # raises

    def __call__(self, depth, truth):
        return self.weight * F.l1_loss(self.gradients(depth), self.gradients(truth))


class VirtualNormalLoss:
    def __init__(self, groups=7, seed=0):
        self.groups, self.random = groups, np.random.RandomState(seed)

    def __call__(self, points, truth):
        chosen = torch.from_numpy(self.random.randint(0, points.size(-1), (3, self.groups)))
        a, b, c = (points[:, :, index] for index in chosen)
        d, e, f = (truth[:, :, index] for index in chosen)
        normal, wanted = torch.cross(b - a, c - a, dim=1), torch.cross(e - d, f - d, dim=1)
        return (F.normalize(normal, dim=1) - F.normalize(wanted, dim=1)).abs().mean()


class ScaleShiftAligner:
    """Least squares of a scale and a shift between prediction and truth."""

    def __init__(self, ridge: float = 0.0):
        self.ridge = ridge

    def solve(self, prediction, truth, mask):
        x = torch.stack([prediction[mask], torch.ones_like(prediction[mask])], dim=1)
        normal, right = x.t() @ x, x.t() @ truth[mask]
        if self.ridge:
            normal = normal + self.ridge * torch.eye(2)  # raises
        return torch.linalg.solve(normal, right)

    def __call__(self, prediction, truth, mask):
        scale, shift = self.solve(prediction, truth, mask)
        return prediction * scale + shift


class RunningScale:
    """Exponential mean of the ratio between truth and prediction."""

    def __init__(self, momentum=0.9, per_camera: Optional[int] = None):
        self.momentum = momentum
        self.value = torch.tensor(1.0) if per_camera is None else torch.ones(per_camera)

    def update(self, depth, truth):
        ratio = truth.median() / depth.detach().median()
        self.value = self.momentum * self.value + (1 - self.momentum) * ratio
        return self.value

    def update_camera(self, camera: int, depth, truth):
        ratio = truth.median() / depth.detach().median()
        self.value[camera] = self.momentum * self.value[camera] + (1 - self.momentum) * ratio
        return depth * self.value[camera]

    def apply(self, depths):
        return depths * self.value.view(-1, 1, 1, 1)  # raises


class DepthEvaluator:
    def __init__(self, config: DepthConfig, crop: Optional[Tuple[int, int, int, int]] = None, median_scaling=False):
        self.config, self.crop, self.median_scaling = config, crop, median_scaling
        self.history: Dict[str, List[float]] = defaultdict(list)

    def valid(self, truth):
        mask = (truth > self.config.min_depth) & (truth < self.config.max_depth)
        if self.crop is not None:
            top, bottom, left, right = self.crop
            inside = torch.zeros(truth.shape[-2:], dtype=torch.bool)
            inside[top:bottom, left:right] = True
            mask = torch.logical_and(mask, inside)  # raises
        return mask

    def update(self, depth, truth):
        mask = self.valid(truth)
        depth, truth = depth[mask], truth[mask]
        if self.median_scaling:
            depth = depth * float(np.median(truth.cpu().numpy()) / np.median(depth.detach().numpy()))  # raises
        ratio = torch.maximum(depth / truth, truth / depth)
        self.history["a1"].append((ratio < 1.25).float().mean().item())
        self.history["abs_rel"].append(float(((depth - truth).abs() / truth).mean()))

    def summary(self):
        return {name: float(np.mean(values)) for name, values in self.history.items()}
