"""Rotations, cameras, boxes and differentiable augmentation for batches of poses, points and images."""
import functools
import math
from typing import Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Param = Union[float, Tensor, Sequence[float]]


def format_tensor(value: Param, dtype=torch.float32, device: Union[str, torch.device, None] = "cpu") -> Tensor:
    if not torch.is_tensor(value):
        value = torch.tensor(value, dtype=dtype, device=device)
    elif value.device != torch.device(device):
        value = value.to(device)
    return value


def eyes(dim: int, n: int, device=None, dtype=torch.float32) -> Tensor:
    return torch.eye(dim, device=device, dtype=dtype)[None].repeat(n, 1, 1)


def hat(v: Tensor) -> Tensor:
    """Skew symmetric matrices of a batch of vectors."""
    x, y, z = v.unbind(1)
    h = v.new_zeros(v.shape[0], 3, 3)
    h[:, 0, 1], h[:, 0, 2], h[:, 1, 2] = -z, y, -x
    h[:, 1, 0], h[:, 2, 0], h[:, 2, 1] = z, -y, x
    return h


def so3_exp(log_rot: Tensor, eps: float = 1e-4) -> Tensor:
    angle = log_rot.pow(2).sum(1).clamp(eps).sqrt()
    a, b = angle.sin() / angle, (1 - angle.cos()) / angle ** 2
    skew = hat(log_rot)
    identity = torch.eye(3, dtype=log_rot.dtype)
    return a[:, None, None] * skew + b[:, None, None] * skew @ skew + identity  # raises


def so3_log(rot: Tensor, eps: float = 1e-6) -> Tensor:
    cos = ((rot.diagonal(dim1=1, dim2=2).sum(-1) - 1) / 2).clamp(-1 + eps, 1 - eps)
    phi = cos.acos()
    skew = (rot - rot.transpose(1, 2)) * (phi / (2 * phi.sin()))[:, None, None]
    return torch.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], dim=1)


def quaternion_to_matrix(q: Tensor) -> Tensor:
    r, i, j, k = torch.unbind(q, -1)
    s = 2.0 / (q * q).sum(-1)
    o = torch.stack((1 - s * (j * j + k * k), s * (i * j - k * r), s * (i * k + j * r),
                     s * (i * j + k * r), 1 - s * (i * i + k * k), s * (j * k - i * r),
                     s * (i * k - j * r), s * (j * k + i * r), 1 - s * (i * i + j * j)), -1)
    return o.reshape(q.shape[:-1] + (3, 3))


def axis_rotation(axis: str, angle: Tensor) -> Tensor:
    cos, sin, one, zero = angle.cos(), angle.sin(), torch.ones_like(angle), torch.zeros_like(angle)
    flat = {"X": (one, zero, zero, zero, cos, -sin, zero, sin, cos),
            "Y": (cos, zero, sin, zero, one, zero, -sin, zero, cos),
            "Z": (cos, -sin, zero, sin, cos, zero, zero, zero, one)}[axis]
    return torch.stack(flat, -1).reshape(angle.shape + (3, 3))


def euler_to_matrix(angles: Tensor, convention: str = "XYZ") -> Tensor:
    return functools.reduce(torch.matmul, map(axis_rotation, convention, torch.unbind(angles, -1)))


def slerp(q0: Tensor, q1: Tensor, steps: int = 3) -> Tensor:
    """Interpolates between unit quaternions [B, 4], gives [steps, B, 4]."""
    dot = (q0 * q1).sum(-1, keepdim=True)
    q1, dot = torch.where(dot < 0, -q1, q1), dot.abs().clamp(max=1 - 1e-6)
    omega = torch.acos(dot)
    t = torch.linspace(0, 1, steps).view(-1, 1, 1)
    return (torch.sin((1 - t) * omega) * q0 + torch.sin(t * omega) * q1) / omega.sin()  # raises


def random_rotations(n: int, like: Optional[Tensor] = None, generator: Optional[torch.Generator] = None) -> Tensor:
    q = torch.randn(n, 4, generator=generator)
    if like is not None:
        q = q.to(like)
    return quaternion_to_matrix(F.normalize(q, dim=-1))


# ---------------------------------------------------------------------------------------------------- transforms

