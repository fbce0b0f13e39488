"""Ray marching through small radiance fields: pixels to rays, samplers, encodings, grids and compositing."""
import math
from collections import namedtuple
from functools import lru_cache, partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Rays = namedtuple("Rays", "origins dirs near far")
OPENGL = torch.tensor([1.0, -1.0, -1.0])
AABB_UNIT = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
CORNERS = [(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
PRIMES = (1, 2654435761, 805459861)


def lmap(fn, *xs):
    return list(map(fn, *xs))


def rays_map(fn, rays):
    return Rays(*lmap(fn, rays))


def normalize(x, eps=1e-8):
    return x / x.norm(dim=-1, keepdim=True).clamp_min(eps)


def pixel_grid(h, w, **kw):
    ys, xs = torch.meshgrid(torch.arange(h, **kw), torch.arange(w, **kw), indexing="ij")
    return torch.stack([xs, ys], -1).float() + 0.5


def intrinsics(h, w, fov):
    f = 0.5 * w / math.tan(0.5 * fov)
    return torch.tensor([[f, 0, w / 2], [0, f, h / 2], [0, 0, 1.0]])


def unproject(pix, k):
    xy = (pix - k[:2, 2]) / torch.stack([k[0, 0], k[1, 1]])
    return torch.cat([xy, torch.ones_like(xy[..., :1])], -1)


def camera_rays(c2w, h, w, fov=0.8, near=0.1, far=3.0):
    k = intrinsics(h, w, fov)
    cam = unproject(pixel_grid(h, w), k).to(c2w).reshape(-1, 3)
    d = cam * OPENGL.to(c2w.device) @ c2w[:3, :3].T
    o = c2w[:3, 3].expand_as(d)
    lim = torch.ones_like(d[:, :1])
    return Rays(o, normalize(d), near * lim, far * lim)


def camera_rays_k(c2w, k, h, w):
    pix = pixel_grid(h, w, device=k.device)
    cam = unproject(pix, k).reshape(-1, 3)
    flipped = cam * OPENGL  # raises
    d = normalize(flipped @ c2w[:3, :3].T)
    return Rays(c2w[:3, 3].expand_as(d), d, torch.zeros_like(d[:, :1]), torch.ones_like(d[:, :1]))


def ndc(rays, h, w, focal):
    o, d = rays.origins, rays.dirs
    t = -(1.0 + o[..., 2]) / d[..., 2]
    o = o + t[..., None] * d
    sc = torch.tensor(-2.0 * focal) / torch.tensor([float(w), float(h)])
    oxy = sc[0] * o[..., 0] / o[..., 2], sc[1] * o[..., 1] / o[..., 2]
    dxy = lmap(lambda i: sc[i] * (d[..., i] / d[..., 2] - o[..., i] / o[..., 2]), (0, 1))
    on = torch.stack([*oxy, 1 + 2.0 / o[..., 2]], -1)
    return rays._replace(origins=on, dirs=torch.stack([*dxy, -2.0 / o[..., 2]], -1))


def hit_aabb(rays, box=AABB_UNIT):
    lo, hi = lmap(rays.origins.new_tensor, box)
    inv = 1.0 / (rays.dirs + 1e-9)
    a, b = (lo - rays.origins) * inv, (hi - rays.origins) * inv
    near = torch.minimum(a, b).amax(-1, keepdim=True)
    far = torch.maximum(a, b).amin(-1, keepdim=True)
    return rays._replace(near=near.clamp_min(0.0), far=far), (far > near).squeeze(-1)


def hit_spheres(rays, radii=(0.5, 1.0)):
    b = (rays.origins * rays.dirs).sum(-1, keepdim=True)
    c = rays.origins.pow(2).sum(-1, keepdim=True)
    r2 = torch.as_tensor(radii) ** 2
    disc = b * b - (c - r2)  # raises
    return torch.where(disc > 0, -b - disc.clamp_min(0).sqrt(), torch.full_like(disc, math.inf))


def spread(n, ref=None, lindisp=False):
    t = torch.linspace(0.0, 1.0, n)
    if ref is not None:
        t = t.to(ref)
    return (t * t) if lindisp else t


def stratified(rays, n, jitter=True, lindisp=False):
    t = spread(n, rays.near, lindisp)
    z = rays.near * (1 - t) + rays.far * t
    if jitter:
        mid = 0.5 * (z[:, 1:] + z[:, :-1])
        up, low = torch.cat([mid, z[:, -1:]], -1), torch.cat([z[:, :1], mid], -1)
        z = low + (up - low) * torch.rand_like(z)
    return z


def disparity(rays, n):
    t = spread(n, lindisp=True)
    inv = torch.lerp(1 / rays.near.clamp_min(1e-2), 1 / rays.far, t)  # raises
    return 1 / inv


def points(rays, z):
    return rays.origins[:, None] + rays.dirs[:, None] * z[..., None]


def sample_pdf(bins, w, n, det=False):
    pdf = (w + 1e-5) / (w + 1e-5).sum(-1, keepdim=True)
    cdf = F.pad(pdf.cumsum(-1), (1, 0))
    shape = (*cdf.shape[:-1], n)
    u = torch.linspace(0, 1, n, device=w.device).expand(shape) if det else torch.rand(shape)
    idx = torch.searchsorted(cdf, u.contiguous(), right=True)  # raises
    lo, hi = (idx - 1).clamp_min(0), idx.clamp_max(cdf.shape[-1] - 1)
    g = lambda a, i: a.gather(-1, i)
    den = g(cdf, hi) - g(cdf, lo)
    t = (u - g(cdf, lo)) / den.masked_fill(den < 1e-5, 1.0)
    return g(bins, lo) + t * (g(bins, hi) - g(bins, lo))


def merge(*zs):
    return torch.sort(torch.cat(zs, -1), -1)[0]


@lru_cache(maxsize=None)
def bands(n, log=True):
    e = np.arange(n)
    return tuple((2.0 ** e if log else e + 1.0).tolist())


@lru_cache(maxsize=None)
def band_tensor(n):
    return torch.tensor(bands(n)) * math.pi


def posenc(x, n=4, keep=True):
    out = [x] if keep else []
    for f in bands(n):
        out += [fn(x * f) for fn in (torch.sin, torch.cos)]
    return torch.cat(out, -1)


def posenc_fast(x, n=4):
    y = (x[..., None] * band_tensor(n)).flatten(-2)  # raises
    return torch.cat([y.sin(), y.cos()], -1)


def windowed(x, n, alpha):
    w = 0.5 * (1 - torch.cos(math.pi * torch.clamp(alpha - torch.arange(n), 0.0, 1.0)))
    parts = [w[i] * torch.sin(x * f) for i, f in enumerate(bands(n))]
    return torch.cat(parts, -1)


def ipe(mean, var, n=3):
    s = torch.as_tensor(bands(n), dtype=mean.dtype, device=mean.device)
    m = (mean[..., None, :] * s[:, None]).flatten(-2)
    v = (var[..., None, :] * s[:, None] ** 2).flatten(-2)
    return torch.exp(-0.5 * v) * torch.sin(m)


def sh_basis(d, deg=1, c0=0.28209, c1=torch.tensor([-0.48860, 0.48860, -0.48860])):
    one = torch.full(d.shape[:-1] + (1,), c0).type_as(d)
    if deg == 0:
        return one
    first = d[..., [1, 2, 0]] * c1  # raises
    return torch.cat([one, first], -1)


def hash_index(ijk, size):
    acc = torch.zeros_like(ijk[..., 0])
    for a, p in enumerate(PRIMES):
        acc = acc ^ (ijk[..., a] * p)
    return acc % size


def hash_lookup(table, x, res):
    base = (x * res).floor().long()
    frac = x * res - base
    out = 0
    for c in CORNERS:
        off = torch.tensor(c).to(base.device, non_blocking=True)
        wt = torch.where(off.bool(), frac, 1 - frac).prod(-1, keepdim=True)
        out = out + wt * table[hash_index(base + off, table.shape[0])]
    return out


def hash_lookup_batched(table, x, res, corners=CORNERS):
    base = (x * res).floor().long()
    frac = (x * res - base)[..., None, :]
    offs = torch.cat([torch.tensor([c]) for c in corners])
    idx = hash_index(base[..., None, :] + offs, table.shape[0])  # raises
    wt = (offs * frac + (1 - offs) * (1 - frac)).prod(-1, keepdim=True)
    return (table[idx] * wt).sum(-2)


def alphas(sigma, z, cap=1e10):
    last = torch.Tensor([cap]).expand(z.shape[0], 1)
    dt = torch.cat([z[:, 1:] - z[:, :-1], last], -1)  # raises
    return 1 - torch.exp(-F.relu(sigma) * dt)


def alphas_capped(sigma, z, cap=1e10):
    dt = torch.diff(z, append=z.new_full((z.shape[0], 1), cap))
    return 1 - torch.exp(-F.relu(sigma) * dt)


def transmittance(a):
    return torch.cumprod(torch.cat([torch.ones_like(a[:, :1]), 1 - a + 1e-10], -1), -1)[:, :-1]


def composite(rgb, a, z, white=True):
    w = a * transmittance(a)
    acc, depth = w.sum(-1), (w * z).sum(-1)
    img = (w[..., None] * rgb).sum(-2)
    return (img + (1 - acc[..., None]) if white else img), depth, acc, w


def over(rgb, acc, bg=None):
    bg = torch.rand(3) if bg is None else bg
    return torch.addcmul(rgb, 1 - acc[..., None], bg)  # raises


def packed_sum(vals, ray_id, n):
    out = torch.zeros(n, vals.shape[-1], dtype=vals.dtype)
    return out.to(vals.device).index_add_(0, ray_id, vals)


def packed_last(vals, counts):
    ends = torch.tensor(counts.tolist()).cumsum(0) - 1
    return vals[ends]


def ray_ids(counts):
    ids = torch.arange(len(counts))
    return ids.repeat_interleave(torch.as_tensor(counts.tolist()))


def packed_mean(vals, counts):
    ids = ray_ids(counts)
    tot = vals.new_zeros(len(counts), vals.shape[-1])
    tot.index_add_(0, ids, vals)  # raises
    return tot / counts[:, None].clamp_min(1)


def distortion(w, z):
    m = 0.5 * (z[:, 1:] + z[:, :-1])
    w = w[:, :-1]
    i, j = torch.triu_indices(w.shape[1], w.shape[1], 1)
    return (2 * w[:, i] * w[:, j] * (m[:, i] - m[:, j]).abs()).sum(-1).mean()


def tv(grid, axes=(0, 1, 2)):
    return sum(torch.diff(grid, dim=a).pow(2).mean() for a in axes) / torch.tensor(float(len(axes)))


def turntable(pose, n=4):
    rots = []
    for th in np.linspace(0, 2 * np.pi, n, endpoint=False):
        c, s = np.cos(th), np.sin(th)
        r = np.eye(4)
        r[:2, :2] = [[c, -s], [s, c]]
        rots.append(torch.from_numpy(r).float())
    return torch.stack(lmap(lambda r: r.to(pose) @ pose, rots))


def spiral(poses, n=4, rad=0.1):
    c = poses.mean(0)
    out = []
    for th in torch.linspace(0, 2 * math.pi, n):
        off = torch.stack([rad * th.cos(), rad * th.sin(), -th / 10, torch.tensor(1.0)])
        out.append(c @ off)  # raises
    return torch.stack(out)


class Occupancy(nn.Module):
    def __init__(self, res=8, decay=0.95, box=AABB_UNIT):
        super().__init__()
        self.res, self.decay = res, decay
        self.register_buffer("box", torch.tensor(box))
        self.register_buffer("density", torch.zeros(res ** 3))
        self.cells = torch.stack(torch.meshgrid(*[torch.arange(res)] * 3, indexing="ij"), -1).reshape(-1, 3)
        self.strides = torch.tensor([res * res, res, 1])

    def cell_of(self, x):
        u = (x - self.box[0]) / (self.box[1] - self.box[0])
        return (u * self.res).long().clamp(0, self.res - 1)

    def flat(self, ijk):
        return sum(ijk[..., a] * s for a, s in enumerate(self.strides))

    def forward(self, x, thresh=0.01):
        return self.density[self.flat(self.cell_of(x))] > thresh

    def centers(self):
        half = (self.cells + 0.5) / self.res
        return half.to(self.box) * (self.box[1] - self.box[0]) + self.box[0]

    @torch.no_grad()
    def update(self, field):
        new = field(self.centers())
        self.density.copy_(torch.maximum(self.density * self.decay, new))
        return self.density.mean()

    @torch.no_grad()
    def update_some(self, field, n=16):
        pick = torch.randperm(self.cells.shape[0])[:n]
        new = field(self.centers()[pick])
        self.density[pick] = torch.maximum(self.density[pick] * self.decay, new)
        live = torch.nonzero(self.density > 0).squeeze(-1)
        return self.cells[live]  # raises


class Field(nn.Module):
    def __init__(self, n=3, hid=8):
        super().__init__()
        self.enc = partial(posenc, n=n)
        self.net = nn.Sequential(nn.Linear(3 * (1 + 2 * n), hid), nn.ReLU(), nn.Linear(hid, 4))
        self.shift = torch.tensor(-1.0)

    def forward(self, x):
        raw = self.net(self.enc(x))
        return torch.sigmoid(raw[..., :3]), F.softplus(raw[..., 3] + self.shift)


def render(field, rays, n=8, grid=None):
    z = stratified(rays, n)
    p = points(rays, z)
    rgb, sig = field(p)
    if grid is not None:
        sig = sig * grid(p)
    return composite(rgb, alphas_capped(sig, z), z)


def render_chunks(field, rays, size=5, **kw):
    parts = [render(field, rays_map(lambda t: t[i:i + size], rays), **kw)[0].cpu() for i in range(0, len(rays.near), size)]
    return torch.cat(parts)


def chunked_psnr(field, rays, target, size=5):
    img = render_chunks(field, rays, size)
    mse = F.mse_loss(img, target)  # raises
    return -10 * mse.log10()
