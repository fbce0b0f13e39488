from video_tracking import *
import torch
D = "cuda:0"
cfg = TrackerConfig()
r = lambda *s, d=D: torch.randn(*s, device=d)


def boxes(n):
    xy = torch.rand(n, 2, device=D) * 10
    return torch.cat([xy, xy + 1 + torch.rand(n, 2, device=D) * 5], dim=1)


def result():
    return {"boxes": boxes(6), "scores": torch.rand(6, device=D) + 0.2, "labels": torch.randint(2, (6,), device=D)}


def queue():
    q = FeatureQueue(cfg).to(D)
    q.enqueue(r(6, 8)); q.enqueue(r(12, 8))
    return q(r(3, 8))


def memory(read):
    m = LongTermMemory()
    for _ in range(3):
        m.write(r(4, 8), r(4, 8))
    m.usage(4)
    return m.read(r(2, 8)) if read else m


def kalman(project):
    k = KalmanFilter()
    mean, cov = k.predict(*k.initiate(torch.rand(3, 4, device=D)))
    return k.project(mean, cov) if project else mean


def spawn():
    s = TrackState(cfg)
    s.retire()
    s.spawn(boxes(4), torch.ones(4, device=D))


def warp(*devices):
    w = FlowWarper()
    for d in devices:
        w(r(2, 3, 6, 8, d=d), r(2, 2, 6, 8, d=d))


CALLS = {
    "iou": lambda: match_by_iou(boxes(3), boxes(4)),
    "appearance": lambda: match_by_appearance(r(3, 8), r(4, 8)),
    "queue": queue,
    "memory": lambda: memory(False),
    "memory_read": lambda: memory(True),
    "kalman": lambda: kalman(False),
    "kalman_project": lambda: kalman(True),
    "retire": lambda: TrackState(cfg).retire(),
    "spawn": spawn,
    "filter": lambda: filter_detections(result(), ["a", "b"]),
    "times": lambda: frame_times(result()),
    "warp": lambda: warp("cuda:0", "cuda:0"),
    "warp_two": lambda: warp("cuda:0", "cuda:1"),
    "stabilise": lambda: stabilise(r(2, 3, 6, 6), [0.1, 0.2]),
    "seq": lambda: SequenceLoss().to(D)([r(2, 2, 4, 4) for _ in range(3)], r(2, 2, 4, 4)),
    "seq_dot": lambda: SequenceLoss().to(D).per_iteration([r(2, 2, 4, 4) for _ in range(3)], r(2, 2, 4, 4)),
    "epe": lambda: endpoint_error(r(2, 2, 4, 4), r(2, 2, 4, 4), torch.ones(2, 4, 4, device=D)),
    "siamese": lambda: SiameseHead(cfg).to(D)(r(2, 4, 3, 3), r(2, 4, 7, 7)),
    "query": lambda: QueryUpdater(8).to(D)(r(3, 2, 8)),
    "query_resume": lambda: QueryUpdater(8).to(D).resume(r(3, 2, 8)),
    "query_adapt": lambda: QueryUpdater(8).to(D).adapt(r(2, 5)),
    "pool": lambda: pool_by_track(r(4, 8), [0, 1, 1, 2], 3),
    "histogram": lambda: track_histogram(torch.randint(4, (3, 5), device=D), 4),
}