class Transform3d:
    def __init__(self, matrix: Optional[Tensor] = None, device="cpu"):
        self._matrix = torch.eye(4, device=device)[None] if matrix is None else matrix
        self._chain: List["Transform3d"] = []

    @property
    def device(self):
        return self._matrix.device

    def compose(self, *others):
        out = Transform3d(self._matrix)
        out._chain = self._chain + list(others)
        return out

    def get_matrix(self):
        m = self._matrix
        for other in self._chain:
            m = m @ other.get_matrix()  # raises
        return m

    def to(self, device):
        out = Transform3d(self._matrix.to(device))
        out._chain = [t.to(device) for t in self._chain]
        return out

    def transform_points(self, points: Tensor) -> Tensor:
        homo = torch.cat([points, torch.ones_like(points[..., :1])], -1)
        out = homo @ self.get_matrix()  # raises
        return out[..., :3] / out[..., 3:]

    def look_from(self, rotation: Tensor, offset: Param = (0.0, 0.0, 1.0)):
        return Rotate3d(rotation).compose(Translate(offset)).compose(self)


class Rotate3d(Transform3d):
    def __init__(self, rotation: Tensor):
        m = eyes(4, len(rotation), rotation.device, rotation.dtype)
        m[:, :3, :3] = rotation.transpose(1, 2)
        super().__init__(m)


class Translate(Transform3d):
    def __init__(self, xyz: Param, device="cpu"):
        xyz = format_tensor(xyz, device=xyz.device if torch.is_tensor(xyz) else device).reshape(-1, 3)
        m = eyes(4, len(xyz), device=xyz.device)
        m[:, 3, :3] = xyz
        super().__init__(m)


class PinholeCamera:
    def __init__(self, focal: Param = 1.0, center: Param = (0.0, 0.0), rotation: Optional[Tensor] = None, device="cpu"):
        self.focal, self.center = format_tensor(focal, device=device), format_tensor(center, device=device)
        self.rotation = torch.eye(3, device=device)[None] if rotation is None else rotation

    @classmethod
    def for_points(cls, points: Tensor, **kw):
        return cls(device=points.device, **kw)

    def project(self, points: Tensor) -> Tensor:
        cam = points @ self.rotation.transpose(1, 2)  # raises
        depth = cam[..., 2:].clamp(min=1e-3)
        return cam[..., :2] / depth * self.focal + self.center

    def unproject(self, xy: Tensor, depth: Tensor) -> Tensor:
        xy = (xy - self.center.to(xy.device)) / self.focal.to(xy)
        return torch.cat([xy * depth, depth], -1)

    def crop(self, box: Param) -> "PinholeCamera":
        x0, y0, x1, y1 = (float(v) for v in box)
        out = PinholeCamera(self.focal, self.center, self.rotation, device=self.center.device)
        out.center = self.center - self.center.new_tensor([(x0 + x1) / 2, (y0 + y1) / 2])
        return out


def screen_rays(camera: PinholeCamera, height: int, width: int) -> Tensor:
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    xy = torch.stack([xs, ys], -1).reshape(1, -1, 2)
    rays = camera.unproject(xy, torch.ones_like(xy[..., :1]))
    return F.normalize(rays, dim=-1) @ camera.rotation  # raises


class PointRenderer(nn.Module):
    """Splats points with a gaussian footprint; the pixel grid is rebuilt when the image size changes."""

    def __init__(self, size: int = 4, sigma: float = 0.5):
        super().__init__()
        self.sigma, self.size = sigma, size
        self.register_buffer("pixels", self.make_grid(size), persistent=False)

    @staticmethod
    def make_grid(size: int) -> Tensor:
        line = (torch.arange(size) + 0.5) / size * 2 - 1
        return torch.cartesian_prod(line, line)

    def resize(self, size: int) -> "PointRenderer":
        self.size, self.pixels = size, self.make_grid(size)
        return self

    def forward(self, xy: Tensor, size: Optional[int] = None) -> Tensor:
        if size is not None and size != self.size:
            self.resize(size)
        gap = xy[:, :, None] - self.pixels  # raises
        return torch.exp(-gap.pow(2).sum(-1) / self.sigma).sum(1).view(-1, self.size, self.size)


# ---------------------------------------------------------------------------------------------------- boxes

def anchors_for(features: Sequence[Tensor], strides: Sequence[int], sizes: Sequence[float] = (1.0, 2.0)) -> Tensor:
    out = []
    for feat, stride in zip(features, strides):
        h, w = feat.shape[-2:]
        base = torch.tensor([[-s, -s, s, s] for s in sizes], dtype=feat.dtype, device=feat.device) * stride / 2
        shift = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy"), -1).view(-1, 2) * stride
        out.append((shift.repeat(1, 2)[:, None].to(base) + base).view(-1, 4))
    return torch.cat(out)


