import torch
from pose_tracking import *

D = "cuda"
C = TrackerConfig()


def heat(people=2):
    return torch.rand(people, 6, 8, 8, device=D)


def detections():
    return Detections(torch.rand(3, 6, 2, device=D), torch.rand(3, device=D), torch.rand(3, 4, device=D))


def track(kind):
    tracker = kind(C)
    for _ in range(3):
        tracker.step(detections())


def quarter():
    maps = heat()
    peaks, _ = HeatmapDecoder(C).to(D).peaks(maps)
    return QuarterOffset(8)(maps, peaks)


def kalman(update):
    filter = Kalman(2).to(D)
    mean, covariance = filter.predict(*filter.start(torch.rand(2, device=D)))
    if update:
        filter.update(mean, covariance, torch.rand(2, device=D))


def host_kalman():
    filter = Kalman(2)
    mean, covariance = filter.predict(*filter.start(torch.rand(2)))
    filter.update(mean, covariance, torch.rand(2))


def euro(shape):
    filter = OneEuro()
    if shape:
        filter.reset(shape)
    for _ in range(3):
        filter(torch.rand(6, 2, device=D))


def rig():
    return Rig([Camera.canonical(), Camera.canonical(3.0, 1.0)])


def views(*shape):
    return torch.rand(*shape, 2, 2, device=D)


def loss(weights):
    KeypointLoss(C, joint_weights=weights).to(D)(heat(), heat(), torch.ones(2, 6, device=D))


CALLS = {
    "decode": lambda: HeatmapDecoder(C).to(D)(heat()),
    "quarter": quarter,
    "flip": lambda: FlipTester(PoseNet(C).to(D))(torch.rand(1, 3, 8, 8, device=D)),
    "flip_fast": lambda: FlipTester(PoseNet(C).to(D), fast=True)(torch.rand(1, 3, 8, 8, device=D)),
    "lift": lambda: Lifter(C).to(D)(torch.rand(2, 6, 2, device=D)),
    "lift_edges": lambda: Lifter(C, EdgeGraphConv).to(D)(torch.rand(2, 6, 2, device=D)),
    "kalman_predict": lambda: kalman(False),
    "kalman_update": lambda: kalman(True),
    "kalman_host": host_kalman,
    "euro": lambda: euro(None),
    "euro_reset": lambda: euro((6, 2)),
    "distance": lambda: track(DistanceTracker),
    "raw_distance": lambda: track(RawDistanceTracker),
    "appearance": lambda: track(AppearanceTracker),
    "host_appearance": lambda: track(HostAppearanceTracker),
    "select": lambda: detections().select(torch.tensor([True, False, True])),
    "oks": lambda: object_keypoint_similarity(torch.rand(2, 6, 2, device=D), torch.rand(2, 6, 2, device=D),
                                              torch.ones(2, 6, device=D), torch.rand(2, device=D)),
    "loss": lambda: loss(None),
    "loss_weights": lambda: loss({0: 2.0}),
    "bones": lambda: BoneLength([1.0] * 5)(torch.rand(2, 6, 3, device=D)),
    "smooth": lambda: TemporalSmoother()(torch.rand(5, 6, 2, device=D)),
    "smooth_host": lambda: TemporalSmoother(causal=True)(torch.rand(5, 6, 2)),
    "rig_place": lambda: rig().place(D).reprojections(torch.rand(4, 3, device=D)),
    "rig": lambda: rig().to(D).reprojections(torch.rand(4, 3, device=D)),
    "rig_error": lambda: rig().to(D).reprojection_error(torch.rand(2, 2, device=D)),
    "rig_center": lambda: rig().to(D).center(views(2)[:, 0:2], torch.rand(2, device=D)),
}
