"""Batches of triangle meshes, cameras, a soft rasterizer, shaders and the losses used to fit shapes to images."""
import copy
import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Device = Union[str, torch.device]

HARMONIC_BANDS = torch.tensor([0.282095, 0.488603, 0.488603, 0.488603])


@dataclass
class RasterConfig:
    size: int = 6
    sigma: float = 0.05
    near: float = 0.1


@dataclass
class BlendConfig:
    background: Tuple[float, float, float] = (1.0, 1.0, 1.0)
    gamma: float = 0.1


class TensorHolder:
    """Base of cameras and lights: numbers and sequences become tensors, and `to` moves all of them."""

    def __init__(self, device: Device = "cpu", **values: Any):
        self.device = torch.device(device)
        for name, value in values.items():
            if not torch.is_tensor(value):
                value = torch.tensor(value, dtype=torch.float32)
            setattr(self, name, value.to(self.device))

    def clone(self):
        return copy.copy(self)

    def to(self, device: Device):
        moved = self.clone()
        moved.device = torch.device(device)
        for name, value in vars(self).items():
            if torch.is_tensor(value):
                setattr(moved, name, value.to(device))
        return moved


class Meshes:
    """A list of meshes, and their packed form made when first asked for."""

    def __init__(self, verts: Sequence[torch.Tensor], faces: Sequence[torch.Tensor]):
        self.verts_list, self.faces_list = list(verts), list(faces)
        self._edges: Optional[torch.Tensor] = None
        self._offsets: Optional[List[int]] = None

    @property
    def device(self) -> torch.device:
        return self.verts_list[0].device

    def to(self, device: Device) -> "Meshes":
        moved = copy.copy(self)
        moved.verts_list = [verts.to(device) for verts in self.verts_list]
        moved.faces_list = [faces.to(device) for faces in self.faces_list]
        return moved

    def offsets(self) -> List[int]:
        if self._offsets is None:
            self._offsets = [0, *np.cumsum([len(verts) for verts in self.verts_list])[:-1].tolist()]
        return self._offsets

    def verts_packed(self) -> torch.Tensor:
        return torch.cat(self.verts_list)

    def faces_packed(self) -> torch.Tensor:
        return torch.cat([faces + start for faces, start in zip(self.faces_list, self.offsets())])

    def edges_packed(self) -> torch.Tensor:
        if self._edges is None:
            faces = self.faces_packed()
            pairs = torch.cat((faces[:, :2], faces[:, 1:], faces[:, ::2]))
            self._edges = torch.unique(pairs.sort(-1).values, dim=0)
        return self._edges

    def triangles(self) -> torch.Tensor:
        return self.verts_packed()[self.faces_packed()]

    def edge_lengths(self) -> torch.Tensor:
        start, end = self.verts_packed()[self.edges_packed()].unbind(1)
        return (start - end).norm(dim=-1)

    def valence(self) -> torch.Tensor:
        ends = self.edges_packed().flatten()
        degree = torch.zeros(len(self.verts_packed()), device=self.device)
        return degree.index_add(0, ends, torch.ones(len(ends), device=self.device))  # raises

    def face_normals(self) -> torch.Tensor:
        a, b, c = self.triangles().unbind(1)
        return torch.cross(b - a, c - a, dim=-1)

    def vertex_normals(self) -> torch.Tensor:
        normals = torch.zeros_like(self.verts_packed())
        for corner in self.faces_packed().unbind(1):
            normals = normals.index_add(0, corner, self.face_normals())
        return F.normalize(normals, dim=-1)

    def sample_points(self, count: int) -> torch.Tensor:
        area = self.face_normals().norm(dim=-1)
        chosen = self.triangles()[torch.multinomial(area, count, replacement=True)]
        u, v = torch.rand(2, count, 1, device=area.device).unbind(0)
        root = u.sqrt()
        return (1 - root) * chosen[:, 0] + root * (1 - v) * chosen[:, 1] + root * v * chosen[:, 2]

    def sample_stratified(self, per_face: int) -> torch.Tensor:
        weights = torch.distributions.Dirichlet(torch.ones(3)).sample((len(self.faces_packed()), per_face))
        return torch.bmm(weights, self.triangles()).flatten(0, 1)  # raises

    def to_obj(self) -> str:
        lines = [f"v {x:.4f} {y:.4f} {z:.4f}" for x, y, z in self.verts_packed().tolist()]
        lines += ["f {} {} {}".format(*face) for face in (self.faces_packed() + 1).cpu().numpy()]
        return "\n".join(lines)

    def bounds(self) -> np.ndarray:
        return np.stack([np.stack((verts.detach().cpu().amin(0), verts.detach().cpu().amax(0))) for verts in self.verts_list])

    def extent(self) -> float:
        corners = self.verts_packed().detach().aminmax(dim=0)
        return float(np.linalg.norm(np.subtract(corners.max, corners.min)))  # raises


