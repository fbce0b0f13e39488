import torch
import tracking as T

D = torch.device("cuda:0")


def boxes(n=3):
    xy = torch.arange(n, device=D).float()[:, None] * 10 + torch.zeros(n, 2, device=D)
    return torch.cat([xy, xy + 8], 1)


def z(n=3):
    return torch.rand(n, 4, device=D) + 1


def kf(cls=T.KalmanFilter, **kw):
    f = cls(**kw)
    return f.step(f.initiate(z()), z())


def pool(steps=2):
    p = T.TrackPool()
    for _ in range(steps):
        p.step(boxes(), torch.rand(3, 8, device=D))
    return p


def mem():
    m = T.ReIDMemory().to(D)
    m.push(torch.rand(3, 8, device=D), [4, 5, 6])
    return m


def cleared():
    m = mem()
    m.clear()
    return m


def q():
    return torch.rand(2, 8, device=D)


def heat():
    return torch.rand(2, 3, 6, 8, device=D)


def joints():
    return torch.rand(2, 5, 3, device=D)


def euro():
    e = T.OneEuro()
    return [e(joints()) for _ in range(3)]


CALLS = {
    "cleared_push": lambda: cleared().push(torch.rand(3, 8, device=D), [4, 5, 6]),
    "cleared_forward": lambda: cleared()(q()),
    "cleared_lookup": lambda: cleared().lookup_used(q()),
    "kf": lambda: kf(),
    "kf_damped": lambda: kf(motion="damped"),
    "kf_jitter": lambda: kf(motion="jitter"),
    "kf_robust": lambda: kf(T.RobustKalmanFilter),
    "kf_joseph": lambda: kf(T.JosephKalmanFilter),
    "gating": lambda: T.KalmanFilter().gating(T.KalmanFilter().initiate(z()), z(5)),
    "iou": lambda: T.IoUAssociator()(boxes(), boxes(4)),
    "unmatched": lambda: T.IoUAssociator().unmatched(boxes(2), boxes(4)),
    "flags": lambda: T.MatchFlags().flags(boxes(2), boxes(4)),
    "scipy": lambda: T.ScipyStyleAssociator()(boxes(), boxes(4)),
    "pool": lambda: pool().best(),
    "extrapolate": lambda: pool(1).extrapolate(),
    "weighted": lambda: pool().weighted_feature(),
    "lookup": lambda: mem()(q()),
    "used": lambda: mem().lookup_used(q()),
    "restart": lambda: mem().restart(q()),
    "soft": lambda: T.HeatmapDecoder().to(D)(heat()),
    "refined": lambda: T.RefinedDecoder().to(D)(heat()),
    "blurred": lambda: T.BlurredDecoder().to(D)(heat()),
    "lengths": lambda: T.Skeleton().lengths(joints()),
    "pooled": lambda: T.Skeleton().pooled(joints()),
    "fk": lambda: T.Skeleton().forward_kinematics(joints()),
    "euro": lambda: euro(),
    "savgol": lambda: T.SavGol().smooth(joints()),
    "energy": lambda: T.SavGol().energy(joints()),
}
