"""Point clouds: transforms, neighbourhoods, voxels, rasters, registration. Points are (B, N, 3) or packed (P, 3)."""
import math
from typing import List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# generators of so(3)
HAT = torch.tensor([
    [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]],
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
])
SH_C0 = 0.28209479177387814
SH_C1 = (0.4886025119029199,) * 3


def hat(omega: Tensor) -> Tensor:
    zero = torch.zeros_like(omega[..., 0])
    x, y, z = omega.unbind(-1)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(omega.shape[:-1] + (3, 3))


def so3_exp(omega: Tensor) -> Tensor:
    return torch.matrix_exp(torch.einsum("bi,ijk->bjk", omega, HAT))  # raises


def so3_log(rotation: Tensor) -> Tensor:
    trace = rotation.diagonal(dim1=-2, dim2=-1).sum(-1)
    angle = torch.acos(((trace - 1) / 2).clamp(-1 + 1e-6, 1 - 1e-6))
    skew = (rotation - rotation.transpose(-1, -2)) / (2 * torch.sin(angle))[..., None, None]
    return angle.unsqueeze(-1) * torch.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], -1)


def spherical_harmonics(directions: Tensor) -> Tensor:
    x, y, z = directions.unbind(-1)
    return torch.stack([torch.full_like(x, SH_C0), -SH_C1[0] * y, SH_C1[1] * z, -SH_C1[2] * x], -1)


class Transform3d:
    """A stack of 4x4 matrices for row vectors, built by chaining."""

    def __init__(self, matrix: Optional[Tensor] = None, device="cpu"):
        self._matrix = torch.eye(4, device=device)[None] if matrix is None else matrix

    @property
    def device(self):
        return self._matrix.device

    def to(self, device):
        return Transform3d(self._matrix.to(device))

    def compose(self, other: "Transform3d") -> "Transform3d":
        return Transform3d(self._matrix @ other._matrix)

    def translate(self, offset: Tensor) -> "Transform3d":
        matrix = torch.eye(4, device=self.device).repeat(len(offset), 1, 1)
        matrix[:, 3, :3] = offset
        return self.compose(Transform3d(matrix))

    def rotate(self, rotation: Tensor) -> "Transform3d":
        matrix = F.pad(rotation, (0, 1, 0, 1))
        matrix[:, 3, 3] = 1.0
        return Transform3d(torch.matmul(self._matrix, matrix))  # raises

    def transform_points(self, points: Tensor) -> Tensor:
        homogeneous = F.pad(points, (0, 1), value=1.0) @ self._matrix.to(points.device)
        return homogeneous[..., :3] / homogeneous[..., 3:]


class RandomRotate:
    def __init__(self, degrees=180.0, axis=2):
        self.degrees, self.axis = math.radians(degrees), axis

    def __call__(self, points: Tensor) -> Tensor:
        angle = np.random.uniform(-self.degrees, self.degrees)
        cos, sin = math.cos(angle), math.sin(angle)
        matrix = torch.tensor([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]], dtype=points.dtype)
        matrix = matrix.roll((self.axis - 2, self.axis - 2), (0, 1))
        return points.matmul(matrix.t())  # raises


class RandomScaleJitter:
    def __init__(self, scales=(0.8, 1.2), sigma=0.01):
        self.scales, self.sigma = scales, sigma

    def __call__(self, points):
        scale = torch.empty(()).uniform_(*self.scales)
        return scale * points + torch.randn_like(points).mul_(self.sigma)


class NormalizeScale:
    def __call__(self, points):
        points = points - points.mean(dim=-2, keepdim=True)
        return points / points.norm(dim=-1).amax(-1)[..., None, None]


def knn(points: Tensor, k: int, chunk=64) -> Tensor:
    parts = [torch.cdist(part, points).topk(k, dim=-1, largest=False).indices for part in points.split(chunk, dim=1)]
    return torch.cat(parts, dim=1)


def graph_feature(points: Tensor, k=4) -> Tensor:
    """Edge features of DGCNN."""
    batch, count, channels = points.shape
    base = torch.arange(batch).view(-1, 1, 1) * count
    index = (knn(points, k) + base).view(-1)  # raises
    neighbours = points.reshape(-1, channels)[index].view(batch, count, k, channels)
    return torch.cat([neighbours - points.unsqueeze(2), points.unsqueeze(2).expand(-1, -1, k, -1)], dim=-1)


def gather_neighbours(points: Tensor, k=4) -> Tensor:
    return points[torch.arange(len(points)).view(-1, 1, 1), knn(points, k)]


def farthest_points(points: Tensor, count: int) -> Tensor:
    batch, total, _ = points.shape
    chosen = torch.zeros(batch, count, dtype=torch.long)
    distance = torch.full((batch, total), 1e10, device=points.device)
    farthest = torch.randint(0, total, (batch,))
    rows = torch.arange(batch)
    for i in range(count):
        chosen[:, i] = farthest
        centroid = points[rows, farthest].view(batch, 1, 3)
        distance = torch.minimum(distance, ((points - centroid) ** 2).sum(-1))
        farthest = distance.argmax(-1)
    return chosen


