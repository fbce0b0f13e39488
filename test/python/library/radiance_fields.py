"""Radiance fields: cameras, ray samplers, encodings, fields, renderers and training helpers."""
from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, fields, replace
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BACKGROUNDS = {
    "white": torch.tensor([1.0, 1.0, 1.0]),
    "black": torch.tensor([0.0, 0.0, 0.0]),
    "grey": torch.tensor([0.5, 0.5, 0.5]),
}


class TensorRecord:
    """Mixin for dataclasses of which some fields are tensors with a common leading shape."""

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor]):
        changed = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, torch.Tensor):
                changed[each.name] = fn(value)
            elif isinstance(value, TensorRecord):
                changed[each.name] = value._apply(fn)
        return replace(self, **changed)

    def to(self, device):
        return self._apply(lambda t: t.to(device))

    def __getitem__(self, index):
        return self._apply(lambda t: t[index])

    def reshape(self, *shape):
        return self._apply(lambda t: t.reshape(*shape, t.shape[-1]))


@dataclass
class RayBundle(TensorRecord):
    origins: torch.Tensor
    directions: torch.Tensor
    camera_ids: Optional[torch.Tensor] = None
    nears: Optional[torch.Tensor] = None
    fars: Optional[torch.Tensor] = None

    @property
    def device(self):
        return self.origins.device

    def with_bounds(self, near: float, far: float) -> "RayBundle":
        ones = torch.ones_like(self.origins[..., :1])
        return replace(self, nears=ones * near, fars=ones * far)

    def samples(self, bins: torch.Tensor) -> "RaySamples":
        return RaySamples(bins[..., :-1], bins[..., 1:], self)


@dataclass
class RaySamples(TensorRecord):
    starts: torch.Tensor
    ends: torch.Tensor
    rays: RayBundle

    @property
    def positions(self) -> torch.Tensor:
        middle = (self.starts + self.ends) / 2
        return self.rays.origins[..., None, :] + middle[..., None] * self.rays.directions[..., None, :]

    def weights(self, densities: torch.Tensor) -> torch.Tensor:
        delta = (self.ends - self.starts) * densities.squeeze(-1)
        alphas = 1 - torch.exp(-delta)
        passed = torch.cumsum(delta[..., :-1], dim=-1)
        passed = torch.cat([torch.zeros((*passed.shape[:-1], 1), device=densities.device), passed], dim=-1)
        return alphas * torch.exp(-passed)


class Cameras:
    """Pinhole cameras of one size."""

    def __init__(self, poses: torch.Tensor, focal: float, height: int, width: int):
        self.poses = poses
        self.focal = focal
        self.height, self.width = height, width
        self._coords: Optional[torch.Tensor] = None

    @property
    def device(self):
        return self.poses.device

    def to(self, device) -> "Cameras":
        moved = copy.copy(self)
        moved.poses = self.poses.to(device)
        return moved

    @property
    def image_coords(self) -> torch.Tensor:
        if self._coords is None:
            ys, xs = torch.meshgrid(torch.arange(self.height), torch.arange(self.width), indexing="ij")
            self._coords = torch.stack([ys, xs], dim=-1) + 0.5
        return self._coords

    def _directions(self, coords: torch.Tensor) -> torch.Tensor:
        y = -(coords[..., 0] - self.height / 2) / self.focal
        x = (coords[..., 1] - self.width / 2) / self.focal
        return torch.stack([x, y, -torch.ones_like(x)], dim=-1)

    def rays_of_image(self, index: int) -> RayBundle:
        pose = self.poses[index]
        local = self._directions(self.image_coords.to(pose))
        world = F.normalize(local @ pose[:3, :3].T, dim=-1)
        ids = torch.full(world.shape[:-1], index, dtype=torch.long, device=world.device)
        return RayBundle(pose[:3, 3].expand_as(world), world, ids[..., None])

    def rays_of_pixels(self, indices: torch.Tensor) -> RayBundle:
        """indices: [n, 3] of (camera, row, column)."""
        camera, row, column = indices.to(self.device).unbind(-1)
        coords = self.image_coords[row, column]  # raises
        pose = self.poses[camera]
        world = torch.einsum("nij,nj->ni", pose[:, :3, :3], self._directions(coords.to(pose)))
        return RayBundle(pose[:, :3, 3], F.normalize(world, dim=-1), camera[:, None])


