"""Neural rendering and mapping: cameras, rays, samplers, grids, pose graphs and losses."""
import math
from dataclasses import dataclass
from typing import Dict, List, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class SceneConfig:
    height: int = 6
    width: int = 8
    focal: float = 7.0
    near: float = 0.5
    far: float = 3.0
    samples: int = 5
    grid: int = 4
    device: str = "cuda:0"

class TensorBundle:
    fields: Tuple[str, ...] = ()

    def to(self, device):
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for name in self.fields:
            value = getattr(self, name)
            if value is not None:
                setattr(made, name, value.to(device))
        return made

    @property
    def device(self):
        return getattr(self, self.fields[0]).device

class Cameras(TensorBundle):
    fields = ("c2w", "intrinsics")

    def __init__(self, c2w, intrinsics):
        self.c2w, self.intrinsics = c2w, intrinsics

    @classmethod
    def circle(cls, config, count=3, device=None):
        poses = np.tile(np.eye(4, dtype=np.float32), (count, 1, 1))
        for i, angle in enumerate(np.linspace(0, 2 * math.pi, count, endpoint=False)):
            poses[i, :3, :3] = [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
            poses[i, :3, 3] = [0.1 * np.sin(angle), 0, 0.1 * np.cos(angle)]
        k = torch.tensor([[config.focal, 0, config.width / 2], [0, config.focal, config.height / 2], [0, 0, 1]])
        return cls(torch.from_numpy(poses).to(device or config.device), k.to(device or config.device))

    def __len__(self):
        return self.c2w.shape[0]

    def pixel_grid(self, config):
        ys, xs = torch.meshgrid(torch.arange(config.height), torch.arange(config.width), indexing="ij")
        return torch.stack([xs, ys], -1).float() + 0.5

    def rays(self, index, pixels):
        pixels = pixels.to(self.device)
        ones = torch.ones_like(pixels[..., :1])
        directions = torch.cat([pixels, ones], -1) @ torch.linalg.inv(self.intrinsics).T
        c2w = self.c2w[index]
        directions = (c2w[..., None, :3, :3] @ directions[..., None]).squeeze(-1)
        origins = c2w[..., None, :3, 3].expand_as(directions)
        return RayBundle(origins, F.normalize(directions, dim=-1))

    def project(self, points):
        w2c = torch.linalg.inv(self.c2w)
        hom = torch.cat([points, points.new_ones(points.shape[0], 1)], -1)
        local = (w2c[:, None] @ hom[None, :, :, None]).squeeze(-1)[..., :3]  # raises
        uv = local @ self.intrinsics.T
        return uv[..., :2] / uv[..., 2:].clamp(min=1e-3)

class RayBundle(TensorBundle):
    fields = ("origins", "directions", "near", "far")

    def __init__(self, origins, directions, near=None, far=None):
        self.origins, self.directions, self.near, self.far = origins, directions, near, far

    def flat(self):
        return RayBundle(self.origins.reshape(-1, 3), self.directions.reshape(-1, 3), self.near, self.far)

    def __getitem__(self, keep):
        return RayBundle(self.origins[keep], self.directions[keep])

    def points(self, t):
        return self.origins[..., None, :] + self.directions[..., None, :] * t[..., None]

class AABBCollider(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.box = torch.tensor([low, high])

    def bounds(self, rays):
        box = self.box.to(rays.device)
        inverse = 1.0 / (rays.directions + 1e-6)
        a, b = (box[0] - rays.origins) * inverse, (box[1] - rays.origins) * inverse
        return torch.minimum(a, b).amax(-1), torch.maximum(a, b).amin(-1)

    def forward(self, rays):
        near, far = self.bounds(rays)
        return RayBundle(rays.origins, rays.directions, near.clamp(min=0.05)[..., None], far.clamp(min=0.1)[..., None])

class Sampler(nn.Module):
    def __init__(self, config, stratified=True):
        super().__init__()
        self.config, self.stratified = config, stratified
        self.bins = torch.linspace(0, 1, config.samples)

    def jitter(self, t, device):
        return torch.rand(t.shape) * (1.0 / self.config.samples) if self.stratified else 0.0

    def unit(self, rays):
        t = self.bins.expand(*rays.origins.shape[:-1], -1)
        return (t + self.jitter(t, rays.device)).to(rays.device)

    def forward(self, rays):
        near = self.config.near if rays.near is None else rays.near
        far = self.config.far if rays.far is None else rays.far
        return near + (far - near) * self.unit(rays)

class DisparitySampler(Sampler):
    def unit(self, rays):
        t = self.bins.to(rays.device).expand(*rays.origins.shape[:-1], -1)
        return t + self.jitter(t, rays.device)  # raises

class PDFSampler(Sampler):
    def resample(self, t, weights):
        pdf = (weights + 1e-3) / (weights + 1e-3).sum(-1, keepdim=True)
        cdf = torch.cumsum(pdf, -1)
        u = torch.linspace(0.02, 0.98, self.config.samples).expand(*cdf.shape[:-1], -1).contiguous()
        index = self.lookup(cdf, u)
        return torch.gather(t, -1, index)

    def lookup(self, cdf, u):
        if not self.stratified:
            u = u.to(cdf)
        return torch.searchsorted(cdf, u).clamp(max=cdf.shape[-1] - 1)  # raises

class FrequencyEncoding(nn.Module):
    def __init__(self, levels=3):
        super().__init__()
        self.scales = [2.0 ** i * math.pi for i in range(levels)]
        self.width = 3 * (2 * levels + 1)

    def forward(self, x):
        return torch.cat([x] + [f(x * s) for s in self.scales for f in (torch.sin, torch.cos)], -1)

class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoding = FrequencyEncoding()
        self.net = nn.Sequential(nn.Linear(self.encoding.width, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, points):
        out = self.net(self.encoding(points))
        return F.softplus(out[..., 0]), out[..., 1:].sigmoid()

class VoxelGrid:
    def __init__(self, config, device=None):
        self.config = config
        self.occupied = torch.ones([config.grid] * 3, dtype=torch.bool, device=device)
        self.low = torch.full((3,), -3.5)
        self.cell = 7.0 / config.grid

    def index(self, points):
        return ((points - self.low.to(points.device)) / self.cell).long().clamp(0, self.config.grid - 1)

    def query(self, points):
        i, j, k = self.index(points).unbind(-1)
        return self.occupied[i, j, k]  # raises

    def centers(self):
        return (self.occupied.nonzero() + 0.5) * self.cell + self.low  # raises

    def carve(self, points):
        i, j, k = self.index(points).cpu().unbind(-1)
        self.occupied[i, j, k] = False
        return int(self.occupied.sum())

class Renderer(nn.Module):
    def __init__(self, config, field, sampler, collider=None, grid=None):
        super().__init__()
        self.config, self.field, self.sampler = config, field, sampler
        self.collider, self.grid = collider, grid

    def weights(self, density, t):
        gaps = torch.cat([t[..., 1:] - t[..., :-1], torch.full_like(t[..., :1], 1e2)], -1)
        alpha = 1 - torch.exp(-density * gaps)
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[..., :1]), 1 - alpha + 1e-6], -1), -1)
        return alpha * through[..., :-1]

    def render(self, rays, background=None):
        if self.collider is not None:
            rays = self.collider(rays)
        t = self.sampler(rays)
        points = rays.points(t)
        density, color = self.field(points)
        if self.grid is not None:
            density = density * self.grid.query(points)
        w = self.weights(density, t)
        rgb = (w[..., None] * color).sum(-2)
        if background is not None:
            rgb = rgb + (1 - w.sum(-1, keepdim=True)) * background  # raises
        return {"rgb": rgb, "depth": (w * t).sum(-1), "weights": w, "t": t}

    def image(self, cameras, index, chunk=16):
        rays = cameras.rays(index, cameras.pixel_grid(self.config).reshape(-1, 2))
        with torch.no_grad():
            parts = [self.render(rays[s:s + chunk])["rgb"].cpu() for s in range(0, rays.origins.shape[0], chunk)]
        return torch.cat(parts).view(self.config.height, self.config.width, 3)

