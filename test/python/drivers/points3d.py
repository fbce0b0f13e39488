import torch
import points3d as p

D = "cuda"
S = p.GridSpec()


def r(*a):
    return torch.rand(*a, device=D)


def pts(n=20):
    return (r(n, 4) - 0.5) * 4


def bx(n=4):
    t = r(n, 7) * 2 - 1
    t[:, 3:6] = r(n, 3) + 0.5
    return t


def vox():
    return p.Voxelizer(S).to(D)


def grid():
    return p.AnchorGrid(S, [(1.0, 2.0, 1.5), (0.5, 0.5, 1.0)]).to(D)


def cls(n=4):
    return torch.arange(n, device=D) % 2


CALLS = {
    "voxel": lambda: vox()(pts()),
    "dense": lambda: vox().dense(pts()),
    "centres": lambda: vox().centres(torch.zeros(3, 3, dtype=torch.long, device=D)),
    "fps": lambda: p.farthest_points(r(2, 9, 3), 4),
    "fps_mask": lambda: p.farthest_of_mask(r(2, 9, 3), r(2, 9) > 0.2, 3),
    "ball": lambda: p.ball_query(r(2, 9, 3), r(2, 3, 3), 0.5, 3),
    "three": lambda: p.nearest_three(r(2, 9, 3), r(2, 4, 3), r(2, 4, 5)),
    "edge": lambda: p.EdgeConv(3, 5).to(D)(r(2, 8, 3)),
    "edge_flat": lambda: p.EdgeConv(3, 5, flat=True).to(D)(r(2, 8, 3)),
    "corners": lambda: p.Boxes(bx()).corners(),
    "rotate": lambda: p.Boxes(bx()).rotate(0.3),
    "flip": lambda: p.Boxes(bx()).flip(),
    "contains": lambda: p.Boxes(bx()).contains(r(6, 3)),
    "iou": lambda: p.Boxes(bx()).bev_iou(p.Boxes(bx(3))),
    "export": lambda: p.Boxes(bx()).export(),
    "cat": lambda: p.Boxes.cat([p.Boxes(bx()), p.Boxes(bx())]),
    "anchors": lambda: grid()(r(1, 4, 3, 3)),
    "anchors_mean": lambda: grid().mean_size(r(1, 4, 3, 3)),
    "encode": lambda: p.BoxCoder().encode(bx(), bx()),
    "decode": lambda: p.BoxCoder().decode(bx(), bx()),
    "assign": lambda: p.Assigner()(bx(6), bx(2), cls(2)),
    "assign_class": lambda: p.Assigner().per_class(bx(6), bx(2), cls(2)),
    "nms": lambda: p.suppress(p.Boxes(bx()), r(4)),
    "soft_nms": lambda: p.suppress_soft(p.Boxes(bx()), r(4) + 0.1),
    "heat": lambda: p.CentreTargets(S, 2).heat(p.Boxes(bx(2)), cls(2)),
    "focal": lambda: p.CentreTargets(S, 2).focal(r(2, 8, 8) * 0.8 + 0.1, p.Boxes(bx(2)), cls(2)),
    "kabsch": lambda: p.kabsch(r(6, 3), r(6, 3)),
    "align": lambda: p.align(r(6, 3), r(8, 3)),
    "pose": lambda: p.apply_pose(r(5, 3), r(6, 3), r(8, 3)),
}