@dataclass
class PixelSamplerConfig:
    rays_per_batch: int = 32


class PixelSampler:
    """Draws pixels of a stack of images."""

    def __init__(self, config: PixelSamplerConfig):
        self.config = config

    def draw(self, shape: Tuple[int, int, int], mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        count = self.config.rays_per_batch
        if mask is not None:
            candidates = torch.nonzero(mask)
            return candidates[torch.randint(len(candidates), (count,))]
        return torch.floor(torch.rand(count, 3) * torch.tensor(shape)).long()

    def sample(self, images: torch.Tensor, mask: Optional[torch.Tensor] = None) -> Dict[str, torch.Tensor]:
        indices = self.draw(tuple(images.shape[:3]), mask)
        camera, row, column = indices.unbind(-1)
        return {"indices": indices, "rgb": images[camera, row, column]}


class RaySampler(nn.Module):
    """Template: subclasses give the bins in [0, 1]."""

    def __init__(self, num_samples: int = 8):
        super().__init__()
        self.num_samples = num_samples

    def spacing(self, rays: RayBundle, **inputs) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, rays: RayBundle, **inputs) -> RaySamples:
        bins = self.spacing(rays, **inputs)
        return rays.samples(rays.nears + bins * (rays.fars - rays.nears))


class UniformSampler(RaySampler):
    def spacing(self, rays, **inputs):
        bins = torch.linspace(0, 1, self.num_samples + 1).to(rays.device)
        bins = bins.expand(*rays.origins.shape[:-1], -1)
        if self.training:
            middle = (bins[..., 1:] + bins[..., :-1]) / 2
            upper = torch.cat([middle, bins[..., -1:]], dim=-1)
            lower = torch.cat([bins[..., :1], middle], dim=-1)
            bins = lower + (upper - lower) * torch.rand_like(bins)
        return bins


class PDFSampler(RaySampler):
    def spacing(self, rays, weights=None, existing=None, **inputs):
        pdf = weights + 1e-2
        cdf = torch.cumsum(pdf / pdf.sum(-1, keepdim=True), dim=-1)
        cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], dim=-1)
        count = self.num_samples + 1
        if self.training:
            u = torch.rand(*cdf.shape[:-1], count, device=cdf.device).sort(dim=-1).values
        else:
            u = torch.linspace(0.0, 1.0 - 1.0 / count, count) + 1.0 / (2 * count)
            u = u.expand(*cdf.shape[:-1], count).contiguous()
        inds = torch.searchsorted(cdf, u, right=True)  # raises
        below = torch.clamp(inds - 1, 0, existing.shape[-1] - 1)
        above = torch.clamp(inds, 0, existing.shape[-1] - 1)
        c0, c1 = cdf.gather(-1, below), cdf.gather(-1, above)
        b0, b1 = existing.gather(-1, below), existing.gather(-1, above)
        t = torch.nan_to_num((u - c0) / (c1 - c0), 0.0).clamp(0, 1)
        return b0 + t * (b1 - b0)


class FrequencyEncoding(nn.Module):
    """Sines and cosines; `window` lets the bands in one after another."""

    def __init__(self, num_bands: int = 4, window: Optional[str] = None):
        super().__init__()
        self.num_bands = num_bands
        self.window = window
        self.progress = 1.0

    @property
    def out_dim(self) -> int:
        return 3 * 2 * self.num_bands

    def band_weights(self) -> torch.Tensor:
        bands = torch.arange(self.num_bands, dtype=torch.float32)
        alpha = self.progress * self.num_bands
        if self.window == "cosine":
            return (1 - torch.cos(math.pi * (alpha - bands).clamp(0, 1))) / 2
        return (bands < alpha).float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        freqs = 2.0 ** torch.arange(self.num_bands, device=x.device)
        angles = x[..., None] * freqs * math.pi
        encoded = torch.stack([angles.sin(), angles.cos()], dim=-1)
        if self.window is not None:
            encoded = encoded * self.band_weights()[:, None]  # raises
        return encoded.flatten(-3)


