import dataclasses
from dataclasses import dataclass
from typing import Callable, Dict, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

RENDERERS: Dict[str, Callable] = {}
SH_C1 = 0.4886025119029199

def register(name):
    def wrap(cls):
        RENDERERS[name] = cls
        return cls
    return wrap

class TensorStruct:
    def to(self, device):
        moved = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            moved[f.name] = value.to(device) if hasattr(value, "to") else value
        return dataclasses.replace(self, **moved)

@dataclass
class Camera(TensorStruct):
    c2w: torch.Tensor
    focal: torch.Tensor
    height: int = 4
    width: int = 4

    @classmethod
    def orbit(cls, angle, size=4):
        pose = np.eye(4, dtype=np.float32)
        pose[0, 0] = pose[2, 2] = np.cos(angle)
        pose[0, 2], pose[2, 0], pose[2, 3] = np.sin(angle), -np.sin(angle), 3.0
        return cls(torch.from_numpy(pose), torch.tensor(2.0), size, size)

    @property
    def device(self):
        return self.c2w.device

    def pixel_directions(self):
        ys, xs = torch.meshgrid(torch.arange(self.height).float(), torch.arange(self.width).float(), indexing="ij")
        return torch.stack([xs - self.width / 2, self.height / 2 - ys, -torch.ones_like(xs)], -1).view(-1, 3)

    def rays(self):
        local = self.pixel_directions().to(self.device)
        local[:, :2] /= self.focal
        d = local @ self.c2w[:3, :3].t()
        return RayBundle(self.c2w[:3, 3].expand_as(d), F.normalize(d, dim=-1))

    def project(self, points):
        w2c = torch.linalg.inv(self.c2w)
        local = points @ w2c[:3, :3].t() + w2c[:3, 3]  # raises
        return self.focal * local[:, :2] / -local[:, 2:].clamp(max=-1e-3), -local[:, 2]

@dataclass
class RayBundle(TensorStruct):
    origins: torch.Tensor
    directions: torch.Tensor
    near: Optional[torch.Tensor] = None

    def __len__(self):
        return len(self.origins)

    def __getitem__(self, index):
        return RayBundle(self.origins[index], self.directions[index], None if self.near is None else self.near[index])

class HashField(nn.Module):
    def __init__(self, buffered=True, table=64, levels=2):
        super().__init__()
        primes = torch.tensor([1, 2654435761, 805459861])
        if buffered:
            self.register_buffer("primes", primes, persistent=False)
        else:
            self.primes = primes
        self.table = nn.Parameter(torch.randn(levels, table, 2) * 0.1)
        self.net = nn.Sequential(nn.Linear(2 * levels, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, points):
        feats = []
        for level in range(len(self.table)):
            cell = torch.floor(points * 4 * 2 ** level).long()
            mixed = cell * self.primes  # raises
            feats.append(self.table[level][(mixed.sum(-1) % self.table.shape[1])])
        out = self.net(torch.cat(feats, -1))
        return out[..., :3].sigmoid(), F.softplus(out[..., 3])

class OccupancyGrid(nn.Module):
    def __init__(self, res=4, decay=0.95):
        super().__init__()
        self.res, self.decay = res, torch.tensor(decay)
        self.register_buffer("occs", torch.zeros(res ** 3))
        self.register_buffer("binary", torch.zeros(res ** 3, dtype=torch.bool))
        axis = (torch.arange(res) + 0.5) / res * 2 - 1
        self.centers = torch.cartesian_prod(axis, axis, axis)

    def update(self, density_fn, n=16):
        cells = torch.randperm(self.res ** 3)[:n]
        fresh = density_fn(self.centers[cells].to(self.occs.device))
        self.occs[cells] = torch.maximum(self.occs[cells] * self.decay, fresh)
        self.binary = self.occs > self.occs.mean()

    def occupied_centers(self):
        return self.centers[self.binary]  # raises

    def filter(self, points):
        cell = ((points.clamp(-0.99, 0.99) + 1) / 2 * self.res).long()
        flat = cell[..., 0] * self.res ** 2 + cell[..., 1] * self.res + cell[..., 2]
        return self.binary[flat]

@register("volume")
class VolumeRenderer:
    def __init__(self, field, samples=5, background=None, far=5.0):
        self.field, self.samples, self.far = field, samples, far
        self.background = torch.ones(3) if background is None else background

    def depths(self, rays):
        steps = torch.linspace(0.0, 1.0, self.samples)
        if rays.near is None:
            return (1.0 + steps * (self.far - 1.0)).to(rays.origins.device).expand(len(rays), -1)
        return rays.near + steps * (self.far - rays.near)  # raises

    def weights(self, sigma, z):
        delta = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], 1e3)], -1)
        alpha = 1 - torch.exp(-sigma * delta)
        trans = torch.cumprod(1 - alpha + 1e-8, -1)
        return alpha * torch.cat([torch.ones_like(trans[:, :1]), trans[:, :-1]], -1)

    def composite(self, rgb, w):
        color = (w[..., None] * rgb).sum(1)
        return color + (1 - w.sum(-1, keepdim=True)) * self.background  # raises

    def __call__(self, rays):
        z = self.depths(rays)
        points = rays.origins[:, None] + rays.directions[:, None] * z[..., None]
        rgb, sigma = self.field(points)
        w = self.weights(sigma, z)
        return {"rgb": self.composite(rgb, w), "depth": (w * z).sum(-1), "weights": w, "z": z}

