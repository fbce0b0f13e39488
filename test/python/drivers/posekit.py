import numpy as np
import torch

import posekit as K

D = torch.device("cuda:0")
P = lambda *s: torch.rand(*s, device=D)
Q = lambda n=2: torch.nn.functional.normalize(torch.randn(n, 4, device=D), dim=-1)
R = lambda n=2: K.quaternion_to_matrix(Q(n))


def _boxes(n=4):
    xy = P(n, 2)
    return torch.cat([xy, xy + 0.5 + P(n, 2)], 1)


def _given_params():
    jitter = K.ColorJitter().to(D)
    return jitter(P(2, 3, 4, 4), {"factor": torch.ones(2, device=D)})


def _resized():
    return K.PointRenderer().resize(5).to(D)(P(1, 3, 2), size=5)


CALLS = {
    "format_tensor": lambda: K.format_tensor(P(2)) + K.format_tensor(1.0),
    "hat": lambda: K.hat(P(2, 3)),
    "so3_exp": lambda: K.so3_exp(P(2, 3)),
    "so3_log": lambda: K.so3_log(R()),
    "euler": lambda: K.euler_to_matrix(P(2, 3), "ZYX"),
    "slerp": lambda: K.slerp(Q(), Q()),
    "random_rotations": lambda: K.random_rotations(2, like=P(1)) @ R(),
    "rotate": lambda: K.Rotate3d(R()).transform_points(P(2, 5, 3)),
    "translate": lambda: K.Translate(P(2, 3)).transform_points(P(2, 5, 3)),
    "translate_default": lambda: K.Translate((0.0, 0.0, 1.0)).transform_points(P(2, 5, 3)),
    "compose_moved": lambda: K.Rotate3d(R()).compose(K.Translate((0.0, 0.0, 1.0))).to(D).transform_points(P(2, 5, 3)),
    "look_from": lambda: K.Transform3d(device=D).look_from(R()).transform_points(P(2, 5, 3)),
    "camera": lambda: K.PinholeCamera().project(P(1, 5, 3)),
    "camera_for_points": lambda: K.PinholeCamera.for_points(P(1, 5, 3), focal=2.0).crop(P(4)).project(P(1, 5, 3)),
    "unproject": lambda: K.PinholeCamera().unproject(P(1, 5, 2), P(1, 5, 1)),
    "rays": lambda: K.screen_rays(K.PinholeCamera(rotation=R(1), device=D), 2, 3),
    "renderer": lambda: K.PointRenderer().to(D)(P(1, 3, 2)),
    "renderer_resized": _resized,
    "renderer_resizing": lambda: K.PointRenderer().to(D)(P(1, 3, 2), size=6),
    "anchors": lambda: K.anchors_for([P(1, 2, 3, 3), P(1, 2, 2, 2)], [4, 8]),
    "encode_boxes": lambda: K.encode_boxes(_boxes(), _boxes()),
    "nms": lambda: _boxes()[K.greedy_nms(_boxes(), P(4))],
    "batched_nms": lambda: K.batched_nms(_boxes(), P(4), torch.randint(2, (4,), device=D)),
    "batched_nms_top": lambda: K.batched_nms(_boxes(), P(4), torch.randint(2, (4,), device=D), top=2),
    "jitter": lambda: K.ColorJitter().to(D)(P(2, 3, 4, 4)),
    "jitter_given": _given_params,
    "affine": lambda: K.RandomAffine(p=0.9).to(D)(P(3, 3, 4, 4)),
    "mosaic": lambda: K.mosaic(P(3, 3, 2, 2)),
    "cutout": lambda: K.cutout(P(2, 3, 4, 4), [(0, 0, 2, 2), (1, 1, 3, 3)]),
    "cutout_fill": lambda: K.cutout(P(2, 3, 4, 4), [(0, 0, 2, 2), (1, 1, 3, 3)], np.ones(3, np.float32)),
}