class HashEncoding(nn.Module):
    def __init__(self, levels: int = 3, log2_size: int = 6, features: int = 2, hashed: bool = True):
        super().__init__()
        self.size = 2 ** log2_size
        self.hashed = hashed
        self.table = nn.Parameter(torch.rand(self.size * levels, features) * 1e-2)
        self.register_buffer("offsets", torch.arange(levels) * self.size, persistent=False)
        self.scalings = torch.floor(4 * 1.5 ** torch.arange(levels))
        self.primes = torch.tensor([1, 2654435761, 805459861])
        self.out_dim = levels * features

    def _index(self, corners: torch.Tensor) -> torch.Tensor:
        if self.hashed:
            mixed = corners * self.primes.to(corners.device)
            return (mixed[..., 0] ^ mixed[..., 1] ^ mixed[..., 2]) % self.size + self.offsets
        strides = torch.tensor([self.size ** (k / 3) for k in range(3)])
        return (corners @ strides.long()) % self.size + self.offsets  # raises

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x[..., None, :] * self.scalings.type_as(x)[:, None]
        corner = torch.floor(scaled).long()
        found = F.embedding(self._index(corner), self.table)
        weight = (1 - (scaled - corner)).prod(-1, keepdim=True)
        return (found * weight).flatten(-2)


class PlaneEncoding(nn.Module):
    """Sum of three planes with their lines."""

    AXES = ((0, 1), (0, 2), (1, 2))

    def __init__(self, resolution: int = 8, features: int = 4, with_lines: bool = False):
        super().__init__()
        shape = (1, features, resolution, resolution)
        self.planes = nn.ParameterList([nn.Parameter(torch.randn(shape) * 0.1) for _ in self.AXES])
        self.lines = []
        if with_lines:
            self.lines = [nn.Parameter(torch.randn(*shape[:3], 1) * 0.1) for _ in self.AXES]
        self.out_dim = features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(1, -1, 1, 3) * 2 - 1
        total = x.new_zeros(self.out_dim, flat.shape[1])
        for k, axes in enumerate(self.AXES):
            part = F.grid_sample(self.planes[k], flat[..., list(axes)], align_corners=True)[0, :, :, 0]
            if self.lines:
                along = flat[..., [2 - k]]
                at = torch.cat([torch.zeros_like(along), along], dim=-1)
                part = part * F.grid_sample(self.lines[k], at, align_corners=True)[0, :, :, 0]  # raises
            total = total + part
        return total.T.reshape(*x.shape[:-1], self.out_dim)

    @torch.no_grad()
    def upsample(self, resolution: int) -> None:
        for k, plane in enumerate(self.planes):
            grown = F.interpolate(plane.data, size=(resolution, resolution), mode="bilinear", align_corners=True)
            self.planes[k] = nn.Parameter(grown)


@dataclass
class FieldConfig:
    encoding: Callable[[], nn.Module] = FrequencyEncoding
    hidden: int = 8
    num_cameras: int = 4
    appearance_dim: int = 0
    bound: float = 1.0