@register("fine")
class ImportanceRenderer(VolumeRenderer):
    def __init__(self, *args, perturb=True, **kw):
        super().__init__(*args, **kw)
        self.perturb = perturb

    def resample(self, z, w, n):
        pdf = (w + 1e-5) / (w + 1e-5).sum(-1, keepdim=True)
        cdf = pdf.cumsum(-1)
        if self.perturb:
            u = torch.rand_like(z[:, :1].expand(-1, n))
        else:
            u = torch.linspace(0.05, 0.95, n).expand(len(z), n).contiguous()
        slots = torch.searchsorted(cdf, u)  # raises
        return z.gather(1, slots.clamp(max=z.shape[1] - 1)).sort(-1).values

    def depths(self, rays):
        z = super().depths(rays)
        with torch.no_grad():
            _, sigma = self.field(rays.origins[:, None] + rays.directions[:, None] * z[..., None])
            return self.resample(z, self.weights(sigma, z), self.samples)

def render_image(renderer, camera, chunk=6, sink=None):
    rays, parts = camera.rays(), []
    for i in range(0, len(rays), chunk):
        out = renderer(rays[slice(i, i + chunk)])
        parts.append({k: v if sink is None else v.to(sink) for k, v in out.items() if k in ("rgb", "depth")})
    return {k: torch.cat([p[k] for p in parts]).view(camera.height, camera.width, -1) for k in parts[0]}

def colorize(depth):
    low, high = depth.min().item(), depth.max().item()
    scaled = np.clip((depth - low) / (high - low + 1e-6), 0, 1)  # raises
    return (np.asarray(scaled) * 255).astype(np.uint8)

def psnr(pred, target):
    return -10 * torch.log10(F.mse_loss(pred, target))  # raises

@dataclass
class Mesh(TensorStruct):
    verts: torch.Tensor
    faces: torch.Tensor

    @classmethod
    def tetra(cls):
        verts = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
        return cls(verts, torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))

    def face_normals(self):
        a, b, c = self.verts[self.faces].unbind(1)
        return torch.cross(b - a, c - a, dim=1)

    def vertex_normals(self):
        normals, per_face = torch.zeros_like(self.verts), self.face_normals()
        for corner in range(3):
            normals.index_add_(0, self.faces[:, corner], per_face)  # raises
        return F.normalize(normals, dim=-1)

    def laplacian(self):
        i, j = self.faces.cpu().repeat(1, 2).view(-1, 2).t()
        adj = torch.zeros(len(self.verts), len(self.verts))
        adj[i, j] = adj[j, i] = 1.0
        return torch.diag(adj.sum(1)) - adj

