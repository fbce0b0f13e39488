import torch

import vision_geometry as V

DEVICE = "cuda:0"


def images():
    return torch.rand(3, 3, 12, 16, device=DEVICE)


def augmented(*names):
    return V.build([(name, {}) for name in names]).to(DEVICE)(images())


def boxes(n=5):
    corner = torch.rand(n, 2, device=DEVICE)
    return torch.cat([corner, corner + 0.2 + torch.rand(n, 2, device=DEVICE)], dim=1)


def camera():
    return V.Camera(torch.eye(3).expand(2, 3, 3), torch.ones(2, 3)).to(DEVICE)


def points(n=9, dims=2):
    return torch.rand(n, dims, device=DEVICE)


CALLS = {
    "normalize": lambda: augmented("normalize", "luma"),
    "denormalize": lambda: augmented("denormalize"),
    "hue": lambda: augmented("hue"),
    "erase_blur": lambda: augmented("erase", "blur"),
    "rotate": lambda: augmented("rotate"),
    "scale": lambda: augmented("scale"),
    "mixup": lambda: V.MixUp()(images()),
    "mixup_each": lambda: V.MixUp(per_sample=True)(images()),
    "cutmix_images": lambda: V.CutMix(4).paste(images()),
    "cutmix": lambda: V.CutMix(4)(images(), torch.tensor([0, 3, 1], device=DEVICE)),
    "axis_angle": lambda: V.axis_angle_to_matrix(points(4, 3)),
    "exponential": lambda: V.exponential_map(points(4, 3)),
    "look_at": lambda: V.look_at(points(4, 3)),
    "look_at_up": lambda: V.look_at(points(4, 3), at=(1.0, 1.0, 0.0), up=(0.0, 0.0, 1.0)),
    "camera_position": lambda: camera().position,
    "camera_project": lambda: camera().project(torch.rand(2, 6, 3, device=DEVICE)),
    "unproject": lambda: V.unproject(torch.rand(2, 4, 5, device=DEVICE), torch.eye(3, device=DEVICE)),
    "backproject": lambda: V.BackprojectDepth(4, 5).to(DEVICE)(torch.rand(2, 4, 5, device=DEVICE), torch.eye(3, device=DEVICE)),
    "backproject_norm": lambda: V.BackprojectDepth(4, 5).to(DEVICE).normalised(torch.rand(2, 2, 20, device=DEVICE)),
    "fundamental": lambda: V.fundamental_matrix(points(), points()),
    "homography": lambda: V.homography(points(4), points(4)) @ points(3, 3),
    "warp": lambda: V.warp_points(points(), torch.eye(3, device=DEVICE)),
    "nms": lambda: V.nms(boxes(), torch.rand(5, device=DEVICE)),
    "soft_nms": lambda: V.soft_nms(boxes(), torch.rand(5, device=DEVICE)),
    "matcher": lambda: V.Matcher()(V.box_iou(boxes(), boxes(4))),
    "matcher_greedy": lambda: V.Matcher().greedy(V.box_iou(boxes(), boxes(4))),
    "ssim": lambda: V.SSIM().to(DEVICE)(images(), images()),
    "perceptual": lambda: V.PerceptualLoss().to(DEVICE)(images(), images()),
    "edges": lambda: V.EdgeLoss().to(DEVICE)(images(), images()),
    "soft_argmax": lambda: V.soft_argmax(torch.rand(2, 3, 8, 8, device=DEVICE)),
}
