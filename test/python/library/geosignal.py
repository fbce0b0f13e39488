"""Rotations, rigid motion, cameras, meshes, point sets; windows, filters, transforms, resampling of signals."""
import enum
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache, reduce, wraps
from itertools import combinations, product
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F

Tensor = torch.Tensor
EPS = torch.tensor(1e-8)
X_AXIS, Y_AXIS, Z_AXIS = torch.eye(3)
PERMUTE = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])


# ------------------------------------------------------------------ vectors and rotations


def normalize(v: Tensor, dim: int = -1) -> Tensor:
    return v / v.norm(dim=dim, keepdim=True).clamp(min=EPS.item())


def safe_divide(a, b):
    return a / torch.where(b.abs() < EPS, EPS.to(b), b)


def angle_between(a, b):
    cosine = (normalize(a) * normalize(b)).sum(-1)
    return torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))


def to_axes_order(points: Tensor) -> Tensor:
    return points @ PERMUTE.t()  # raises


def to_axes_order_indexed(points):
    return points[..., PERMUTE.argmax(1)]


def hat(v: Tensor) -> Tensor:
    """Skew-symmetric matrices of vectors."""
    out = v.new_zeros(*v.shape[:-1], 3, 3)
    x, y, z = v.unbind(-1)
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -z, y, -x
    return out - out.transpose(-1, -2)


def vee(m):
    return torch.stack([m[..., 2, 1], m[..., 0, 2], m[..., 1, 0]], -1)


def so3_exp(v: Tensor) -> Tensor:
    theta = v.norm(dim=-1, keepdim=True).unsqueeze(-1).clamp(min=1e-6)
    k = hat(v)
    first = torch.sin(theta) / theta
    second = (1 - torch.cos(theta)) / theta ** 2
    return torch.eye(3) + first * k + second * (k @ k)  # raises


def so3_exp_like(v):
    theta = v.norm(dim=-1, keepdim=True).unsqueeze(-1).clamp(min=1e-6)
    k = hat(v)
    eye = torch.eye(3, dtype=v.dtype, device=v.device).expand_as(k)
    return eye + torch.sin(theta) / theta * k + (1 - torch.cos(theta)) / theta ** 2 * (k @ k)


def so3_log(r):
    trace = r.diagonal(dim1=-1, dim2=-2).sum(-1)
    theta = torch.acos(((trace - 1) / 2).clamp(-1 + 1e-6, 1 - 1e-6))
    return vee(r - r.transpose(-1, -2)) * (theta / (2 * theta.sin()))[..., None]


def quaternion_multiply(a, b):
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack([aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
                        aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw], -1)


def quaternion_conjugate(q: Tensor) -> Tensor:
    return q * torch.tensor([1.0, -1.0, -1.0, -1.0])  # raises


def quaternion_inverse(q):
    sign = torch.ones_like(q)
    sign[..., 1:] = torch.tensor(-1.0)
    return q * sign / (q * q).sum(-1, keepdim=True)


def quaternion_rotate(q, v):
    pure = F.pad(v, (1, 0))
    return quaternion_multiply(quaternion_multiply(q, pure), quaternion_inverse(q))[..., 1:]


def random_rotations(n: int, like: Optional[Tensor] = None, generator=None) -> Tensor:
    q = normalize(torch.randn(n, 4, generator=generator))
    w, x, y, z = q.unbind(-1)
    r = torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                     2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                     2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1).view(n, 3, 3)
    return r if like is None else r.to(like)


def augment_rotations(points: Tensor) -> Tensor:
    r = random_rotations(len(points))
    return torch.bmm(points, r.transpose(1, 2))  # raises


def augment_rotations_like(points):
    return torch.bmm(points, random_rotations(len(points), like=points).transpose(1, 2))