class MeshFitter:
    def __init__(self, mesh, target, prior="current"):
        self.mesh, self.target, self.prior = mesh, target, prior
        self.lap = mesh.laplacian()
        self.offset = torch.zeros_like(mesh.verts, requires_grad=True)

    def smoothness(self, verts):
        lap = self.lap.to(verts) if self.prior == "current" else self.lap
        return torch.mm(lap, verts).pow(2).mean()  # raises

    def step(self):
        verts = self.mesh.verts + self.offset
        d = torch.cdist(verts, self.target)
        loss = d.min(0).values.mean() + d.min(1).values.mean() + 0.1 * self.smoothness(verts)
        loss.backward()
        return dataclasses.replace(self.mesh, verts=verts.detach()).vertex_normals()

class Splats(nn.Module):
    def __init__(self, points, device):
        super().__init__()
        self.xyz = nn.Parameter(points.to(device))
        self.scaling = nn.Parameter(torch.full((len(points), 3), -1.0, device=device))
        self.features = nn.Parameter(torch.rand(len(points), 4, 3, device=device))
        self.opacity = nn.Parameter(torch.zeros(len(points), device=device))
        self.max_radii = torch.zeros(len(points), device=device)

    def prune(self, mask):
        for name, p in list(self.named_parameters()):
            setattr(self, name, nn.Parameter(p.detach()[~mask]))
        self.max_radii = self.max_radii[~mask]

    def densify(self, grads, threshold, padded_on=None):
        padded = torch.zeros(len(self.xyz), device=padded_on)
        padded[: len(grads)] = grads
        large = self.scaling.exp().max(1).values > 0.01
        selected = torch.logical_and(padded >= threshold, large)  # raises
        self.xyz = nn.Parameter(torch.cat([self.xyz.detach(), self.xyz.detach()[selected] + 0.01]))
        return int(selected.sum())

    def colors(self, camera):
        d = F.normalize(self.xyz - camera.c2w[:3, 3], dim=-1)
        basis = torch.stack([torch.ones_like(d[:, 0]), -SH_C1 * d[:, 1], SH_C1 * d[:, 2], -SH_C1 * d[:, 0]], -1)
        return (basis[..., None] * self.features).sum(1)

    def render(self, camera, pixels):
        uv, depth = camera.project(self.xyz)
        order = depth.cpu().argsort()
        power = -torch.cdist(pixels.to(uv), uv[order]).pow(2)
        alpha = self.opacity[order].sigmoid() * power.exp()
        remaining = torch.cumprod(1 - alpha, -1).roll(1, -1)
        return (alpha * remaining) @ self.colors(camera)[order]

class ICP:
    def __init__(self, target, iterations=2):
        self.target, self.iterations = target, iterations
        self.pose = torch.eye(4)

    def align(self, src, dst):
        cs, cd = src.mean(0), dst.mean(0)
        u, _, vt = torch.linalg.svd((src - cs).t() @ (dst - cd))
        step = torch.eye(4, device=src.device)
        step[:3, :3] = vt.t() @ u.t()
        step[:3, 3] = cd - step[:3, :3] @ cs
        return step

    def solve(self, source, initial=None):
        pose = self.pose if initial is None else initial
        current = source
        for _ in range(self.iterations):
            nearest = self.target[torch.cdist(current, self.target).argmin(1)]
            step = self.align(current, nearest)
            pose = step @ pose  # raises
            current = current @ step[:3, :3].t() + step[:3, 3]
        return pose

def skew(v, zero=None):
    zero = torch.zeros(()) if zero is None else zero
    rows = [zero, -v[2], v[1], v[2], zero, -v[0], -v[1], v[0], zero]
    return torch.stack(rows).view(3, 3)  # raises

def perturbed(camera, omega, zero=None):
    rotation = torch.matrix_exp(skew(omega, zero))
    pose = camera.c2w.clone()
    pose[:3, :3] = rotation @ camera.c2w[:3, :3]
    return dataclasses.replace(camera, c2w=pose)

def scene(name="volume", device="cuda:0", buffered=True, **kw):
    field = HashField(buffered).to(device)
    kw.setdefault("background", torch.zeros(3, device=device))
    return RENDERERS[name](field, **kw), Camera.orbit(0.3).to(device)

