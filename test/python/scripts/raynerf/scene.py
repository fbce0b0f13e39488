import math

import torch
from torch.utils.data import Dataset


def look_from(angle, radius=3.0):
    """Camera to world, seen from a circle around the origin."""
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[-s, 0.0, c, radius * c], [c, 0.0, s, radius * s], [0.0, 1.0, 0.0, 0.0]])


class Camera:
    def __init__(self, size, focal):
        self.size, self.focal = size, focal
        line = torch.arange(size) + 0.5 - size / 2
        y, x = torch.meshgrid(line, line, indexing='ij')
        self.directions = torch.stack([x / focal, -y / focal, -torch.ones_like(x)], -1).view(-1, 3)

    def rays(self, pose):
        directions = self.directions.to(pose.device) @ pose[:, :3].t()
        origin = pose[:, 3].expand_as(directions)
        return origin, directions / directions.norm(dim=-1, keepdim=True)


def paint(origins, directions):
    """The colours of a ball that is lit from above, on white."""
    b = (origins * directions).sum(-1)
    disc = b ** 2 - ((origins ** 2).sum(-1) - 1.0)
    hit = disc > 0
    point = origins + (-b - disc.clamp(min=0).sqrt())[:, None] * directions
    shade = 0.5 + 0.5 * point[:, 2:].clamp(-1, 1)
    colour = shade * torch.tensor([0.9, 0.3, 0.2])
    return torch.where(hit[:, None], colour, torch.ones(()).expand_as(colour))


class Rays(Dataset):
    def __init__(self, camera, views, first=0.0):
        self.poses = torch.stack([look_from(first + 2 * math.pi * k / views) for k in range(views)])
        made = [camera.rays(p) for p in self.poses]
        self.origins = torch.cat([o for o, _ in made])
        self.directions = torch.cat([d for _, d in made])
        self.colours = paint(self.origins, self.directions)

    def __len__(self):
        return len(self.origins)

    def __getitem__(self, i):
        return self.origins[i], self.directions[i], self.colours[i]