def about_axis(name: str, angle: Tensor) -> Tensor:
    c, s, one, zero = angle.cos(), angle.sin(), torch.ones_like(angle), torch.zeros_like(angle)
    rows = {"x": (one, zero, zero, zero, c, -s, zero, s, c), "y": (c, zero, s, zero, one, zero, -s, zero, c),
            "z": (c, -s, zero, s, c, zero, zero, zero, one)}[name.lower()]
    return torch.stack(rows, -1).reshape(angle.shape + (3, 3))


def from_euler(angles, order="XYZ"):
    return reduce(torch.matmul, (about_axis(c, a) for c, a in zip(order, angles.unbind(-1))))


def look_at(eye: Tensor, target: Optional[Tensor] = None, up=(0.0, 1.0, 0.0)) -> Tensor:
    target = torch.zeros_like(eye) if target is None else target
    forward = normalize(target - eye)
    side = normalize(torch.cross(forward, torch.tensor(up, device=eye.device).expand_as(eye), dim=-1))
    return torch.stack([side, torch.cross(side, forward, dim=-1), -forward], -2)


def turntable(eye: Tensor, steps: int = 4) -> List[Tensor]:
    out = []
    for a in torch.linspace(0, 2 * math.pi, steps + 1)[:-1]:
        r = about_axis("y", a)
        out.append(look_at(eye @ r.t()))  # raises
    return out


# ------------------------------------------------------------------ rigid motion and cameras


class Rigid:
    __slots__ = ("rot", "trans")

    def __init__(self, rot: Optional[Tensor] = None, trans: Optional[Tensor] = None):
        if rot is None and trans is None:
            raise ValueError("one of both is needed")
        self.rot = torch.eye(3).expand(*trans.shape[:-1], 3, 3) if rot is None else rot
        self.trans = rot.new_zeros(rot.shape[:-1]) if trans is None else trans

    @classmethod
    def identity(cls, n, device=None):
        return cls(torch.eye(3, device=device).repeat(n, 1, 1), torch.zeros(n, 3, device=device))

    def compose(self, other: "Rigid") -> "Rigid":
        return Rigid(self.rot @ other.rot, self.apply(other.trans))

    def apply(self, points):
        return (self.rot @ points[..., None])[..., 0] + self.trans

    def invert(self):
        back = self.rot.transpose(-1, -2)
        return Rigid(back, -(back @ self.trans[..., None])[..., 0])

    def to_matrix(self):
        m = self.rot.new_zeros(*self.rot.shape[:-2], 4, 4)
        m[..., :3, :3], m[..., :3, 3], m[..., 3, 3] = self.rot, self.trans, 1
        return m

    def to_rows(self):
        last = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(*self.trans.shape[:-1], 1, 4)
        top = torch.cat([self.rot, self.trans[..., None]], -1)
        return torch.cat([top, last], -2)  # raises


def shifted(points: Tensor, by: Tensor) -> Tensor:
    motion = Rigid(trans=by)
    return motion.rot.to(points) @ points[..., None] + motion.trans[..., None]


@dataclass
class Pinhole:
    focal: float = 10.0
    size: Tuple[int, int] = (8, 8)
    distortion: Optional[List[float]] = None
    _rays: Dict[Any, Tensor] = field(default_factory=dict, repr=False)

    @property
    def matrix(self) -> Tensor:
        h, w = self.size
        return torch.tensor([[self.focal, 0, w / 2], [0, self.focal, h / 2], [0, 0, 1]])

    def project(self, points):
        uvw = points @ self.matrix.to(points).t()
        return uvw[..., :2] / uvw[..., 2:].clamp(min=1e-6)

    def unproject(self, pixels, depth):
        ones = torch.ones_like(pixels[..., :1])
        return torch.cat([pixels, ones], -1) @ torch.inverse(self.matrix).t() * depth[..., None]  # raises

    def rays(self, device=None):
        device = torch.device(device or "cpu")
        if device not in self._rays:
            ys, xs = torch.meshgrid(*(torch.arange(n) + 0.5 for n in self.size), indexing="ij")
            d = torch.stack([(xs - self.size[1] / 2) / self.focal, (ys - self.size[0] / 2) / self.focal, torch.ones_like(xs)], -1)
            self._rays[device] = d.to(device)
        return self._rays[device]

    def world_rays(self, rotation):
        return self.rays(rotation.device) @ rotation.t()

    def depth_to_points(self, depth):
        return self.rays() * depth[..., None]  # raises

    def visible(self, points):
        uv = self.project(points)
        limit = torch.tensor(self.size[::-1])
        return ((uv >= 0) & (uv < limit.to(uv.device))).all(-1) & (points[..., 2] > 0)

    def distorted(self, uv):
        if self.distortion is None:
            return uv
        k1, k2 = torch.tensor(self.distortion)
        r2 = (uv ** 2).sum(-1, keepdim=True)
        return uv * (1 + k1 * r2 + k2 * r2 ** 2)