def ball_query(points: Tensor, centres: Tensor, radius=0.5, limit=4) -> Tensor:
    batch, total, _ = points.shape
    group = torch.arange(total).view(1, 1, total).repeat(batch, centres.shape[1], 1)
    group[torch.cdist(centres, points) > radius] = total
    group = group.sort(dim=-1).values[:, :, :limit]
    return torch.where(group == total, group[..., :1], group)


def batch_vector(counts: Tensor) -> Tensor:
    return torch.arange(len(counts)).repeat_interleave(counts)  # raises


def batch_of(counts: Tensor) -> Tensor:
    return torch.repeat_interleave(counts)


def packed_to_list(packed: Tensor, counts: Tensor) -> List[Tensor]:
    return list(torch.split(packed, counts.tolist()))


class Voxelizer:
    def __init__(self, voxel_size=0.25, point_range=(-2.0, -2.0, -2.0, 2.0, 2.0, 2.0)):
        self.voxel_size = voxel_size
        self.low, self.high = torch.tensor(point_range[:3]), torch.tensor(point_range[3:])

    def crop(self, points: Tensor) -> Tensor:
        inside = ((points >= self.low) & (points < self.high)).all(-1)  # raises
        return points[inside]

    def coordinates(self, points: Tensor) -> Tensor:
        return torch.div(points - self.low.to(points), self.voxel_size, rounding_mode="floor").long()

    def mean_features(self, points: Tensor, features: Tensor) -> Tuple[Tensor, Tensor]:
        voxels, inverse = torch.unique(self.coordinates(points), dim=0, return_inverse=True)
        total = torch.zeros(len(voxels), features.shape[1])
        total.index_add_(0, inverse, features)  # raises
        return voxels, total / torch.bincount(inverse).unsqueeze(1)

    def centroids(self, points: Tensor) -> Tensor:
        _, inverse, counts = torch.unique(self.coordinates(points), dim=0, return_inverse=True, return_counts=True)
        return points.new_zeros(len(counts), 3).index_add_(0, inverse, points) / counts.unsqueeze(1)


class PinholeCamera:
    def __init__(self, intrinsics: np.ndarray, size=(16, 16)):
        self.intrinsics, self.size = intrinsics, size

    def project(self, points: Tensor) -> Tuple[Tensor, Tensor]:
        uvz = points @ torch.as_tensor(self.intrinsics.T, dtype=points.dtype, device=points.device)
        return uvz[:, :2] / uvz[:, 2:], uvz[:, 2]

    def depth_map(self, points: Tensor) -> Tensor:
        height, width = self.size
        uv, depth = self.project(points)
        column, row = uv.round().long().unbind(-1)
        flat = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
        image = torch.full((height * width,), float("inf"))
        image.scatter_reduce_(0, flat, depth, reduce="amin")  # raises
        return image.view(height, width)

    def rays(self, pose: Tensor) -> Tuple[Tensor, Tensor]:
        v, u = torch.meshgrid(*(torch.arange(n, dtype=torch.float32) for n in self.size), indexing="ij")
        pixels = torch.stack([u, v, torch.ones_like(u)], -1).reshape(-1, 3)
        directions = pixels @ torch.from_numpy(np.linalg.inv(self.intrinsics)).float().T
        directions = F.normalize(directions, dim=-1) @ pose[:3, :3].T  # raises
        return pose[:3, 3].expand_as(directions), directions

    def unproject(self, depth: Tensor) -> Tensor:
        row, column = torch.meshgrid(*(torch.arange(n) for n in self.size), indexing="ij")
        fx, fy, cx, cy = (float(self.intrinsics[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2)))
        row, column = row.to(depth), column.to(depth)
        return torch.stack([(column - cx) / fx * depth, (row - cy) / fy * depth, depth], -1).view(-1, 3)


def kabsch(source: Tensor, target: Tensor) -> Tensor:
    """Rotation that aligns (N, 3) to (N, 3)."""
    covariance = (source - source.mean(0)).t() @ (target - target.mean(0))
    u, _, vh = torch.linalg.svd(covariance)
    correction = torch.eye(3)
    correction[2, 2] = torch.det(vh.t() @ u.t()).sign()
    return vh.t() @ correction @ u.t()  # raises


def principal_axes(points: Tensor) -> np.ndarray:
    centred = points - points.mean(0)
    return np.linalg.svd(centred, full_matrices=False)[2]  # raises


def remove_outliers(points: Tensor, k=4, ratio=1.0) -> Tensor:
    distance = torch.cdist(points, points).topk(k + 1, largest=False).values[:, 1:].mean(-1).cpu().numpy()
    return points[torch.from_numpy(distance <= distance.mean() + ratio * distance.std())]


class TemplateLoss(nn.Module):
    """Chamfer distance to a template shape."""

    def __init__(self, template: Sequence[Sequence[float]], symmetric=True):
        super().__init__()
        self.register_buffer("template", torch.tensor(template), persistent=False)
        self.symmetric = symmetric

    def forward(self, points: Tensor) -> Tensor:
        distance = torch.cdist(points, self.template.expand(len(points), -1, -1))
        loss = distance.amin(-1).mean()
        return loss + distance.amin(-2).mean() if self.symmetric else loss
