import torch
from segmentation_heads import *

D = "cuda"


def feats(d=D):
    return [torch.randn(2, 8, 8, 8, device=d), torch.randn(2, 16, 4, 4, device=d)]


def target(d=D):
    t = torch.randint(0, 5, (2, 16, 16), device=d)
    t[:, 0] = 255
    return t


def head(kind, losses=("ce",), thresh=None, d=D, weight=None, **options):
    cfg = HeadConfig(kind=kind, losses=tuple(LossConfig(k, class_weight=weight) for k in losses), sampler_thresh=thresh, options=options)
    return build_head(cfg).to(d)


def net(x):
    return torch.cat([x, x[:, :2]], 1)


def sliding(sigma):
    return SlideInferencer(net, 5, sigma=sigma)(torch.randn(1, 3, 12, 12, device=D))


def meter(weighted):
    m = IntersectionMeter(5)
    m.update(torch.randint(0, 5, (2, 16, 16), device=D), target())
    return m.weighted_iou() if weighted else m.iou().numpy()


def proto(balance):
    h = head("prototype")
    h.update(feats(), target())
    s = h.similarity(feats())
    return h.balance(s) if balance else s


def coord_moved():
    h = head("coord")
    h(feats())
    h.losses(feats(), target())


def pred():
    return torch.randint(0, 5, (2, 6, 6), device=D)


CALLS = {
    "fcn": lambda: head("fcn")(feats()),
    "fcn_loss": lambda: head("fcn", weight=[1., 2, 1, 1, .5]).losses(feats(), target()),
    "fcn_ohem": lambda: head("fcn", thresh=0.7).losses(feats(), target()),
    "dice": lambda: head("fcn", losses=("dice",)).losses(feats(), target()),
    "edge": lambda: head("fcn", losses=("edge",)).losses(feats(), target()),
    "outline": lambda: build_loss(LossConfig("edge"), 5).to(D).pyramid(target()),
    "psp": lambda: head("psp")(feats()),
    "coord": coord_moved,
    "coord_probe": lambda: head("coord", probe_size=8)(feats()),
    "coord_probe_other_size": lambda: head("coord", probe_size=16)(feats()),
    "proto": lambda: proto(False),
    "proto_balance": lambda: proto(True),
    "proto_forward": lambda: head("prototype").losses(feats(), target()),
    "point_refine": lambda: head("point")(feats()) is None or head("point").refine(feats()),
    "point_loss": lambda: head("point").point_loss(feats(), target().clamp(max=4)),
    "meter": lambda: meter(False),
    "meter_weighted": lambda: meter(True),
    "slide": lambda: sliding(None),
    "slide_sigma": lambda: sliding(0.25),
    "colour": lambda: MaskExporter(5).colour(pred()),
    "overlay": lambda: MaskExporter(5).overlay(torch.rand(2, 3, 6, 6, device=D), pred()),
    "suppress": lambda: MaskExporter(5, [1, 2]).suppress_stuff(torch.randn(2, 5, 6, 6, device=D)),
    "areas": lambda: MaskExporter(5).areas(pred()),
    "things": lambda: MaskExporter(5, [1, 2]).things(pred()),
    "rle": lambda: MaskExporter(5).run_lengths(pred()),
}
