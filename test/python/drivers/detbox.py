import torch

import detbox as B

D = torch.device("cuda:0")
R = lambda *s: torch.rand(*s, device=D)
I = lambda n, *s: torch.randint(n, s, device=D)


def boxes(n=4):
    lt = R(n, 2)
    return torch.cat([lt, lt + 0.2 + R(n, 2)], 1)


outputs = lambda: {"pred_logits": R(2, 5, 4), "pred_boxes": R(2, 5, 4)}
targets = lambda: [{"labels": I(3, 2), "boxes": R(2, 4)}, {"labels": I(3, 1), "boxes": R(1, 4)}]
feats = lambda: [R(1, 1, 3, 3), R(1, 1, 2, 2)]


def _criterion(*losses):
    return B.SetCriterion(3, B.HungarianMatcher()).to(D)(outputs(), targets(), losses)


def _map():
    m = B.MeanAveragePrecision()
    m.update([{"boxes": boxes(), "scores": R(4)}], [{"boxes": boxes(2)}])
    value = m.compute()
    m.reset()
    return value


def _panoptic():
    m = B.PanopticQuality([1, 2])
    m.update(I(3, 4, 4), I(3, 4, 4))
    return m.compute()


def _points():
    g = B.MlvlPointGenerator([4, 8])
    g.points_of(feats())
    return [p + f.mean() for p, f in zip(g.points_of(feats()), feats())]


CALLS = {
    "iou": lambda: B.box_iou(boxes(), boxes(3)),
    "clip": lambda: B.clip_boxes_to_image(boxes(), (1, 1)),
    "scale": lambda: B.scale_boxes(boxes(), 2.0),
    "scale_two": lambda: B.scale_boxes(boxes(), (2.0, 1.0)),
    "batched_nms": lambda: B.batched_nms(boxes(), R(4), I(2, 4), 0.5),
    "agnostic_nms": lambda: B.batched_nms(boxes(), R(4), I(2, 4), 0.5, True),
    "matrix_nms": lambda: B.matrix_nms(R(3, 4, 4) > 0.3, I(2, 3), R(3)),
    "multiclass_nms": lambda: B.multiclass_nms(boxes(), R(4, 3), 0.1),
    "result": lambda: B.bbox2result(boxes(), I(2, 4), 2),
    "anchors": lambda: [a + R(1) for a in B.AnchorGenerator([4, 8]).grid_priors([(2, 2), (1, 1)], D)],
    "anchors_sparse": lambda: B.AnchorGenerator([4, 8]).sparse_priors(I(8, 3), (2, 2)),
    "anchors_valid": lambda: B.AnchorGenerator([4]).valid_flags((2, 2), (1, 2)) & (R(4) > 0),
    "points": _points,
    "points_distances": lambda: B.MlvlPointGenerator([4, 8]).distances(feats(), R(2, 2)),
    "encode": lambda: B.DeltaXYWHBBoxCoder().encode(boxes(), boxes()),
    "decode": lambda: B.DeltaXYWHBBoxCoder().decode(boxes(), R(4, 4), (2, 2)),
    "iou_assign": lambda: B.MaxIoUAssigner().assign(boxes(), boxes(2), I(3, 2)),
    "iou_assign_cpu": lambda: B.MaxIoUAssigner(gpu_assign_thr=1).assign(boxes(), boxes(2), I(3, 2))[0] + I(2, 4),
    "iou_assign_unlabelled": lambda: B.MaxIoUAssigner().assign(boxes(), boxes(2)),
    "atss": lambda: B.ATSSAssigner().assign(boxes(6), [4, 2], boxes(2)),
    "sampler": lambda: B.RandomSampler(4).sample(I(3, 12)),
    "sampler_list": lambda: B.RandomSampler(4).random_choice([1, 2, 3], 2),
    "criterion_labels": lambda: _criterion("labels"),
    "criterion_boxes": lambda: _criterion("boxes"),
    "gaussian_target": lambda: B.gen_gaussian_target(torch.zeros(5, 5, device="cuda:0"), (2, 2), 1),
    "gaussian_target_second": lambda: B.gen_gaussian_target(torch.zeros(5, 5, device="cuda:1"), (2, 2), 1),
    "ghm": lambda: B.GHMC().to(D)(R(6), I(2, 6).float()),
    "seesaw": lambda: B.SeesawLoss(3).to(D)(R(4, 3), I(3, 4)),
    "map": _map,
    "panoptic": _panoptic,
    "hist": lambda: B.segmentation_hist(I(3, 4, 4), I(3, 4, 4), 3),
}
