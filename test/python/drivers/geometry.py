import torch
from torch import nn
import geometry as G


def drive_angle_to_rotation_matrix():
    G.angle_to_rotation_matrix(torch.rand(3, device="cuda"))


def drive_get_rotation_matrix2d():
    G.get_rotation_matrix2d(torch.rand(2, 2).cuda(), torch.rand(2).cuda(), torch.ones(2, 2).cuda())


def drive_create_meshgrid():
    x = torch.rand(1, 1, 4, 4, device="cuda")
    x + G.create_meshgrid(4, 4, device=x.device, dtype=x.dtype)[..., 0]


def drive_remap():
    img = torch.rand(2, 1, 4, 4, device="cuda")
    m = torch.rand(1, 4, 4, device="cuda")
    G.remap(img, m, m)


def drive_HomographyWarper():
    w = G.HomographyWarper(3, 3)
    net = nn.Sequential(w).to("cuda")
    net[0](torch.rand(2, 1, 5, 5).cuda(), torch.eye(3).repeat(2, 1, 1).cuda())


def drive_PinholeCamera():
    c = G.PinholeCamera.from_parameters(1., 1., .5, .5, 4, 4, 2, device="cuda")
    c.project(torch.rand(2, 3, 3, device="cuda"))
