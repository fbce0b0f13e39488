import torch
from dense_heads import *  # noqa: F401,F403

D = torch.device("cuda:0")


def boxes(n=6, size=32):
    g = torch.Generator().manual_seed(0)
    xy = torch.rand(n, 2, generator=g) * size / 2
    return torch.cat([xy, xy + 4 + torch.rand(n, 2, generator=g) * size / 3], 1).to(D)


def feats():
    return [torch.rand(1, 4, 4, 4, device=D), torch.rand(1, 4, 2, 2, device=D)]


def labels(n, c=2):
    return torch.arange(n, device=D) % c


def head(**kw):
    return CoordMaskHead(**kw).to(D)


def gen():
    return AnchorGenerator().to(D)


def masks(n=3):
    return BitMasks(torch.rand(n, 8, 8, device=D) > 0.5)


def roundtrip(kind):
    coder = build_coder(kind)
    b = boxes()
    return coder.decode(b, coder.encode(b, b + 1), max_shape=(32, 32))


def inside(device):
    g = gen()
    anchors = g(feats())
    return inside_flags(anchors, g.valid_flags(feats(), (32, 32), device=device), (32, 32))


SEG = lambda: (torch.rand(2, 3, 4, 4, device=D), torch.randint(0, 3, (2, 4, 4), device=D))  # noqa: E731

CALLS = {
    "delta_roundtrip": lambda: roundtrip({"type": "delta", "stds": (0.1, 0.1, 0.2, 0.2)}),
    "bucket_roundtrip": lambda: roundtrip({"type": "bucket"}),
    "bucket_expectation": lambda: BucketCoder().expectation(torch.rand(5, 32, device=D)),
    "anchors_cached": lambda: gen()(feats()),
    "anchors_single": lambda: gen().single_level(feats()[0], 0),
    "inside": lambda: inside(D),
    "inside_default": lambda: inside(None),
    "keep_valid": lambda: keep_valid(gen()(feats()), gen().valid_flags(feats(), (16, 16))),
    "assign": lambda: MaxIoUAssigner().assign(boxes(), boxes(3), labels(3)),
    "assign_limit": lambda: MaxIoUAssigner(gpu_limit=1).assign(boxes(), boxes(3), labels(3)),
    "assign_level": lambda: ATSSLikeAssigner().assign_by_level(boxes(), boxes(2), (4, 2)),
    "sample": lambda: RandomSampler(3).sample(labels(12)),
    "sample_hard": lambda: HardNegativeSampler(3).sample(labels(12), torch.rand(12, device=D)),
    "sample_hard_numpy": lambda: HardNegativeSampler(3).sample(labels(12), torch.rand(12, device=D), numpy=True),
    "coord_head": lambda: (lambda h, x: h.select(h(x), labels(2)))(head(), torch.rand(2, 4, 4, 4, device=D)),
    "coord_head_default": lambda: head(explicit=False)(torch.rand(2, 4, 4, 4, device=D)),
    "paste": lambda: paste_masks(torch.rand(3, 4, 4, device=D), boxes(3), (32, 32)),
    "bitmask_boxes": lambda: masks().bounding_boxes(),
    "bitmask_centers": lambda: masks()[labels(2)].centers(),
    "bitmask_polygons": lambda: BitMasks.from_polygons([(0, 0, 4, 4), (1, 2, 5, 8)], (8, 8))[labels(2) > 0].centers(),
    "qfl": lambda: QualityFocalLoss().to(D)(torch.rand(4, 2, device=D), labels(4, 3), torch.rand(4, device=D)),
    "qfl_weight": lambda: QualityFocalLoss(class_weight=[1.0, 2.0]).to(D)(
        torch.rand(4, 2, device=D), labels(4, 3), torch.rand(4, device=D)),
    "ghm": lambda: GHMLoss(momentum=0.5).to(D)(torch.rand(4, 2, device=D), torch.ones(4, 2, device=D)),
    "dice": lambda: dice_loss(*SEG(), weight=[1, 2, 3]),
    "dice_ignore": lambda: dice_loss(*SEG(), ignore=(0,)),
    "pooler": lambda: RoIPooler((1.0, 0.5))([torch.rand(3, 16, 16, device=D), torch.rand(3, 8, 8, device=D)], boxes()),
}