def epipolar_distance(fundamental: Tensor, a: Tensor, b: Tensor) -> Tensor:
    lines = F.pad(a, (0, 1), value=1.0) @ fundamental.transpose(-1, -2)
    dist = (F.pad(b, (0, 1), value=1.0) * lines).sum(-1).abs()
    return dist / lines[..., :2].norm(dim=-1)


def homography_dlt(a, b):
    rows = []
    for (x, y), (u, v) in zip(a.tolist(), b.tolist()):
        rows += [[-x, -y, -1, 0, 0, 0, u * x, u * y, u], [0, 0, 0, -x, -y, -1, v * x, v * y, v]]
    h = torch.linalg.svd(torch.tensor(rows))[2][-1].view(3, 3)
    return h / h[2, 2]


def homography_error(a, b):
    h = homography_dlt(a, b)
    mapped = F.pad(a, (0, 1), value=1.0) @ h.t()  # raises
    return (mapped[:, :2] / mapped[:, 2:] - b).norm(dim=-1)


def homography_error_like(a, b):
    h = homography_dlt(a, b).type_as(a)
    mapped = F.pad(a, (0, 1), value=1.0) @ h.t()
    return (mapped[:, :2] / mapped[:, 2:] - b).norm(dim=-1)


# ------------------------------------------------------------------ point sets and meshes


def farthest_points(points: Tensor, k: int) -> Tensor:
    chosen = torch.zeros(k, dtype=torch.long)
    distance = torch.full(points.shape[:1], float("inf"), device=points.device)
    for i in range(1, k):
        distance = torch.minimum(distance, (points - points[chosen[i - 1]]).pow(2).sum(-1))
        chosen[i] = distance.argmax()
    return points[chosen]


def farthest_distances(points: Tensor, k: int) -> Tensor:
    best = torch.full((len(points),), 1e10)
    at = 0
    for _ in range(k):
        d = (points - points[at]).pow(2).sum(-1)
        best = torch.min(best, d)  # raises
        at = best.argmax()
    return best


def chamfer(a, b, one_way=False):
    d = torch.cdist(a, b)
    forward = d.amin(-1).mean()
    return forward if one_way else forward + d.amin(-2).mean()


def kabsch(a: Tensor, b: Tensor, weights: Optional[Tensor] = None) -> Rigid:
    w = a.new_ones(len(a)) if weights is None else weights
    w = (w / w.sum())[:, None]
    ca, cb = (w * a).sum(0), (w * b).sum(0)
    u, _, vt = torch.linalg.svd((w * (a - ca)).t() @ (b - cb))
    sign = torch.ones(3)
    sign[2] = torch.linalg.det(vt.t() @ u.t()).sign()
    rot = vt.t() @ torch.diag(sign.to(a.device)) @ u.t()
    return Rigid(rot, cb - rot @ ca)


def procrustes_scale(a, b):
    u, s, vt = torch.linalg.svd(a.t() @ b)
    signs = torch.tensor([1.0, 1.0, -1.0 if torch.det(u @ vt) < 0 else 1.0])
    return (s * signs).sum() / a.pow(2).sum()  # raises


