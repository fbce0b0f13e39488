import torch

import imgtools as K

D = "cuda:0"
IMG = lambda c=3: torch.rand(2, c, 8, 8, device=D)


def _camera():
    one = torch.ones(2, 1, device=D)
    return K.Camera.from_parameters(one, one, one * 0.5, one * 0.5)


CALLS = {
    "create_meshgrid": lambda: K.create_meshgrid(4, 5, device=torch.device(D)),
    "rotation_matrix": lambda: K.rotation_matrix(torch.rand(2, 2, device=D), torch.rand(2, device=D), torch.ones(2, device=D)),
    "warp_affine": lambda: K.warp_affine(IMG(), torch.eye(2, 3, device=D).repeat(2, 1, 1), (6, 6)),
    "gaussian_kernel": lambda: K.gaussian_kernel(3, 1.0, device=D),
    "blur": lambda: K.Blur().to(D)(IMG()),
    "motion_blur": lambda: K.motion_blur(IMG(), 3, 30.0),
    "sobel": lambda: K.Sobel().to(D)(IMG()),
    "rgb_to_yuv": lambda: K.rgb_to_yuv(IMG()),
    "yuv_to_rgb": lambda: K.yuv_to_rgb(IMG()),
    "get_perspective": lambda: K.get_perspective(torch.rand(2, 4, 2, device=D), torch.rand(2, 4, 2, device=D)),
    "transform_points": lambda: K.transform_points(torch.eye(3, device=D).repeat(2, 1, 1), torch.rand(2, 5, 2, device=D)),
    "distort": lambda: K.distort(torch.rand(2, 5, 2, device=D), torch.rand(2, 4, device=D)),
    "distort_full": lambda: K.distort(torch.rand(2, 5, 2, device=D), torch.rand(2, 8, device=D)),
    "center_crop": lambda: K.CenterCrop(4).to(D)(IMG()),
    "histogram": lambda: K.histogram(IMG(1)),
    "equalize": lambda: K.equalize(IMG(1)),
    "posterize": lambda: K.posterize(IMG(), 3),
    "dilate": lambda: K.dilate(IMG(), torch.ones(3, 3, device=D)),
    "camera_scale": lambda: _camera().scale(torch.ones(2, device=D)),
    "project": lambda: K.project(torch.rand(2, 5, 3, device=D), _camera()),
    "unproject": lambda: K.unproject(torch.rand(2, 5, 2, device=D), torch.rand(2, 5, device=D), torch.eye(3, device=D).repeat(2, 1, 1)),
    "homography": lambda: K.HomographyWarper(8, 8).to(D)(torch.rand(1, 3, 8, 8, device=D)),
    "total_variation": lambda: K.total_variation(IMG(), (1.0, 0.5)),
}
