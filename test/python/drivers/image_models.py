import torch

import image_models as L

D = "cuda:0"


def images(n=4):
    return torch.rand(n, 3, 16, 16, device=D)


def labels(n=4):
    return torch.randint(4, (n,), device=D)


def backbone(kind, **kw):
    return L.build_backbone(L.ImageModelConfig(backbone=kind, **kw)).to(D)


def maps():
    return [torch.zeros(1, 8, n, n, device=D) for n in (4, 2)]


def boxes(n=6):
    low = torch.rand(n, 2, device=D) * 10
    return torch.cat([low, low + 1 + torch.rand(n, 2, device=D) * 5], 1)


def instances():
    return L.Instances(boxes(), torch.rand(6, device=D), torch.randint(2, (6,), device=D),
                       {"heatmaps": torch.rand(6, 5, 5, device=D)})


def match():
    matcher = L.Matcher()
    _, result = matcher(L.box_iou(boxes(3), boxes()))
    result[:] = 1
    matcher.subsample(result, 3)


def head(make=None):
    L.DistributionHead(8, 4, make and make(4)).to(D)(torch.randn(2, 8, 4, 4, device=D))


def proto(trainable):
    L.PrototypeHead(8, ["a", "b"], trainable).to(D)(torch.randn(2, 8, 4, 4, device=D))


CALLS = {
    "conv": lambda: backbone("conv")(images()),
    "conv_auxiliary": lambda: backbone("conv").auxiliary(images()),
    "window": lambda: backbone("window")(images()),
    "window_shifted": lambda: backbone("window", shift=2)(images()),
    "window_continuous": lambda: backbone("window", continuous_bias=True)(images()),
    "anchors": lambda: L.AnchorGenerator().to(D)(maps()),
    "anchors_rotated": lambda: L.RotatedAnchorGenerator().to(D)(maps()),
    "encode": lambda: L.BoxCoder().encode(boxes(), boxes()),
    "decode": lambda: L.BoxCoder().decode(torch.randn(6, 4, device=D), boxes()),
    "match": match,
    "nms": lambda: L.PostProcessor()(instances()),
    "soft_nms": lambda: L.SoftNms()(instances()),
    "keypoints": lambda: L.KeypointPostProcessor(refine=False)(instances()),
    "keypoints_refined": lambda: L.KeypointPostProcessor()(instances()),
    "normalize": lambda: L.Normalize([0.5] * 3, [0.2] * 3).to(D)(images()),
    "normalize_inplace": lambda: L.Normalize([0.5] * 3, [0.2] * 3, inplace=True).to(D)(images()),
    "erase": lambda: L.RandomErasing()(images()),
    "blur": lambda: L.GaussianBlur()(images()),
    "sharpen": lambda: L.Sharpen()(images()),
    "rotate": lambda: L.RandomRotation()(images()),
    "rotate_relative": lambda: L.RandomRotation(relative=True)(images()),
    "mixup": lambda: L.Mixup(4)(images(), labels()),
    "mixup_elements": lambda: L.ElementMixup(4)(images(), labels()),
    "cutmix": lambda: L.CutMix(4)(images(), labels()),
    "focal": lambda: L.FocalLoss().to(D)(torch.randn(4, 4, device=D), labels()),
    "focal_alpha": lambda: L.FocalLoss(alpha=[0.1, 0.2, 0.3, 0.4]).to(D)(torch.randn(4, 4, device=D), labels()),
    "integral": lambda: head(),
    "integral_conv": lambda: head(L.FixedConvIntegral),
    "prototypes": lambda: proto(False),
    "prototypes_trained": lambda: proto(True),
}
