import numpy as np
import torch
import camera_geometry as G

C = "cuda:0"


def r(*shape):
    return torch.randn(*shape, device=C)


def rot(n):
    return G.so3_exp(r(n, 3))


def H(n=1):
    return torch.eye(3, device=C).repeat(n, 1, 1) + 0.01 * r(n, 3, 3)


K = np.array([[5.0, 0, 2], [0, 5.0, 2], [0, 0, 1]])
P = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1], [0.3, 0.6], [0.2, 0.1]])
CALLS = {
    "normalize": lambda: G.normalize_homography(H(), (4, 5), (4, 5)),
    "denormalize": lambda: G.denormalize_homography(H(), (4, 5), (4, 5)),
    "from_points": lambda: G.homography_from_points(P.to(C)[None], P.to(C)[None] * 2),
    "so3": lambda: rot(3),
    "angle": lambda: G.so3_relative_angle(rot(2), rot(2)),
    "jitter": lambda: G.jitter_poses(rot(2)),
    "augment": lambda: G.augment_poses(rot(2)),
    "look_at": lambda: G.look_at_rotation(r(2, 3)),
    "orbit": lambda: G.orbit(r(5, 3), torch.rand(2, device=C), torch.rand(2, device=C)),
    "corners": lambda: G.box_corners(r(2, 3), r(2, 3), r(2)),
    "faces": lambda: G.box_faces(r(2, 3), r(2, 3)),
    "project": lambda: G.PerspectiveCameras().to(C).project(r(1, 5, 3)),
    "project_device": lambda: G.PerspectiveCameras(R=rot(1), device=C).project(r(1, 5, 3)),
    "visible": lambda: G.PerspectiveCameras().to(C).visible(r(1, 5, 3)),
    "band": lambda: G.PerspectiveCameras().to(C).band(r(1, 5, 3)),
    "fisheye": lambda: G.FisheyeCameras().to(C).project(r(1, 5, 3)),
    "fisheye_device": lambda: G.FisheyeCameras(device=C).project(r(1, 5, 3)),
    "distort": lambda: G.distort(r(5, 2)),
    "tilt": lambda: G.tilt(r(1, 5, 2)),
    "blur": lambda: G.blur(r(1, 2, 6, 6)),
    "pyramid": lambda: G.pyramid(r(1, 2, 8, 8)),
    "warp": lambda: G.HomographyWarper(4, 5).to(C)(r(2, 1, 4, 5), H(2)),
    "flow": lambda: G.DepthWarper(K, 4, 5).to(C).flow(r(2, 1, 4, 5), torch.eye(4, device=C)[None].repeat(2, 1, 1)),
    "unproject": lambda: G.DepthWarper(K, 4, 5).to(C).unproject(r(2, 1, 4, 5)),
    "soft_argmax": lambda: G.soft_argmax(r(2, 3, 4, 5)),
    "render": lambda: G.render_gaussians(r(2, 3, 2), 0.5, (4, 5)),
    "pnp": lambda: G.pnp_dlt(r(1, 7, 3), r(1, 7, 2), torch.from_numpy(K).float().to(C)[None]),
    "refine": lambda: G.PoseRefiner().refine(torch.rand(6, device=C), torch.rand(7, 3, device=C), torch.rand(7, 2, device=C)),
    "refine_weight": lambda: G.PoseRefiner(weight=lambda e: 1 / (1 + e.abs())).refine(
        torch.rand(6, device=C), torch.rand(7, 3, device=C), torch.rand(7, 2, device=C)),
    "ransac": lambda: G.Ransac().run(P.to(C), P.to(C) * 2),
    "histogram": lambda: G.Ransac().histogram(H(), P.to(C), P.to(C) * 2),
}