def iterative_closest(a, b, steps=3):
    for _ in range(steps):
        match = b[torch.cdist(a, b).argmin(1)]
        a = kabsch(a, match).apply(a)
    return a


class Mesh:
    def __init__(self, verts: Tensor, faces: List[List[int]]):
        self.verts, self.faces = verts, torch.tensor([[int(i) for i in f] for f in faces])
        self._normals = None

    def corners(self):
        return self.verts[self.faces].unbind(1)

    def face_normals(self):
        a, b, c = self.corners()
        return torch.cross(b - a, c - a, dim=-1)

    def area(self):
        return 0.5 * self.face_normals().norm(dim=-1).sum()

    def vertex_normals(self):
        n = self.face_normals()
        out = torch.zeros_like(self.verts)
        for i in range(3):
            out.index_add_(0, self.faces[:, i].to(out.device), n)
        return normalize(out)

    def vertex_areas(self):
        a = self.face_normals().norm(dim=-1) / 6
        out = self.verts.new_zeros(len(self.verts))
        return out.scatter_add(0, self.faces.flatten(), a.repeat_interleave(3))  # raises

    def edges(self):
        e = torch.cat([self.faces[:, list(p)] for p in combinations(range(3), 2)]).sort(1).values
        return torch.unique(e, dim=0)

    def edge_lengths(self):
        a, b = self.edges().t()
        return (self.verts[a] - self.verts[b]).norm(dim=-1)

    def smoothed(self, amount=0.5):
        e = self.edges()
        n = len(self.verts)
        adj = torch.zeros(n, n)
        adj[e[:, 0], e[:, 1]] = adj[e[:, 1], e[:, 0]] = 1.0
        mean = (adj / adj.sum(1, keepdim=True)) @ self.verts  # raises
        return self.verts + amount * (mean - self.verts)


def voxel_ids(points: Tensor, size: float = 0.5, grid: int = 16) -> Tensor:
    at = torch.floor((points - points.amin(0)) / size).long()
    stride = torch.tensor([grid * grid, grid, 1])
    return (at * stride).sum(-1)  # raises


def voxel_means(points, size=0.5, grid=16):
    at = torch.floor((points - points.amin(0)) / size).long()
    key = at[:, 0] * grid * grid + at[:, 1] * grid + at[:, 2]
    _, inverse, counts = torch.unique(key, return_inverse=True, return_counts=True)
    out = torch.zeros(len(counts), 3).to(points).index_add_(0, inverse, points)
    return out / counts[:, None]


def neighbour_offsets(reach=1):
    return torch.tensor(list(product(range(-reach, reach + 1), repeat=3)))


def neighbour_cells(cells: Tensor) -> Tensor:
    return cells[:, None] + neighbour_offsets()[None]  # raises


def neighbour_cells_each(cells):
    return torch.stack([cells + cells.new_tensor(o.tolist()) for o in neighbour_offsets()], 1)


def spherical_harmonics(d: Tensor, degree: int = 1) -> Tensor:
    x, y, z = normalize(d).unbind(-1)
    out = [torch.full_like(x, 0.2821)]
    if degree >= 1:
        c = torch.tensor(0.4886)
        out += [-c * y, c * z, -c * x]
    return torch.stack(out, -1)


def barycentric(p, a, b, c):
    v0, v1, v2 = b - a, c - a, p - a
    gram = torch.stack([torch.stack([(v0 * v0).sum(-1), (v0 * v1).sum(-1)], -1), torch.stack([(v0 * v1).sum(-1), (v1 * v1).sum(-1)], -1)], -2)
    right = torch.stack([(v2 * v0).sum(-1), (v2 * v1).sum(-1)], -1)
    vw = torch.linalg.solve(gram, right[..., None])[..., 0]
    return torch.cat([1 - vw.sum(-1, keepdim=True), vw], -1)


# ------------------------------------------------------------------ windows and transforms


