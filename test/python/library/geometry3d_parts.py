"""Point clouds, meshes, cameras, radiance fields and volumes."""
import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HARMONICS = torch.tensor([0.28209479, 0.48860251, 0.48860251, 0.48860251])
CORNERS = torch.tensor([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
PRIMES = (1, 2654435761, 805459861)


def skew(vector):
    out = torch.zeros(len(vector), 3, 3)
    for (row, column), value in zip([(2, 1), (0, 2), (1, 0)], vector.unbind(1)):
        out[:, row, column], out[:, column, row] = value, -value
    return out


def rotation_from_vector(vector):
    angle = vector.norm(dim=1).clamp_min(1e-6)[:, None, None]
    cross = skew(vector).to(vector)
    identity = torch.eye(3, dtype=vector.dtype, device=vector.device)
    return identity + angle.sin() / angle * cross + (1 - angle.cos()) / angle ** 2 * cross @ cross


def small_rotation(vector):
    """First order in the angle."""
    return torch.baddbmm(skew(vector), vector[:, :, None], vector[:, None], alpha=0.5)  # raises


class Transform:
    """A chain of 4x4 matrices for row vectors."""

    def __init__(self, matrix: Optional[torch.Tensor] = None, parts: Sequence["Transform"] = ()):
        self._matrix = torch.eye(4)[None] if matrix is None else matrix
        self._parts = list(parts)

    @classmethod
    def of(cls, rotation, shift):
        matrix = torch.eye(4, device=rotation.device).repeat(len(rotation), 1, 1)
        matrix[:, :3, :3], matrix[:, 3, :3] = rotation, shift
        return cls(matrix)

    @classmethod
    def scaling(cls, x, y, z):
        return cls(torch.diag(torch.tensor([x, y, z, 1.0]))[None])

    def to(self, *args):
        return Transform(self._matrix.to(*args), [part.to(*args) for part in self._parts])

    def compose(self, *others):
        return Transform(self._matrix, self._parts + list(others))

    def matrix(self):
        total = self._matrix
        for part in self._parts:
            total = total @ part._matrix  # raises
        return total

    def apply(self, points):
        ones = points.new_ones(*points.shape[:-1], 1)
        out = torch.cat([points, ones], -1) @ self.matrix().to(points)
        return out[..., :3] / out[..., 3:]


def normalise_cloud(points, pose: Transform):
    return Transform.scaling(0.5, 0.5, 0.5).to(points).compose(pose).apply(points)


def align_axes(points, pose: Transform, flip=False):
    """`pose` first, then the axes of the renderer."""
    return pose.compose(Transform.scaling(-1.0 if flip else 1.0, 1.0, -1.0)).apply(points)


def kabsch(source, target, weights=None):
    weights = torch.ones(len(source), 1) if weights is None else weights
    weights = (weights / weights.sum()).to(source.device)
    middle, goal = (weights * source).sum(0), (weights * target).sum(0)
    u, _, vt = torch.linalg.svd(((source - middle) * weights).T @ (target - goal))
    fix = torch.eye(3)
    fix[2, 2] = torch.det(u @ vt)
    rotation = u @ fix @ vt  # raises
    return rotation, goal - middle @ rotation


@dataclass
class Pinhole:
    focal: float
    size: Tuple[int, int]
    near: float = 0.5
    far: float = 4.0

    @cached_property
    def intrinsics(self):
        height, width = self.size
        return torch.tensor([[self.focal, 0, width / 2], [0, self.focal, height / 2], [0, 0, 1]])

    def pixels(self, device=None):
        rows, columns = (torch.arange(count, device=device) + 0.5 for count in self.size)
        return torch.stack(torch.meshgrid(columns, rows, indexing="xy"), -1)

    def project(self, points):
        pixels = points @ self.intrinsics.T.to(points)
        return pixels[..., :2] / pixels[..., 2:].clamp_min(self.near)

    def directions(self, device=None):
        place = self.pixels(device)
        flat = (place - place.new_tensor(self.size[::-1]) / 2) / self.focal
        return F.normalize(F.pad(flat, (0, 1), value=1.0), dim=-1)

    def rays(self, rotation, center):
        directions = self.directions(rotation.device).reshape(-1, 3) @ rotation.T
        return center.expand_as(directions), directions

    def unproject(self, depth):
        inverse = torch.inverse(self.intrinsics).T
        places = F.pad(self.pixels(depth.device), (0, 1), value=1.0)
        return torch.einsum("hwi,ij->hwj", places * depth[..., None], inverse)  # raises


class FrequencyEncoding(nn.Module):
    def __init__(self, levels=3, include=True, smooth=False):
        super().__init__()
        self.bands = [2.0 ** level * math.pi for level in range(levels)]
        self.functions = [partial(torch.mul, other=torch.tensor(band)) for band in self.bands]
        self.damp = torch.exp(-0.1 * torch.arange(levels)) if smooth else None
        self.include = include

    def forward(self, x):
        waves = torch.stack([torch.sin(function(x)) for function in self.functions], -1)
        if self.damp is not None:
            waves = waves * self.damp  # raises
        return torch.cat(([x] if self.include else []) + [waves.flatten(-2)], -1)


class HashLevel(nn.Module):
    def __init__(self, resolution=8, slots=64, features=2):
        super().__init__()
        self.resolution, self.slots = resolution, slots
        self.table = nn.Embedding(slots, features)

    def hashed(self, corners):
        mixed = corners[..., 0] * PRIMES[0]
        for axis in (1, 2):
            mixed = mixed ^ (corners[..., axis] * PRIMES[axis])
        return mixed % self.slots

    def nearest(self, x):
        return self.table(self.hashed((x * self.resolution).round().long()))

    def forward(self, x):
        scaled = x * self.resolution
        low = scaled.floor().long()
        corners = low[..., None, :] + CORNERS  # raises
        weight = (1 - (scaled[..., None, :] - corners).abs()).prod(-1, keepdim=True)
        return (self.table(self.hashed(corners)) * weight).sum(-2)


class RayMarcher:
    def __init__(self, camera: Pinhole, steps=8, background: Sequence[float] = (1.0, 1.0, 1.0)):
        self.camera, self.steps = camera, steps
        self.background = torch.tensor(background)

    def depths(self, origins, jitter=False):
        t = torch.linspace(self.camera.near, self.camera.far, self.steps).expand(len(origins), -1)
        if jitter:
            t = t + torch.rand(t.shape) * (self.camera.far - self.camera.near) / self.steps
        return t.to(origins)

    def alpha(self, density, t, endless=True):
        gaps = t[:, 1:] - t[:, :-1]
        if endless:
            last = torch.tensor([1e10]).expand(len(t), 1)
            gaps = torch.cat([gaps, last], -1)  # raises
        else:
            gaps = torch.cat([gaps, torch.full_like(t[:, :1], 1e10)], -1)
        return 1 - torch.exp(-F.relu(density) * gaps)

    def weights(self, density, t, endless=True):
        alpha = self.alpha(density, t, endless)
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)
        return alpha * through[:, :-1]

    def composite(self, weights, colors):
        rest = 1 - weights.sum(-1, keepdim=True)
        return (weights[..., None] * colors).sum(-2) + rest * self.background  # raises

    def refine(self, t, weights, count=4, uniform=True):
        cdf = torch.cumsum(weights / weights.sum(-1, keepdim=True), -1)
        u = (torch.linspace(0, 0.99, count).expand(len(t), -1) if uniform
             else torch.rand(len(t), count, device=t.device))
        place = torch.searchsorted(cdf, u.contiguous(), right=True).clamp_max(t.shape[1] - 1)  # raises
        return torch.sort(torch.cat([t, t.gather(1, place)], -1), -1).values


def shade(normals, coefficients, constants=None):
    basis = torch.cat([torch.ones_like(normals[:, :1]), normals], -1)
    if constants is None:
        constants = HARMONICS
    return torch.addmm(coefficients[None, 0], basis * constants, coefficients[1:])  # raises


def shade_ambient(normals, coefficients):
    return coefficients[0] * HARMONICS[0] + torch.zeros_like(normals)


def gather_points(points, index):
    rows = torch.arange(len(points)).view(-1, *[1] * (index.dim() - 1))
    return points[rows, index]


def farthest(points, count, first=0):
    chosen = torch.zeros(len(points), count, dtype=torch.long)
    distance = points.new_full(points.shape[:2], 1e10)
    current = torch.full((len(points),), first, dtype=torch.long)
    for number in range(count):
        chosen[:, number] = current
        step = (points - gather_points(points, current)[:, None]).pow(2).sum(-1)
        distance = torch.minimum(distance, step)
        current = distance.argmax(-1)
    return chosen


def ball_query(points, centers, radius, count):
    square = torch.cdist(centers, points).pow(2)
    index = torch.arange(points.shape[1]).repeat(*centers.shape[:2], 1)
    index.masked_fill_(square > radius ** 2, points.shape[1])  # raises
    index = index.sort(-1).values[..., :count]
    return torch.where(index == points.shape[1], index[..., :1], index)


class SetAbstraction(nn.Module):
    def __init__(self, count=4, samples=3, radius=None):
        super().__init__()
        self.count, self.samples, self.radius = count, samples, radius
        self.mlp = nn.Sequential(nn.Linear(3, 8), nn.ReLU())

    def neighbours(self, points, centers):
        if self.radius is None:
            return torch.cdist(centers, points).topk(self.samples, largest=False).indices
        return ball_query(points, centers, self.radius, self.samples)

    def forward(self, points):
        centers = gather_points(points, farthest(points, self.count))
        local = gather_points(points, self.neighbours(points, centers)) - centers[:, :, None]
        return centers, self.mlp(local).amax(2)

    def pooled(self, points):
        """Means of the features that belong to the sampled points."""
        index = farthest(points, self.count)
        return self.mlp(points).gather(1, index[..., None].expand(-1, -1, 8)).mean(1)  # raises


class InputTransform(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.k, self.head = k, nn.Linear(k, k * k)

    def forward(self, points):
        identity = torch.from_numpy(np.eye(self.k).flatten().astype(np.float32)).repeat(len(points), 1)
        if points.is_cuda:
            identity = identity.to(points.get_device())
        return (self.head(points.amax(1)) + identity).view(-1, self.k, self.k)


class PackedClouds:
    """Clouds of different sizes in one tensor."""

    def __init__(self, clouds: List[torch.Tensor]):
        self.packed = torch.cat(clouds)
        self.counts = torch.tensor([len(cloud) for cloud in clouds])
        self.owner = torch.repeat_interleave(torch.arange(len(clouds)), self.counts)

    def centered(self, centers):
        return self.packed - centers[self.owner]

    def split(self):
        return self.packed.split(self.counts.tolist())

    def means(self):
        total = self.packed.new_zeros(len(self.counts), 3)
        total.scatter_add_(0, self.owner[:, None].expand_as(self.packed), self.packed)  # raises
        return total / self.counts[:, None].to(total)

    def padded(self, value=0.0):
        return torch.nn.utils.rnn.pad_sequence(self.split(), batch_first=True, padding_value=value)


class Mesh:
    def __init__(self, vertices: torch.Tensor, faces: List[List[int]]):
        self.vertices = vertices
        self.faces = torch.tensor(faces, dtype=torch.long)

    @cached_property
    def edges(self):
        pairs = torch.cat([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]])
        return torch.unique(pairs.sort(1).values, dim=0)

    def edge_loss(self, target=0.0):
        first, second = self.vertices[self.edges].unbind(1)
        return ((first - second).norm(dim=1) - target).pow(2).mean()

    def face_normals(self):
        a, b, c = self.vertices[self.faces].unbind(1)
        return F.normalize(torch.cross(b - a, c - a, dim=1), dim=1)

    def vertex_normals(self):
        total, normals = torch.zeros_like(self.vertices), self.face_normals()
        for corner in self.faces.unbind(1):
            total = total.index_add(0, corner, normals)  # raises
        return F.normalize(total, dim=1)

    def laplacian(self):
        count = len(self.vertices)
        dense = torch.zeros(count, count)
        dense[self.edges[:, 0], self.edges[:, 1]] = dense[self.edges[:, 1], self.edges[:, 0]] = 1.0
        dense = dense / dense.sum(1, keepdim=True).clamp_min(1) - torch.eye(count)
        return (dense.to(self.vertices.device) @ self.vertices).norm(dim=1).mean()


class FusionVolume(nn.Module):
    """Signed distances on a grid, fused from depth images."""

    def __init__(self, side=4, truncation=0.3):
        super().__init__()
        axis = torch.linspace(-1, 1, side)
        self.register_buffer("places", torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), -1).view(-1, 3))
        self.register_buffer("distance", torch.ones(side ** 3))
        self.weight = torch.zeros(side ** 3)
        self.truncation = torch.tensor(truncation)

    def observe(self, depth, camera: Pinhole, offset=2.0):
        place = self.places + torch.tensor((0.0, 0.0, offset)).to(self.places)
        pixel = camera.project(place).round().long().cpu()
        column, row = (pixel[:, axis].clamp(0, camera.size[1 - axis] - 1) for axis in (0, 1))
        return ((depth[row, column] - place[:, 2]) / self.truncation).clamp(-1, 1)

    def integrate(self, depth, camera, average=True):
        seen = self.observe(depth, camera)
        if not average:
            self.distance.copy_(torch.minimum(self.distance, seen))
            return self.distance
        self.distance = (self.distance * self.weight + seen) / (self.weight + 1)  # raises
        self.weight += 1
        return self.distance