class Trainer:
    def __init__(self, config, sampler=Sampler, collider=None, grid=None):
        self.config = config
        self.cameras = Cameras.circle(config)
        self.images = torch.rand(len(self.cameras), config.height, config.width, 3)
        self.renderer = Renderer(config, Field(), sampler(config), collider, grid).to(config.device)
        self.optimizer = torch.optim.Adam(self.renderer.parameters(), lr=1e-2)

    def batch(self, n=10):
        y, x = torch.randint(self.config.height, (n,)), torch.randint(self.config.width, (n,))
        return torch.stack([x, y], -1).float() + 0.5, self.images[1, y, x]

    def target(self, colors):
        return colors.to(self.config.device, non_blocking=True)

    def step(self, background=None):
        pixels, colors = self.batch()
        out = self.renderer.render(self.cameras.rays(1, pixels), background)
        loss = F.mse_loss(out["rgb"], self.target(colors))  # raises
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return -10 * torch.log10(loss.detach()).item()

class DiskTrainer(Trainer):
    def target(self, colors):
        return torch.from_numpy(colors.numpy().astype(np.float32))

def skew(v):
    zero = torch.zeros_like(v[..., 0])
    x, y, z = v.unbind(-1)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).view(*v.shape[:-1], 3, 3)

def so3_exp(v, eps=1e-6):
    angle = v.norm(dim=-1, keepdim=True).clamp(min=eps)[..., None]
    k = skew(v)
    return torch.eye(3).to(v) + torch.sin(angle) / angle * k + (1 - torch.cos(angle)) / angle ** 2 * k @ k