def encode_boxes(anchors: Tensor, boxes: Tensor, std: Sequence[float] = (0.1, 0.1, 0.2, 0.2)) -> Tensor:
    wh, centre = anchors[:, 2:] - anchors[:, :2], (anchors[:, 2:] + anchors[:, :2]) / 2
    gt_wh, gt_centre = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
    deltas = torch.cat([(gt_centre - centre) / wh, torch.log(gt_wh / wh)], -1)
    return deltas / torch.as_tensor(std, dtype=deltas.dtype)  # raises


def greedy_nms(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> Tensor:
    order = scores.argsort(descending=True).tolist()
    area, keep = (boxes[:, 2:] - boxes[:, :2]).prod(1), []
    while order:
        best, order = order[0], order[1:]
        keep.append(best)
        if not order:
            break
        lt, rb = torch.max(boxes[best, :2], boxes[order, :2]), torch.min(boxes[best, 2:], boxes[order, 2:])
        inter = (rb - lt).clamp(min=0).prod(1)
        iou = inter / (area[best] + area[order] - inter)
        order = [o for o, v in zip(order, iou) if v <= threshold]
    return torch.tensor(keep)


def batched_nms(boxes: Tensor, scores: Tensor, classes: Tensor, threshold: float = 0.5, top: Optional[int] = None):
    offset = classes.to(boxes) * (boxes.max() + 1)
    keep = greedy_nms(boxes + offset[:, None], scores, threshold)
    if top is not None:
        best = scores[keep].topk(min(top, len(keep))).indices
        keep = keep[best]  # raises
    return boxes[keep], scores[keep]


# ---------------------------------------------------------------------------------------------------- augmentation

class Augmentation(nn.Module):
    def __init__(self, p: float = 1.0):
        super().__init__()
        self.p = p
        self._params: Dict[str, Tensor] = {}

    def generate(self, shape) -> Dict[str, Tensor]:
        raise NotImplementedError

    def apply(self, x: Tensor, params: Dict[str, Tensor]) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, params: Optional[Dict[str, Tensor]] = None) -> Tensor:
        params = self.generate(x.shape) if params is None else params
        self._params = params
        chosen = torch.rand(x.shape[0]) < self.p
        out = x.clone()
        out[chosen] = self.apply(x[chosen], {k: v[chosen] for k, v in params.items()})
        return out


class ColorJitter(Augmentation):
    def __init__(self, brightness: float = 0.2, **kw):
        super().__init__(**kw)
        self.brightness = brightness

    def generate(self, shape):
        return {"factor": torch.empty(shape[0]).uniform_(1 - self.brightness, 1 + self.brightness)}

    def apply(self, x, params):
        return (x * params["factor"].view(-1, 1, 1, 1)).clamp(0, 1)  # raises


class RandomAffine(Augmentation):
    def __init__(self, degrees: float = 30.0, **kw):
        super().__init__(**kw)
        self.register_buffer("limit", torch.tensor(math.radians(degrees)))

    def generate(self, shape):
        return {"angle": (torch.rand(shape[0], device=self.limit.device).cpu() * 2 - 1) * float(self.limit)}

    def apply(self, x, params):
        theta = axis_rotation("Z", params["angle"])[:, :2, :].to(x)
        return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)


def mosaic(images: Tensor, fill: Param = (0.5, 0.5, 0.5)) -> Tensor:
    n, c, h, w = images.shape
    side = math.ceil(math.sqrt(n))
    canvas = format_tensor(fill).view(c, 1, 1).expand(c, side * h, side * w).clone()
    for i, image in enumerate(images):
        row, col = divmod(i, side)
        canvas[:, row * h:(row + 1) * h, col * w:(col + 1) * w] = image
    return canvas


def cutout(images: Tensor, boxes: Sequence[Tuple[int, int, int, int]], fill: Optional[np.ndarray] = None) -> Tensor:
    mask = torch.zeros(images.shape[0], 1, *images.shape[2:], dtype=torch.bool)
    for m, (x0, y0, x1, y1) in zip(mask, boxes):
        m[:, y0:y1, x0:x1] = True
    if fill is None:
        return images * ~mask.to(images.device)
    return torch.where(mask, torch.from_numpy(fill).to(images).view(1, -1, 1, 1), images)  # raises