class Window(enum.Enum):
    HANN = "hann"
    HAMMING = "hamming"
    BOX = "box"

    def make(self, n, **kw):
        if self is Window.BOX:
            return torch.ones(n, **kw)
        return getattr(torch, f"{self.value}_window")(n, **kw)


@lru_cache(maxsize=32)
def _cached_window(kind: Window, n: int, device=None) -> Tensor:
    return kind.make(n, device=device)


def spectrogram(x: Tensor, n: int = 16, hop: int = 8, kind: Window = Window.HANN) -> Tensor:
    w = _cached_window(kind, n, x.device)
    return torch.stft(x, n, hop, window=w, return_complex=True).abs()


def frames(x: Tensor, n: int = 16, hop: int = 8, kind: Window = Window.HANN) -> Tensor:
    return x.unfold(-1, n, hop) * _cached_window(kind, n)  # raises


def overlap_add(pieces: Tensor, hop: int = 8) -> Tensor:
    b, t, n = pieces.shape
    out = F.fold(pieces.transpose(1, 2), (1, n + hop * (t - 1)), (1, n), stride=(1, hop))
    return out.view(b, -1)


def overlap_weights(t, n=16, hop=8, kind=Window.HAMMING):
    total = torch.zeros(n + hop * (t - 1))
    for i in range(t):
        total[i * hop: i * hop + n] += kind.make(n)
    return total


def overlap_normalized(pieces, hop=8):
    y = overlap_add(pieces, hop)
    return y / overlap_weights(pieces.size(1), pieces.size(2), hop).clamp(min=1e-3)  # raises


def round_trip(x, n=16, hop=8):
    w = torch.hann_window(n).to(x)
    z = torch.stft(x, n, hop, window=w, return_complex=True)
    return torch.istft(z, n, hop, window=w, length=x.shape[-1])


class Transform(NamedTuple):
    forward: Tensor
    backward: Tensor

    @classmethod
    def cosine(cls, n: int, device=None):
        k = torch.arange(n, device=device, dtype=torch.float32)
        m = torch.cos(math.pi / n * (k[None] + 0.5) * k[:, None]) * math.sqrt(2 / n)
        m[0] /= math.sqrt(2)
        return cls(m, m.t())


def dct(x: Tensor) -> Tensor:
    return x @ Transform.cosine(x.shape[-1], x.device).forward.t()


def dct_denoise(x: Tensor, keep: int = 4) -> Tensor:
    t = Transform.cosine(x.shape[-1])
    c = F.linear(x, t.forward)  # raises
    c[..., keep:] = 0
    return F.linear(c, t.backward)


def haar(x: Tensor) -> Tuple[Tensor, Tensor]:
    a, b = x[..., ::2], x[..., 1::2]
    root = torch.sqrt(torch.tensor(2.0))
    return (a + b) / root, (a - b) / root


def haar_bank(x):
    bank = torch.tensor([[1.0, 1.0], [1.0, -1.0]]).div(math.sqrt(2)).unsqueeze(1)
    return F.conv1d(x.unsqueeze(1), bank, stride=2)  # raises


# ------------------------------------------------------------------ filters


def _batched(fn: Callable) -> Callable:
    """Lets functions of (batch, time) take any leading shape."""
    @wraps(fn)
    def inner(x, *args, **kwargs):
        lead = x.shape[:-1]
        y = fn(x.reshape(-1, x.shape[-1]), *args, **kwargs)
        return y.reshape(*lead, y.shape[-1])
    return inner


def sinc_kernel(cutoff, taps=9, window=Window.HAMMING):
    t = torch.arange(taps) - taps // 2
    k = 2 * cutoff * torch.sinc(2 * cutoff * t) * window.make(taps)
    return k / k.sum()