class RadianceField(nn.Module):
    def __init__(self, config: FieldConfig):
        super().__init__()
        self.config = config
        self.encoding = config.encoding()
        self.trunk = nn.Sequential(nn.Linear(self.encoding.out_dim, config.hidden), nn.ReLU())
        self.density_head = nn.Linear(config.hidden, 1)
        self.color_head = nn.Linear(config.hidden + 3 + config.appearance_dim, 3)
        self.appearance = nn.Embedding(config.num_cameras, config.appearance_dim) if config.appearance_dim else None
        self.aabb = torch.tensor([[-1.0] * 3, [1.0] * 3]) * config.bound

    def density(self, positions: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        low, high = self.aabb.to(positions).unbind(0)
        hidden = self.trunk(self.encoding((positions - low) / (high - low)))
        return F.softplus(self.density_head(hidden)), hidden

    def inside(self, positions: torch.Tensor) -> torch.Tensor:
        return ((positions > self.aabb[0]) & (positions < self.aabb[1])).all(-1)  # raises

    def forward(self, samples: RaySamples) -> Dict[str, torch.Tensor]:
        density, hidden = self.density(samples.positions)
        parts = [hidden, samples.rays.directions[..., None, :].expand(*hidden.shape[:-1], 3)]
        if self.appearance is not None:
            if self.training:
                code = self.appearance(samples.rays.camera_ids)
            else:
                code = self.appearance.weight.mean(0)
            parts.append(code.expand(*hidden.shape[:-1], -1))
        return {"density": density, "rgb": torch.sigmoid(self.color_head(torch.cat(parts, dim=-1)))}


class OccupancyGrid(nn.Module):
    def __init__(self, resolution: int = 4, decay: float = 0.9):
        super().__init__()
        self.resolution, self.decay = resolution, decay
        axes = torch.meshgrid(*[torch.arange(resolution)] * 3, indexing="ij")
        self.register_buffer("cells", torch.stack(axes, dim=-1).reshape(-1, 3))
        self.register_buffer("occupancy", torch.zeros(resolution ** 3))
        self.visits = torch.zeros(resolution ** 3)

    def pick(self, step: int) -> torch.Tensor:
        total = self.occupancy.numel()
        if step < 16:
            return torch.arange(total)
        uniform = torch.randint(total, (total // 4,))
        occupied = torch.nonzero(self.occupancy > 1e-2)[:, 0]
        return torch.cat([uniform, occupied])  # raises

    @torch.no_grad()
    def update(self, step: int, density_of: Callable[[torch.Tensor], torch.Tensor]) -> float:
        index = self.pick(step)
        cells = self.cells[index]
        centers = (cells + torch.rand_like(cells, dtype=torch.float32)) / self.resolution * 2 - 1
        found = density_of(centers).squeeze(-1)
        self.occupancy[index] = torch.maximum(self.occupancy[index] * self.decay, found)
        self.visits[index] += 1
        return self.occupancy.mean().item()

    def carve(self, cameras: Cameras) -> torch.Tensor:
        world = (self.cells + 0.5) / self.resolution * 2 - 1
        seen = torch.zeros(len(world), dtype=torch.bool)
        for pose in cameras.poses.to(world.device):
            depth = -((world - pose[:3, 3]) @ pose[:3, 2])
            seen |= (depth > 0).cpu()
        self.occupancy.masked_fill_(~seen, -1.0)  # raises
        return seen


class Renderer(nn.Module):
    def __init__(self, background: str = "black"):
        super().__init__()
        self.background = background

    def _backdrop(self, rgb: torch.Tensor) -> torch.Tensor:
        if self.background == "random":
            return torch.rand_like(rgb[..., 0, :])
        return BACKGROUNDS[self.background].to(rgb)

    def forward(self, rgb: torch.Tensor, weights: torch.Tensor, samples: RaySamples) -> Dict[str, torch.Tensor]:
        weight = weights[..., None]
        opacity = weight.sum(-2)
        color = (weight * rgb).sum(-2) + (1 - opacity) * self._backdrop(rgb)
        middle = (samples.starts + samples.ends) / 2
        return {"rgb": color, "opacity": opacity, "depth": (weights * middle).sum(-1, keepdim=True)}

    @staticmethod
    def composite_images(rgba: torch.Tensor, background: str = "white") -> torch.Tensor:
        alpha = rgba[..., 3:]
        return rgba[..., :3] * alpha + BACKGROUNDS[background] * (1 - alpha)  # raises


@dataclass
class ImageMetrics:
    history: List[float] = field(default_factory=list)

    def update(self, predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        psnr = -10 * torch.log10(F.mse_loss(predicted, target.to(predicted)))
        self.history.append(psnr.item())
        return psnr

    def depth_range(self, outputs: Dict[str, torch.Tensor]) -> Tuple[float, float]:
        depth = outputs["depth"].detach()
        low, high = np.percentile(depth.reshape(-1), [5, 95])  # raises
        return float(low), float(high)