class PoseGraph:
    def __init__(self, count, device):
        self.twists = torch.zeros(count, 6, device=device, requires_grad=True)
        self.edges: List[Tuple[int, int]] = []
        self.measured: List[torch.Tensor] = []
        self.damping = torch.eye(6)

    def connect(self, i, j, relative):
        self.edges.append((i, j))
        self.measured.append(relative)

    def residuals(self):
        i, j = torch.tensor(self.edges).unbind(-1)
        turn = so3_exp(self.twists[:, :3])
        shift = (turn[i].transpose(-1, -2) @ (self.twists[j, 3:] - self.twists[i, 3:])[..., None]).squeeze(-1)
        return shift - torch.stack(self.measured)  # raises

    def energy(self):
        return self.residuals().pow(2).sum()

    def descend(self, rate=0.1):
        grad, = torch.autograd.grad(self.energy(), self.twists)
        with torch.no_grad():
            self.twists -= rate * grad
        return float(self.energy())

    def newton(self, node=0):
        row = self.residuals()
        jac = torch.stack([torch.autograd.grad(r.sum(), self.twists, retain_graph=True)[0][node] for r in row])
        normal = jac.T @ jac
        normal += self.damping  # raises
        return torch.linalg.solve(normal, jac.T @ row.sum(-1))

class Keyframes:
    def __init__(self, device, window=2):
        self.device, self.window = torch.device(device), window
        self.clouds: Dict[int, torch.Tensor] = {}

    def insert(self, number, cloud):
        self.clouds[number] = cloud.to(self.device)
        for old in sorted(self.clouds)[:-self.window]:
            self.clouds[old] = self.clouds[old].cpu()

    def recent(self):
        return torch.cat([self.clouds[n] for n in sorted(self.clouds)[-self.window:]])

    def nearest(self, number, query):
        return torch.cdist(query, self.clouds[number]).min(-1)  # raises

def case_train_step():
    trainer = Trainer(SceneConfig())
    assert trainer.step() == trainer.step() or trainer.step(torch.tensor(1.0)) > 0

