import torch

import warpkit as W

D = torch.device("cuda:0")
R = lambda *s: torch.rand(*s, device=D)
EYE = lambda n, b=1: torch.eye(n, device=D).repeat(b, 1, 1)


def _camera():
    return W.PinholeCamera.from_parameters(2.0, 2.0, 1.0, 1.0, 1.0, 4, 4, device=D)


CALLS = {
    "grid": lambda: W.create_meshgrid(3, 4, device=D) + R(1, 3, 4, 2),
    "norm": lambda: W.normal_transform_pixel(3, 4, device=D) @ EYE(3),
    "normalize_homography": lambda: W.normalize_homography(EYE(3), (4, 4), (5, 5)),
    "transform_points": lambda: W.transform_points(EYE(3), R(1, 5, 2)),
    "warp": lambda: W.warp_perspective(R(2, 3, 4, 4), EYE(3, 2), (3, 3)),
    "remap": lambda: W.remap(R(1, 1, 4, 4), R(1, 4, 4, 2)),
    "rotation": lambda: W.rotation_matrix2d(R(2, 2), R(2)),
    "rotation_scale": lambda: W.rotation_matrix2d(R(2, 2), R(2), R(2)),
    "dlt": lambda: W.find_homography_dlt(R(1, 5, 2), R(1, 5, 2)),
    "dlt_weights": lambda: W.find_homography_dlt(R(1, 5, 2), R(1, 5, 2), R(1, 5)),
    "blur": lambda: W.gaussian_blur2d(R(1, 2, 5, 5)),
    "separable": lambda: W.separable_blur(R(1, 2, 5, 5)),
    "gradient": lambda: W.spatial_gradient(R(1, 2, 5, 5)),
    "sobel": lambda: W.Sobel().to(D)(R(1, 2, 5, 5)),
    "hsv": lambda: W.rgb_to_hsv(R(2, 3, 4, 4)),
    "xyz": lambda: W.rgb_to_xyz(R(2, 3, 4, 4)),
    "gamma": lambda: W.adjust_gamma(R(2, 3, 4, 4), 0.5, 1.0),
    "gamma_tensor": lambda: W.adjust_gamma(R(2, 3, 4, 4), R(2), R(1)),
    "posterize": lambda: W.posterize(R(3, 4, 4)),
    "jitter": lambda: W.ColorJitter(p=1.0).to(D)(R(2, 3, 4, 4)),
    "erasing": lambda: W.RandomErasing(p=1.0).to(D)(R(2, 3, 4, 4)),
    "normalize": lambda: W.Normalize([0.5] * 3, [0.2] * 3).to(D)(R(2, 3, 4, 4)),
    "denormalize": lambda: W.Denormalize([0.5] * 3, [0.2] * 3).to(D)(R(2, 3, 4, 4)),
    "project": lambda: _camera().project(R(1, 5, 3)),
    "unproject": lambda: _camera().unproject(R(1, 5, 2), R(1, 5, 1)),
    "depth": lambda: W.depth_to_points(R(1, 1, 4, 4), EYE(3)),
    "argmax": lambda: W.soft_argmax2d(R(1, 2, 4, 4)),
    "draw": lambda: W.draw_points(R(3, 4, 4), R(3, 2) * 3),
    "to_image": lambda: W.tensor_to_image(R(1, 3, 4, 4)),
    "save_grid": lambda: W.save_grid([R(3, 2, 2) for _ in range(4)]),
}
