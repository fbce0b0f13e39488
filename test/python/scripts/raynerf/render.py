import torch

from fields import DampNear


def along(near, far, count, rays, jitter, device):
    edges = torch.linspace(near, far, count + 1, device=device)
    width = (far - near) / count
    offset = torch.rand(rays, count, device=device) if jitter else torch.full((rays, count), 0.5, device=device)
    return edges[:-1] + offset * width


def finer(depths, weights, count):
    """More depths, where the weights are."""
    middle = (depths[:, 1:] + depths[:, :-1]) / 2
    pdf = weights[:, 1:-1] + 1e-4
    cdf = torch.cumsum(pdf / pdf.sum(-1, keepdim=True), -1)
    cdf = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], -1)
    u = torch.rand(len(cdf), count, device=cdf.device)
    place = torch.searchsorted(cdf, u, right=True).clamp(1, cdf.shape[1] - 1)
    low, high = cdf.gather(1, place - 1), cdf.gather(1, place)
    part = (u - low) / (high - low).clamp(min=1e-5)
    a, b = middle.gather(1, place - 1), middle.gather(1, place.clamp(max=middle.shape[1] - 1))
    return torch.sort(torch.cat([depths, a + part * (b - a)], -1), -1).values


def composite(density, colour, depths, background):
    gaps = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full_like(depths[:, :1], 0.2)], -1)
    alpha = 1 - torch.exp(-density * gaps)
    through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-7], -1), -1)[:, :-1]
    weights = alpha * through
    seen = (weights[..., None] * colour).sum(1)
    return seen + (1 - weights.sum(1, keepdim=True)) * background, weights


class Renderer:
    """A coarse field says where the fine one has to look; each may have a GPU to itself."""

    def __init__(self, coarse, fine, coarse_device, fine_device, damp=False, near=1.5, far=4.5):
        self.coarse, self.fine = coarse.to(coarse_device), fine.to(fine_device)
        self.coarse_device, self.fine_device = coarse_device, fine_device
        self.damp = damp
        self.near, self.far = near, far
        self.background = torch.tensor(1.0)

    def __call__(self, origins, directions, counts=(8, 8), jitter=True):
        o, d = origins.to(self.coarse_device), directions.to(self.coarse_device)
        depths = along(self.near, self.far, counts[0], len(o), jitter, self.coarse_device)
        density, colour = self.coarse(o[:, None] + depths[..., None] * d[:, None], d)
        if self.damp:
            density = DampNear.apply(density)
        rough, weights = composite(density, colour, depths, self.background)
        depths = finer(depths, weights.detach(), counts[1]).to(self.fine_device)
        o, d = origins.to(self.fine_device), directions.to(self.fine_device)
        density, colour = self.fine(o[:, None] + depths[..., None] * d[:, None], d)
        smooth, _ = composite(density, colour, depths, self.background)
        return rough, smooth