def case_images_on_disk():
    DiskTrainer(SceneConfig()).step()

def case_images_on_disk_cpu_run():
    DiskTrainer(SceneConfig(device="cpu")).step(torch.ones(3))

def case_white_background():
    Trainer(SceneConfig()).step(background=torch.ones(3))

def case_disparity():
    Trainer(SceneConfig(), sampler=DisparitySampler).step()

def case_disparity_deterministic():
    config = SceneConfig()
    sampler = DisparitySampler(config, stratified=False)
    Renderer(config, Field().cuda(), sampler).image(Cameras.circle(config), 0).numpy()

def case_resample():
    config = SceneConfig()
    renderer = Renderer(config, Field(), PDFSampler(config)).to(config.device)
    out = renderer.render(Cameras.circle(config).rays(0, torch.rand(4, 2)))
    renderer.sampler.resample(out["t"], out["weights"].detach())

def case_resample_fixed():
    config = SceneConfig(device="cuda:3")
    sampler = PDFSampler(config, stratified=False).to(config.device)
    rays = Cameras.circle(config).rays(0, torch.rand(4, 2))
    t = sampler(rays)
    sampler.resample(t, torch.rand_like(t)).add(t)

def case_collider_box():
    collider = AABBCollider([-3.0] * 3, [3.0] * 3)
    Trainer(SceneConfig(), collider=collider).step()

def case_grid_on_cpu():
    config = SceneConfig()
    Trainer(config, grid=VoxelGrid(config)).step()

def case_grid_carved():
    config = SceneConfig()
    grid = VoxelGrid(config, config.device)
    rays = Cameras.circle(config).rays(0, torch.rand(4, 2))
    grid.carve(rays.points(torch.full((4, 2), 1.0, device=rays.device)))
    Trainer(config, grid=grid).step()

def case_grid_centers():
    config = SceneConfig()
    VoxelGrid(config).centers()
    VoxelGrid(config, "cuda:0").centers()

def case_project_landmarks():
    config = SceneConfig()
    cameras = Cameras.circle(config)
    landmarks = np.random.rand(5, 3).astype(np.float32) + 1
    cameras.project(torch.from_numpy(landmarks).to(cameras.device))
    cameras.project(torch.from_numpy(landmarks))

def case_moved_cameras():
    cameras = Cameras.circle(SceneConfig(), device="cpu").to("cuda:1")
    rays = cameras.rays(2, torch.rand(3, 2)).flat().to("cuda:0")
    Sampler(SceneConfig())(rays).to(rays.origins)

def case_pose_graph():
    graph = PoseGraph(3, "cuda:0")
    for i in range(2):
        graph.connect(i, i + 1, torch.tensor([0.1, 0.0, 0.2]).cuda())
    graph.descend()

def case_pose_graph_cpu_newton():
    graph = PoseGraph(3, "cpu")
    graph.connect(0, 1, torch.tensor([0.1, 0.0, 0.2]))
    graph.newton()

def case_pose_graph_newton():
    graph = PoseGraph(3, "cuda:0")
    graph.connect(0, 1, torch.tensor([0.1, 0.0, 0.2], device="cuda"))
    graph.newton()

def case_pose_graph_odometry():
    graph = PoseGraph(2, "cuda:0")
    graph.connect(0, 1, torch.as_tensor(np.array([0.1, 0.2, 0.0], dtype=np.float32)))
    graph.descend()

def case_keyframe_window():
    frames = Keyframes("cuda:0")
    for n in range(4):
        frames.insert(n, torch.rand(3, 3))
    frames.nearest(3, frames.recent())
    np.stack([cloud.cpu().numpy() for cloud in frames.clouds.values()])

def case_loop_closure():
    frames = Keyframes("cuda:0")
    for n in range(4):
        frames.insert(n, torch.rand(3, 3))
    frames.nearest(1, frames.clouds[0])
    frames.nearest(0, frames.recent())
