import numpy as np
import torch
from pointcloud import *

torch.manual_seed(0)
np.random.seed(0)
D = "cuda:0"
K = np.array([[8.0, 0, 8], [0, 8.0, 8], [0, 0, 1]])


def cloud(*shape, device=D):
    return torch.rand(*(shape or (2, 20, 3)), device=device) + torch.tensor([0.0, 0.0, 1.0], device=device)


def rotation():
    return torch.eye(3, device=D)[None]


def aligned():
    points = cloud(20, 3)
    return kabsch(points, points.flip(-1))


def sampled():
    points = cloud()
    index = farthest_points(points, 5)
    return points[torch.arange(2)[:, None], index]


COUNTS = lambda: torch.tensor([2, 3], device=D)
CAMERA = lambda: PinholeCamera(K)
CALLS = {
    "hat": lambda: hat(cloud(2, 3)),
    "exp": lambda: so3_exp(cloud(2, 3)),
    "log": lambda: so3_log(torch.eye(3, device=D)[None].roll(1, 1)),
    "sh": lambda: spherical_harmonics(cloud(5, 3)),
    "translate": lambda: Transform3d().translate(cloud(2, 3)).transform_points(cloud()),
    "rotate": lambda: Transform3d().rotate(rotation()),
    "rotate_gpu": lambda: Transform3d(device=D).rotate(rotation()).transform_points(cloud()),
    "random_rotate": lambda: RandomRotate()(cloud()),
    "random_scale": lambda: NormalizeScale()(RandomScaleJitter()(cloud())),
    "knn": lambda: knn(cloud(), 3, chunk=7),
    "graph": lambda: graph_feature(cloud()),
    "gather": lambda: gather_neighbours(cloud()),
    "fps": sampled,
    "ball": lambda: ball_query(cloud(), cloud(2, 4, 3)),
    "batch_vector": lambda: batch_vector(COUNTS()),
    "batch_of": lambda: batch_of(COUNTS()),
    "packed": lambda: packed_to_list(cloud(5, 3), COUNTS()),
    "crop": lambda: Voxelizer().crop(cloud(9, 3)),
    "voxel_mean": lambda: Voxelizer().mean_features(cloud(9, 3), torch.randn(9, 4, device=D)),
    "centroids": lambda: Voxelizer().centroids(cloud(9, 3)),
    "depth": lambda: CAMERA().depth_map(cloud(9, 3)),
    "project": lambda: CAMERA().project(cloud(9, 3)),
    "rays": lambda: CAMERA().rays(torch.eye(4, device=D)),
    "unproject": lambda: CAMERA().unproject(torch.rand(16, 16, device=D)),
    "kabsch": aligned,
    "axes": lambda: principal_axes(cloud(9, 3)),
    "outliers": lambda: remove_outliers(cloud(20, 3)),
    "template": lambda: TemplateLoss([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]).to(D)(cloud()),
}