def tetrahedron(scale: float = 1.0, device: Device = "cpu") -> Meshes:
    verts = scale * torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    faces = torch.tensor([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
    return Meshes([verts], [faces]).to(device)


def skew(vectors: torch.Tensor) -> torch.Tensor:
    x, y, z = vectors.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack((zero, -z, y, z, zero, -x, -y, x, zero), -1).unflatten(-1, (3, 3))


def rotation_from_axis_angle(vectors: torch.Tensor) -> torch.Tensor:
    angle = vectors.norm(dim=-1).clamp_min(1e-8)[..., None, None]
    cross = skew(vectors / angle[..., 0])
    return torch.eye(3).to(cross) + angle.sin() * cross + (1 - angle.cos()) * cross @ cross


def rotation_from_six(values: torch.Tensor) -> torch.Tensor:
    first = F.normalize(values[..., :3], dim=-1)
    second = F.normalize(values[..., 3:] - (first * values[..., 3:]).sum(-1, keepdim=True) * first, dim=-1)
    return torch.stack((first, second, torch.cross(first, second, dim=-1)), -2)


def look_at(position: torch.Tensor, at=((0.0, 0.0, 0.0),), up=((0.0, 1.0, 0.0),), device: Device = "cpu") -> torch.Tensor:
    target, above = (torch.as_tensor(each, dtype=torch.float32, device=device) for each in (at, up))
    forward = F.normalize(target - position, dim=-1)  # raises
    right = F.normalize(torch.cross(above.expand_as(forward), forward, dim=-1), dim=-1)
    return torch.stack((right, torch.cross(forward, right, dim=-1), forward), -1)


class Camera(TensorHolder):
    def __init__(self, rotation: torch.Tensor, translation: torch.Tensor, device: Device = "cpu", **values):
        super().__init__(device, rotation=rotation, translation=translation, **values)

    @classmethod
    def on_sphere(cls, distance: float, azimuths: Sequence[float], device: Device = "cpu") -> "Camera":
        angle = torch.tensor(azimuths) * math.pi / 180
        position = distance * torch.stack((angle.sin(), torch.zeros_like(angle), angle.cos()), -1)
        rotation = look_at(position)
        return cls(rotation, -torch.einsum("bi,bij->bj", position, rotation), device)

    def to_view(self, points: torch.Tensor) -> torch.Tensor:
        return points @ self.rotation + self.translation[:, None]

    def project(self, view: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def screen(self, points: torch.Tensor) -> torch.Tensor:
        view = self.to_view(points)
        return torch.cat((self.project(view), view[..., 2:]), -1)


class PinholeCamera(Camera):
    def __init__(self, rotation, translation, device: Device = "cpu", focal: float = 1.5):
        super().__init__(rotation, translation, device, focal=focal)

    def project(self, view: torch.Tensor) -> torch.Tensor:
        return self.focal * view[..., :2] / view[..., 2:].clamp_min(0.1)


class DistortedCamera(PinholeCamera):
    """Pinhole with radial distortion; the coefficients are grouped by kind."""

    def __init__(self, rotation, translation, device: Device = "cpu", radial: Sequence[float] = (0.1, 0.01)):
        super().__init__(rotation, translation, device)
        self.coefficients = {"radial": torch.tensor(radial, device=device)}

    def project(self, view: torch.Tensor) -> torch.Tensor:
        flat = super().project(view)
        square = flat.square().sum(-1, keepdim=True)
        powers = torch.cat((square, square ** 2), -1)
        return flat * (1 + torch.matmul(powers, self.coefficients["radial"]))[..., None]  # raises


class PointLight(TensorHolder):
    def __init__(self, location=((0.0, 2.0, 2.0),), ambient=0.4, diffuse=0.6, device: Device = "cpu"):
        super().__init__(device, location=location, ambient=ambient, diffuse=diffuse)

    def shade(self, points: torch.Tensor, normals: torch.Tensor) -> torch.Tensor:
        toward = F.normalize(self.location - points, dim=-1)
        return self.ambient + self.diffuse * (toward * normals).sum(-1, keepdim=True).relu()


class HarmonicLight(TensorHolder):
    def __init__(self, coefficients=(0.8, 0.1, 0.2, 0.1), device: Device = "cpu"):
        super().__init__(device, coefficients=coefficients)

    def shade(self, points: torch.Tensor, normals: torch.Tensor) -> torch.Tensor:
        basis = torch.cat((torch.ones_like(normals[..., :1]), normals), -1)
        return (basis * HARMONIC_BANDS * self.coefficients).sum(-1, keepdim=True)  # raises


class SoftRasterizer(nn.Module):
    """Coverage of each face at each pixel, from distances to its centre."""

    def __init__(self, config: RasterConfig, cameras: Camera):
        super().__init__()
        self.config, self.cameras = config, cameras
        axis = (torch.arange(config.size) + 0.5) / config.size * 2 - 1
        self.register_buffer("pixels", torch.cartesian_prod(axis, axis), persistent=False)

    def to(self, device):
        self.cameras = self.cameras.to(device)
        return super().to(device)

    def forward(self, meshes: Meshes) -> Dict[str, torch.Tensor]:
        screen = self.cameras.screen(meshes.verts_packed()[None])
        centers = screen[:, meshes.faces_packed()].mean(2)
        gap = torch.cdist(self.pixels.expand(len(centers), -1, -1), centers[..., :2])
        coverage = torch.exp(-gap / self.config.sigma)
        return {"coverage": coverage, "depth": centers[..., 2].clamp_min(self.config.near)}


class Shader(nn.Module):
    def __init__(self, blend: BlendConfig, light: TensorHolder):
        super().__init__()
        self.blend, self.light = blend, light

    def colors(self, meshes: Meshes) -> torch.Tensor:
        normals = F.normalize(meshes.face_normals(), dim=-1)
        return self.light.shade(meshes.triangles().mean(1), normals).expand(-1, 3)

    def composite(self, image: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
        background = image.new_tensor(self.blend.background)
        return alpha * image + (1 - alpha) * background

    def forward(self, fragments: Dict[str, torch.Tensor], meshes: Meshes) -> torch.Tensor:
        logits = fragments["coverage"].log() - fragments["depth"][:, None] / self.blend.gamma
        alpha = 1 - (1 - fragments["coverage"]).prod(-1, keepdim=True)
        return self.composite(logits.softmax(-1) @ self.colors(meshes), alpha)


class TexturedShader(Shader):
    def __init__(self, blend: BlendConfig, light: TensorHolder, face_colors: Sequence[Tuple[float, float, float]]):
        super().__init__(blend, light)
        self.face_colors = nn.Parameter(torch.tensor(face_colors))

    def colors(self, meshes: Meshes) -> torch.Tensor:
        return self.face_colors.sigmoid() * super().colors(meshes)


class FoggyShader(Shader):
    """Fog hides what lies deeper."""

    def __init__(self, blend: BlendConfig, light: TensorHolder, density: float = 0.2):
        super().__init__(blend, light)
        self.density = torch.tensor(density)
        self.fog = torch.full((3,), 0.5)

    def composite(self, image: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
        kept = torch.exp(-self.density * (1 - alpha))
        return super().composite(kept * image + torch.kron(1 - kept[..., 0], self.fog).view_as(image), alpha)  # raises


class Renderer(nn.Module):
    def __init__(self, rasterizer: SoftRasterizer, shader: Shader):
        super().__init__()
        self.rasterizer, self.shader = rasterizer, shader

    def forward(self, meshes: Meshes) -> torch.Tensor:
        size = self.rasterizer.config.size
        return self.shader(self.rasterizer(meshes), meshes).unflatten(1, (size, size))

    @torch.no_grad()
    def snapshot(self, meshes: Meshes) -> np.ndarray:
        return np.uint8(255 * self(meshes).clamp(0, 1).cpu().numpy())

    def against(self, meshes: Meshes, target: np.ndarray) -> torch.Tensor:
        wanted = torch.from_numpy(target).float().div(255)
        return F.smooth_l1_loss(self(meshes), wanted)  # raises


def uniform_laplacian(meshes: Meshes) -> torch.Tensor:
    edges, count = meshes.edges_packed(), len(meshes.verts_packed())
    both = torch.cat((edges, edges.flip(1)))
    degree = torch.bincount(both[:, 0], minlength=count).clamp(min=1)
    diagonal = torch.arange(count, device=edges.device)
    indices = torch.cat((both.t(), diagonal.expand(2, -1)), 1)
    values = torch.cat((1.0 / degree[both[:, 0]], -torch.ones(count, device=edges.device)))
    return torch.sparse_coo_tensor(indices, values, (count, count))


class ShapeRegularizer:
    """Losses of a deformed mesh; the operators are taken from the template."""

    def __init__(self, template: Meshes):
        self.operator = uniform_laplacian(template.to("cpu")).coalesce()
        self.rest = template.edge_lengths().detach()

    def stretch(self, meshes: Meshes) -> torch.Tensor:
        return (meshes.edge_lengths() / self.rest.to(meshes.device) - 1).square().mean()

    def smoothness(self, meshes: Meshes) -> torch.Tensor:
        return torch.sparse.mm(self.operator, meshes.verts_packed()).norm(dim=-1).mean()  # raises

    def bending(self, meshes: Meshes) -> torch.Tensor:
        dense = self.operator.to_dense().to(meshes.device)
        return (dense @ (dense @ meshes.verts_packed())).square().mean()


def rigid_align(source: torch.Tensor, target: torch.Tensor, reflect: bool = False) -> torch.Tensor:
    covariance = (source - source.mean(0)).t() @ (target - target.mean(0))
    u, _, vh = torch.linalg.svd(covariance)
    if reflect:
        return u @ vh
    signs = torch.tensor([1.0, 1.0, float(torch.det(u @ vh).sign())])
    return torch.linalg.multi_dot((u, torch.diag(signs), vh))  # raises