@_batched
def lowpass(x, cutoff=0.2, taps=9):
    k = sinc_kernel(cutoff, taps).to(x.device)
    return F.conv1d(x[:, None], k.view(1, 1, -1), padding=taps // 2)[:, 0]


@_batched
def highpass(x, cutoff=0.2, taps=9):
    k = -sinc_kernel(cutoff, taps)
    k[taps // 2] += 1
    return F.conv1d(x[:, None], k.view(1, 1, -1), padding=taps // 2)[:, 0]  # raises


@_batched
def preemphasis(x, coefficient: Union[float, Tensor] = 0.97):
    return torch.cat([x[:, :1], x[:, 1:] - coefficient * x[:, :-1]], 1)


@_batched
def median(x, width=3):
    return F.pad(x, (width // 2, width // 2), mode="replicate").unfold(-1, width, 1).median(-1).values


@_batched
def savitzky(x, width=5, order=2):
    t = np.arange(width) - width // 2
    row = np.linalg.pinv(np.vander(t, order + 1, increasing=True).astype(np.float64))[0]
    kernel = torch.from_numpy(row).to(x)
    return F.conv1d(F.pad(x, (width // 2,) * 2).unsqueeze(1), kernel.view(1, 1, -1)).squeeze(1)


@_batched
def exponential(x, alpha=0.3):
    out, state = [], x.new_zeros(len(x))
    for column in x.unbind(1):
        state = torch.lerp(state, column, alpha)
        out.append(state)
    return torch.stack(out, 1)


@_batched
def leaky(x, rates=(0.1, 0.5)):
    state = torch.zeros(len(x), len(rates), device=x.device)
    decay = 1 - torch.tensor(rates)
    for column in x.t():
        state = state * decay + column[:, None]  # raises
    return state


class Biquad:
    """Transposed direct form."""

    def __init__(self, b=(0.2, 0.4, 0.2), a=(1.0, -0.3, 0.1)):
        self.b, self.a = torch.tensor(b), torch.tensor(a)
        self.state: Optional[Tensor] = None

    def __call__(self, x):
        if self.state is None or self.state.device != x.device:
            self.state = x.new_zeros(len(x), 2)
        z1, z2 = self.state.unbind(1)
        out = []
        for v in x.unbind(1):
            y = self.b[0] * v + z1
            z1 = self.b[1] * v - self.a[1] * y + z2
            z2 = self.b[2] * v - self.a[2] * y
            out.append(y)
        self.state = torch.stack([z1, z2], 1)
        return torch.stack(out, 1)

    def response(self, omega):
        z = torch.exp(-1j * omega[:, None] * torch.arange(3, device=omega.device))
        return (z * self.b).sum(-1) / (z * self.a).sum(-1)  # raises


class MovingStats:
    def __init__(self, decay=0.9):
        self.decay = decay
        self.mean = self.var = None

    def update(self, x):
        mean, var = x.mean(0), x.var(0)
        if self.mean is None:
            self.mean, self.var = torch.zeros_like(mean), torch.ones_like(var)
        self.mean = torch.lerp(self.mean, mean, 1 - self.decay)
        self.var = torch.lerp(self.var, var, 1 - self.decay)
        return (x - self.mean) / self.var.sqrt()


# ------------------------------------------------------------------ resampling, pitch, delays


def resample_linear(x: Tensor, n: int) -> Tensor:
    at = torch.linspace(0, x.shape[-1] - 1, n)
    low = at.floor().long().clamp(max=x.shape[-1] - 2)
    frac = (at - low).to(x.device)
    return torch.lerp(x[..., low], x[..., low + 1], frac)


def resample_cubic(x: Tensor, n: int) -> Tensor:
    at = torch.linspace(1, x.shape[-1] - 3, n)
    i, f = at.long(), at.frac()
    p = [x[..., i + k] for k in (-1, 0, 1, 2)]
    a = 0.5 * (p[3] - p[0]) + 1.5 * (p[1] - p[2])
    b = p[0] - 2.5 * p[1] + 2 * p[2] - 0.5 * p[3]
    return ((a * f + b) * f + 0.5 * (p[2] - p[0])) * f + p[1]  # raises


def autocorrelation(x):
    n = x.shape[-1]
    z = torch.fft.rfft(x, 2 * n)
    r = torch.fft.irfft(z * z.conj(), 2 * n)[..., :n]
    return r / r[..., :1].clamp(min=EPS.item())


def pitch_lag(x, low=2, high=12):
    r = autocorrelation(x)[..., low:high]
    return r.argmax(-1) + torch.tensor(low)


def pitch_frequency(x, rate=16000, low=2, high=12):
    r = autocorrelation(x)[..., low:high]
    lags = torch.arange(low, high)
    return rate / lags[r.argmax(-1)]  # raises


def pitch_frequency_beside(x, rate=16000, low=2, high=12):
    r = autocorrelation(x)[..., low:high]
    lags = torch.arange(low, high, device=r.device)
    return rate / lags[r.argmax(-1)]


def group_delay_phases(x: Tensor, delay: float) -> Tensor:
    z = torch.fft.rfft(x)
    f = torch.fft.rfftfreq(x.shape[-1], device=z.device)
    return torch.fft.irfft(z * torch.exp(-2j * math.pi * f * delay), x.shape[-1])


def band_energies(x, edges=(0.0, 0.1, 0.25, 0.5)):
    p = torch.fft.rfft(x).abs() ** 2
    f = torch.fft.rfftfreq(x.shape[-1])
    return torch.stack([p[..., (f >= a) & (f < b)].sum(-1) for a, b in zip(edges, edges[1:])], -1)


def spectral_centroid(x: Tensor) -> Tensor:
    p = torch.fft.rfft(x).abs()
    f = torch.fft.rfftfreq(x.shape[-1])
    return (p * f).sum(-1) / p.sum(-1)  # raises


def steering(positions: Tensor, direction: Tensor, freqs: Tensor, c: float = 343.0) -> Tensor:
    delay = positions @ direction.to(positions) / c
    return torch.exp(2j * math.pi * freqs.to(positions.device)[:, None] * delay[None])


def linear_array(n=4, spacing=0.05):
    at = torch.arange(n) * spacing
    return torch.stack([at, torch.zeros(n), torch.zeros(n)], 1)


class Beamformer:
    def __init__(self, sensors: int = 4, spacing: float = 0.05, freqs: Tuple[float, ...] = (500.0, 1000.0)):
        self.positions = linear_array(sensors, spacing)
        self.freqs = torch.tensor(freqs)
        self._weights: "OrderedDict[Any, Tensor]" = OrderedDict()

    def weights(self, direction):
        key = tuple(direction.tolist())
        if key not in self._weights:
            self._weights[key] = steering(self.positions, direction, self.freqs).conj() / len(self.positions)
            while len(self._weights) > 4:
                self._weights.popitem(last=False)
        return self._weights[key]

    def __call__(self, z, direction):
        w = self.weights(direction).to(z.device)
        return torch.einsum("fm,bmft->bft", w, z)

    def power(self, z, directions):
        return torch.stack([self(z, d).abs().pow(2).mean((1, 2)) for d in directions], 1)

    def response(self, direction, source):
        a = torch.exp(2j * math.pi * self.freqs.to(source.device)[:, None] * (self.positions.to(source) @ source / 343.0))
        return (self.weights(direction) * a).sum(-1).abs()  # raises


def mel_filters(bins: int = 9, mels: int = 4, rate: int = 1000) -> np.ndarray:
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), mels + 2) / 2595) - 1)
    f = np.linspace(0, rate / 2, bins)
    up = (f - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - f) / (edges[2:] - edges[1:-1])[:, None]
    return np.clip(np.minimum(up, down), 0, None).astype(np.float32)


def log_mel(x):
    s = spectrogram(x) ** 2
    return torch.log(torch.tensor(mel_filters(s.shape[-2]), device=s.device) @ s + EPS)


def mel_centres(x):
    s = spectrogram(x) ** 2
    filters = mel_filters(s.shape[-2])
    weights = torch.from_numpy(filters / filters.sum(1, keepdims=True).clip(1e-6))
    return torch.einsum("mf,...ft->...mt", weights, s)  # raises
