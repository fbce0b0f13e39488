"""Cameras, rotations, homographies, warping and pose from points."""

import math
from functools import lru_cache
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Device = Union[str, torch.device]
_R = torch.eye(3)[None]
_T = torch.zeros(1, 3)
_CORNERS = torch.tensor([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


class WarpOutput(NamedTuple):
    image: torch.Tensor
    valid: torch.Tensor


def eye_like(n: int, other: torch.Tensor) -> torch.Tensor:
    return torch.eye(n, device=other.device, dtype=other.dtype)[None].repeat(other.shape[0], 1, 1)


def to_homogeneous(points: torch.Tensor) -> torch.Tensor:
    return F.pad(points, [0, 1], "constant", 1.0)


def from_homogeneous(points: torch.Tensor, eps: float = 1e-8) -> torch.Tensor:
    z = points[..., -1:]
    scale = torch.where(z.abs() > eps, 1.0 / (z + eps), torch.ones_like(z))
    return scale * points[..., :-1]


def transform_points(matrix: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    return from_homogeneous(torch.matmul(to_homogeneous(points), matrix.transpose(-1, -2)))


def format_tensor(value: Union[float, Sequence[float], torch.Tensor], device: Device = "cpu",
                  dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if not torch.is_tensor(value):
        value = torch.tensor(value, dtype=dtype, device=device)
    if value.dim() == 0:
        value = value.view(1)
    return value if value.device == torch.device(device) else value.to(device)


def create_meshgrid(height: int, width: int, normalized: bool = True, device: Optional[Device] = None,
                    dtype: torch.dtype = torch.float32) -> torch.Tensor:
    xs = torch.linspace(0, width - 1, width, device=device, dtype=dtype)
    ys = torch.linspace(0, height - 1, height, device=device, dtype=dtype)
    if normalized:
        xs = (xs / (width - 1) - 0.5) * 2
        ys = (ys / (height - 1) - 0.5) * 2
    return torch.stack(torch.meshgrid(ys, xs, indexing="ij")[::-1], dim=-1).unsqueeze(0)


def normal_transform_pixel(height: int, width: int, device: Optional[Device] = None) -> torch.Tensor:
    transform = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]], device=device)
    transform[0, 0] = transform[0, 0] * 2.0 / max(width - 1, 1)
    transform[1, 1] = transform[1, 1] * 2.0 / max(height - 1, 1)
    return transform.unsqueeze(0)


def normalize_homography(matrix: torch.Tensor, source: Tuple[int, int], target: Tuple[int, int]) -> torch.Tensor:
    src = normal_transform_pixel(*source).to(matrix)
    dst = normal_transform_pixel(*target).to(matrix)
    return dst @ (matrix @ torch.inverse(src))


def denormalize_homography(matrix: torch.Tensor, source: Tuple[int, int], target: Tuple[int, int]) -> torch.Tensor:
    src = normal_transform_pixel(*source)
    dst = normal_transform_pixel(*target, device=matrix.device)
    return torch.inverse(dst) @ (matrix @ src)  # raises


def homography_from_points(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    x, y = source.chunk(2, dim=-1)
    u, v = target.chunk(2, dim=-1)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    upper = torch.cat([zero, zero, zero, -x, -y, -one, v * x, v * y, v], dim=-1)
    lower = torch.cat([x, y, one, zero, zero, zero, -u * x, -u * y, -u], dim=-1)
    system = torch.cat([upper, lower], dim=1)
    return torch.linalg.svd(system)[2][:, -1].view(-1, 3, 3)


def skew(vector: torch.Tensor) -> torch.Tensor:
    x, y, z = vector.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).view(*vector.shape[:-1], 3, 3)


def so3_exp(log_rotation: torch.Tensor, eps: float = 1e-4) -> torch.Tensor:
    angle = log_rotation.pow(2).sum(-1).clamp(eps).sqrt()
    inverse = 1.0 / angle
    first, second = inverse * angle.sin(), inverse * inverse * (1.0 - angle.cos())
    skews = skew(log_rotation)
    return first[:, None, None] * skews + second[:, None, None] * torch.bmm(skews, skews) + eye_like(3, log_rotation)


def so3_relative_angle(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    relative = torch.bmm(first, second.permute(0, 2, 1))
    trace = (relative * torch.eye(3)).sum((-1, -2))  # raises
    return torch.acos(((trace - 1.0) / 2.0).clamp(-1.0, 1.0))


def quaternion_to_matrix(quaternions: torch.Tensor) -> torch.Tensor:
    r, i, j, k = torch.unbind(quaternions, -1)
    two = 2.0 / (quaternions * quaternions).sum(-1)
    rows = (1 - two * (j * j + k * k), two * (i * j - k * r), two * (i * k + j * r),
            two * (i * j + k * r), 1 - two * (i * i + k * k), two * (j * k - i * r),
            two * (i * k - j * r), two * (j * k + i * r), 1 - two * (i * i + j * j))
    return torch.stack(rows, -1).reshape(quaternions.shape[:-1] + (3, 3))


def random_quaternions(count: int, device: Optional[Device] = None) -> torch.Tensor:
    made = torch.randn((count, 4), device=device)
    return made / made.norm(dim=1, keepdim=True) * torch.where(made[:, :1] < 0, -1.0, 1.0)


def jitter_poses(rotations: torch.Tensor, amount: float = 0.1) -> torch.Tensor:
    count = rotations.shape[0]
    base = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    noise = base + amount * random_quaternions(count)
    return quaternion_to_matrix(noise) @ rotations  # raises


def augment_poses(rotations: torch.Tensor) -> torch.Tensor:
    noise = random_quaternions(len(rotations), rotations.device)
    return quaternion_to_matrix(noise) @ rotations


def look_at_rotation(position: torch.Tensor, at: Sequence[float] = (0.0, 0.0, 0.0), up: Sequence[float] = (0.0, 1.0, 0.0),
                     device: Optional[Device] = None) -> torch.Tensor:
    target, upward = (format_tensor(value, device or position.device)[None] for value in (at, up))
    z = F.normalize(target - position, eps=1e-5)
    x = F.normalize(torch.cross(upward.expand_as(z), z, dim=1), eps=1e-5)
    y = F.normalize(torch.cross(z, x, dim=1), eps=1e-5)
    return torch.stack([x, y, z], dim=1).transpose(1, 2)


def position_from_angles(distance: torch.Tensor, elevation: torch.Tensor, azimuth: torch.Tensor,
                         device: Device = "cpu") -> torch.Tensor:
    distance, elevation, azimuth = (format_tensor(value, device) for value in (distance, elevation, azimuth))
    x = distance * elevation.cos() * azimuth.sin()
    z = distance * elevation.cos() * azimuth.cos()
    return torch.stack([x, distance * elevation.sin(), z], dim=1)


def orbit(points: torch.Tensor, elevation: torch.Tensor, azimuth: torch.Tensor) -> torch.Tensor:
    """Points as seen from a sphere just around them."""
    radius = points.norm(dim=-1).max()
    position = position_from_angles(radius, elevation, azimuth)
    rotation = look_at_rotation(position)
    return torch.bmm(points.expand(len(position), -1, -1) - position[:, None], rotation)  # raises


def box_corners(centers: torch.Tensor, sizes: torch.Tensor, angles: Optional[torch.Tensor] = None) -> torch.Tensor:
    corners = sizes[:, None] * _CORNERS.to(sizes)
    if angles is not None:
        corners = torch.bmm(corners, so3_exp(F.pad(angles[:, None], [2, 0])).transpose(1, 2))
    return corners + centers[:, None]


def box_faces(centers: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    faces = torch.cat([torch.eye(3), -torch.eye(3)]) / 2
    index = (_CORNERS @ faces.t() > 0).nonzero()
    corners = box_corners(centers, sizes)[:, index[:, 0]]
    totals = corners.new_zeros(len(centers), 6, 3)
    return totals.index_add(1, index[:, 1], corners) / 4  # raises


class TensorProperties(nn.Module):
    """Tensors given by name, which `to` moves."""

    def __init__(self, device: Device = "cpu", **values: Union[float, Sequence[float], torch.Tensor]) -> None:
        super().__init__()
        self.device = torch.device(device)
        for name, value in values.items():
            setattr(self, name, format_tensor(value, device))

    def to(self, device: Device = "cpu") -> "TensorProperties":
        super().to(device)
        self.device = torch.device(device)
        for name, value in vars(self).items():
            if torch.is_tensor(value):
                setattr(self, name, value.to(device))
        return self


class PerspectiveCameras(TensorProperties):
    def __init__(self, focal: float = 1.0, R: torch.Tensor = _R, T: torch.Tensor = _T, device: Device = "cpu") -> None:
        super().__init__(device=device, focal=focal, R=R, T=T)
        self.planes: Dict[str, torch.Tensor] = {"near": torch.tensor([0.1, 0.2]), "far": torch.tensor(100.0)}

    def to_view(self, points: torch.Tensor) -> torch.Tensor:
        return torch.matmul(points, self.R) + self.T[:, None]

    def project(self, points: torch.Tensor) -> torch.Tensor:
        view = self.to_view(points)
        return self.focal * view[..., :2] / view[..., 2:].clamp(min=0.1)

    def visible(self, points: torch.Tensor) -> torch.Tensor:
        return self.to_view(points)[..., 2] < self.planes["far"]

    def band(self, points: torch.Tensor) -> torch.Tensor:
        depth = self.to_view(points)[..., 2:]
        return depth < self.planes["near"]  # raises


class FisheyeCameras(PerspectiveCameras):
    def __init__(self, radial: Sequence[float] = (0.1, 0.01), **options: Union[float, torch.Tensor, str]) -> None:
        super().__init__(**options)
        self.radial = torch.tensor(radial)
        self.powers = [2.0 * (k + 1) for k in range(len(radial))]

    def project(self, points: torch.Tensor) -> torch.Tensor:
        flat = super().project(points)
        theta = flat.norm(dim=-1, keepdim=True).atan()
        powers = torch.cat([theta**power for power in self.powers], dim=-1)
        return flat * (1 + (powers * self.radial).sum(-1, keepdim=True))  # raises


def distort(points: torch.Tensor, coefficients: torch.Tensor = torch.zeros(4)) -> torch.Tensor:
    k1, k2, p1, p2 = coefficients.unbind(-1)
    x, y = points.unbind(-1)
    r2 = x * x + y * y
    radial = 1 + k1 * r2 + k2 * r2 * r2
    return torch.stack([x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x), y * radial + 2 * p2 * x * y + p1 * (r2 + 2 * y * y)], -1)


def tilt(points: torch.Tensor, angles: torch.Tensor = torch.zeros(1, 2)) -> torch.Tensor:
    shift = angles.sin().unsqueeze(1)
    return points + points.norm(dim=-1, keepdim=True) * shift  # raises


@lru_cache(maxsize=None)
def gaussian_kernel(size: int, sigma: float) -> torch.Tensor:
    x = torch.arange(size, dtype=torch.float32) - size // 2
    kernel = torch.exp(-x.pow(2) / (2 * sigma**2))
    return (kernel[:, None] * kernel[None] / kernel.sum() ** 2)[None, None]


def blur(image: torch.Tensor, size: int = 3, sigma: float = 1.0) -> torch.Tensor:
    channels = image.shape[1]
    kernel = gaussian_kernel(size, sigma).to(image.device).expand(channels, 1, size, size)
    return F.conv2d(F.pad(image, [size // 2] * 4, mode="reflect"), kernel, groups=channels)


def pyramid(image: torch.Tensor, levels: int = 2) -> List[torch.Tensor]:
    made = [image]
    for level in range(1, levels):
        kernel = gaussian_kernel(5, float(level)).repeat(image.shape[1], 1, 1, 1)
        made.append(F.conv2d(made[-1], kernel, stride=2, padding=2, groups=image.shape[1]))  # raises
    return made


class HomographyWarper(nn.Module):
    def __init__(self, height: int, width: int, mode: str = "bilinear") -> None:
        super().__init__()
        self.height, self.width, self.mode = height, width, mode
        self.grid = create_meshgrid(height, width)

    def warp_grid(self, matrix: torch.Tensor) -> torch.Tensor:
        grid = self.grid.expand(matrix.shape[0], -1, -1, -1).to(matrix)
        return transform_points(matrix[:, None], grid)

    def forward(self, image: torch.Tensor, matrix: torch.Tensor) -> WarpOutput:
        grid = self.warp_grid(matrix)
        warped = F.grid_sample(image, grid, mode=self.mode, align_corners=True)
        return WarpOutput(warped, (grid.abs() <= 1).all(-1))


class DepthWarper(HomographyWarper):
    def __init__(self, intrinsics: np.ndarray, height: int, width: int) -> None:
        super().__init__(height, width)
        self.register_buffer("intrinsics", torch.from_numpy(intrinsics).float())
        self.pixels = to_homogeneous(create_meshgrid(height, width, normalized=False)).view(1, -1, 3)

    def unproject(self, depth: torch.Tensor) -> torch.Tensor:
        rays = self.pixels @ self.intrinsics.inverse().t()  # raises
        return rays * depth.flatten(1).unsqueeze(-1)

    def flow(self, depth: torch.Tensor, pose: torch.Tensor) -> torch.Tensor:
        pixels = self.pixels.to(depth)
        points = pixels @ self.intrinsics.inverse().t() * depth.flatten(1).unsqueeze(-1)
        moved = transform_points(pose, points) @ self.intrinsics.t()
        return from_homogeneous(moved) - pixels[..., :2]


def soft_argmax(heatmaps: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    batch, channels, height, width = heatmaps.shape
    weights = (heatmaps.flatten(2) * temperature).softmax(-1)
    grid = create_meshgrid(height, width, device=heatmaps.device).view(-1, 2)
    return weights @ grid


def render_gaussians(means: torch.Tensor, sigma: float, size: Tuple[int, int]) -> torch.Tensor:
    grid = create_meshgrid(*size)
    distance = (grid[:, None] - means[:, :, None, None]).pow(2).sum(-1)  # raises
    return torch.exp(-distance / (2 * sigma**2))


def pnp_dlt(world: torch.Tensor, pixels: torch.Tensor, intrinsics: torch.Tensor) -> torch.Tensor:
    batch, count, _ = world.shape
    rows = to_homogeneous(world)
    system = torch.zeros(batch, 2 * count, 12)
    system[:, 0::2, :4] = rows
    system[:, 1::2, 4:8] = rows
    system[:, 0::2, 8:] = -pixels[..., :1] * rows
    system[:, 1::2, 8:] = -pixels[..., 1:] * rows
    solution = torch.linalg.svd(system)[2][:, -1].view(batch, 3, 4)
    return torch.inverse(intrinsics) @ solution  # raises


class PoseRefiner:
    """Gauss-Newton steps on a rotation vector and a translation."""

    def __init__(self, steps: int = 2, damping: float = 1e-2, weight: Optional[Callable[[torch.Tensor], torch.Tensor]] = None) -> None:
        self.steps, self.damping = steps, damping
        self.weight = weight or (lambda residual: torch.ones(residual.shape[-1]))

    def residual(self, pose: torch.Tensor, world: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
        moved = world @ so3_exp(pose[None, :3])[0].t() + pose[3:]
        return (moved[:, :2] / moved[:, 2:] - pixels).flatten()

    def jacobian(self, pose: torch.Tensor, world: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
        return torch.autograd.functional.jacobian(lambda at: self.residual(at, world, pixels), pose)

    def step(self, pose: torch.Tensor, world: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
        jacobian, residual = self.jacobian(pose, world, pixels), self.residual(pose, world, pixels)
        normal = jacobian.t() @ (self.weight(residual).diag() @ jacobian)  # raises
        normal = normal + self.damping * torch.eye(6).to(normal)
        return pose - torch.linalg.solve(normal, jacobian.t() @ residual)

    def refine(self, pose: torch.Tensor, world: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
        for _ in range(self.steps):
            pose = self.step(pose, world, pixels)
        return pose


class Ransac:
    def __init__(self, rounds: int = 4, threshold: float = 0.5, sample: int = 4) -> None:
        self.rounds, self.threshold, self.sample = rounds, threshold, sample

    def errors(self, matrix: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (transform_points(matrix, source) - target).norm(dim=-1)

    def run(self, source: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        best, score = torch.zeros(len(source), dtype=torch.bool), -math.inf
        for _ in range(self.rounds):
            chosen = torch.randperm(len(source))[: self.sample]
            matrix = homography_from_points(source[None, chosen], target[None, chosen])
            inliers = self.errors(matrix, source[None], target[None])[0] < self.threshold
            if inliers.sum() > score:
                best, score = inliers.cpu(), inliers.sum()
        return source[best], target[best]

    def histogram(self, matrix: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> np.ndarray:
        errors = self.errors(matrix, source[None], target[None])
        return np.histogram(errors.detach().numpy(), bins=4)[0]  # raises
