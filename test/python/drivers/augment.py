import torch
from augment import *

torch.manual_seed(0)
D = "cuda:0"


def batch(device=D):
    boxes = torch.rand(4, 3, 4, device=device) * 8
    boxes[..., 2:] += boxes[..., :2] + 4
    return torch.rand(4, 3, 32, 32, device=device), boxes


def run(name, **options):
    return build_augmentations([dict(type=name, **options)]).to(D)(*batch())


def two_gpus():
    vignette = Vignette()
    vignette(*batch("cuda:0"))
    vignette(*batch("cuda:1"))


def two_spots():
    spotlight(batch("cuda:0")[0])
    spotlight(batch("cuda:1")[0])


def mosaicked():
    images, boxes = batch()
    canvas, moved = mosaic(images, list(boxes))
    return canvas.sum() + moved.sum()


U8 = lambda: (batch()[0][0] * 255).byte()
LABELS = lambda n: torch.arange(n, device=D)
CALLS = {
    "hflip": lambda: run("hflip", p=1.0),
    "vflip": lambda: run("vflip"),
    "normalize": lambda: run("normalize"),
    "denormalize": lambda: Denormalize()(batch()[0]),
    "uint8": lambda: Denormalize().to_uint8(batch()[0][0]),
    "color": lambda: run("color_twist", p=1.0),
    "blur": lambda: run("blur", p=1.0),
    "affine": lambda: run("affine", p=1.0),
    "vignette": lambda: Vignette()(*batch()),
    "vignettes": two_gpus,
    "spots": two_spots,
    "gamma": lambda: GammaTable(0.8)(U8()),
    "gamma_adjust": lambda: GammaTable(0.8).adjust(U8()),
    "mixup": lambda: Mixup()(batch()[0], LABELS(4)),
    "mixup_elem": lambda: Mixup(mode="elem")(batch()[0], LABELS(4)),
    "erase": lambda: RandomErasing()(batch()[0]),
    "clip": lambda: clip_boxes(batch()[1], (32, 32)),
    "largest": lambda: keep_largest(batch()[1][0], LABELS(3), 2),
    "small": lambda: drop_small(batch()[1][0], LABELS(3)),
    "mosaic": mosaicked,
}