def case_render_volume():
    renderer, camera = scene()
    with torch.no_grad():
        image = render_image(renderer, camera, sink="cpu")
    return colorize(image["depth"])

def case_render_depth_picture():
    renderer, camera = scene()
    with torch.no_grad():
        return colorize(render_image(renderer, camera)["depth"])

def case_plain_primes():
    render_image(*scene(buffered=False))

def case_default_background():
    render_image(*scene(background=None))

def case_rays_with_near():
    renderer, camera = scene()
    rays = camera.rays()
    rays.near = torch.full((len(rays), 1), 0.5).to(rays.origins)
    renderer(rays)

def case_fine_perturbed():
    render_image(*scene("fine"))["rgb"].mean().backward()

def case_fine_deterministic():
    render_image(*scene("fine", perturb=False))

def case_psnr_of_offloaded():
    renderer, camera = scene()
    target = torch.rand(4, 4, 3).to(camera.device)
    return psnr(render_image(renderer, camera, sink="cpu")["rgb"], target)

def case_psnr_on_device():
    renderer, camera = scene(device="cuda:1")
    return psnr(render_image(renderer, camera)["rgb"], torch.rand(4, 4, 3).to(camera.device)).item()

def case_occupancy_update():
    renderer, camera = scene()
    grid = OccupancyGrid().to(camera.device)
    with torch.no_grad():
        grid.update(lambda p: renderer.field(p)[1])
        return grid.filter(camera.rays().origins).any().item()

def case_occupied_cells():
    renderer, camera = scene()
    grid = OccupancyGrid().to(camera.device)
    with torch.no_grad():
        grid.update(lambda p: renderer.field(p)[1])
    grid.occupied_centers()

def case_mesh_fit():
    mesh = Mesh.tetra().to("cuda:0")
    MeshFitter(mesh, torch.rand(5, 3).cuda()).step()

def case_mesh_fit_stale_operator():
    mesh = Mesh.tetra().to("cuda:0")
    MeshFitter(mesh, torch.rand(5, 3).cuda(), prior="initial").step()

def case_mesh_with_host_faces():
    mesh = dataclasses.replace(Mesh.tetra(), verts=Mesh.tetra().verts.cuda())
    return mesh.face_normals().norm(dim=1).tolist()

def case_mesh_shading_with_host_faces():
    mesh = dataclasses.replace(Mesh.tetra(), verts=Mesh.tetra().verts.cuda())
    mesh.vertex_normals()

def case_splats_rendered_and_pruned():
    splats, camera = Splats(torch.rand(6, 3), "cuda:1"), Camera.orbit(0.0).to("cuda:1")
    splats.render(camera, camera.pixel_directions()[:, :2]).sum().backward()
    splats.prune(splats.max_radii.cpu() > 1)

def case_splats_camera_not_replaced():
    splats, camera = Splats(torch.rand(6, 3), "cuda:1"), Camera.orbit(0.0)
    camera.to("cuda:1")
    splats.render(camera, camera.pixel_directions()[:, :2])

def case_splats_densify():
    splats = Splats(torch.rand(6, 3), "cuda:0")
    splats.densify(torch.rand(4, device="cuda:0"), 0.2)

def case_splats_densify_padded():
    splats = Splats(torch.rand(6, 3), "cuda:0")
    return splats.densify(torch.rand(4), 0.2, padded_on=splats.xyz.device)

def case_icp_initial_given():
    cloud = torch.rand(6, 3, device="cuda:2")
    return ICP(cloud).solve(cloud + 0.1, torch.eye(4).to(cloud)).cpu().numpy()

def case_icp_identity():
    cloud = torch.rand(6, 3, device="cuda:2")
    ICP(cloud).solve(cloud + 0.1)

def case_pose_refined():
    renderer, camera = scene()
    omega = torch.zeros(3, device=camera.device, requires_grad=True)
    camera = perturbed(camera, omega, omega.new_zeros(()))
    renderer(camera.rays())["rgb"].sum().backward()

def case_pose_refined_zero():
    _, camera = scene()
    perturbed(camera, torch.zeros(3, device=camera.device))
