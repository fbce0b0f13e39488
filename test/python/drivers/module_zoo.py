import numpy as np
import torch
from torch import nn

import module_zoo as m

D = "cuda:1"


def r(*shape):
    return torch.randn(*shape, device=D)


def ids(*shape, top=8):
    return torch.randint(0, top, shape, device=D)


def twice(module, *args, **kw):
    module = module.to(D).train()
    module(*args, **kw)
    return module(*args, **kw)


def tracked(metric, *args):
    metric.update(*args)
    metric.update(*args)
    return metric


def balance():
    b = m.GradNormBalance(2).to(D)
    losses = [r(3).pow(2).sum(), r(3).pow(2).sum()]
    b(losses).backward()
    return b, losses


def curve():
    c = m.Curve()
    c.update(torch.rand(6, device=D), torch.tensor([0, 1, 0, 1, 1, 0], device=D))
    return c


CALLS = {
    "swish": lambda: m.get_activation("swish")(r(3)),
    "squared_relu": lambda: m.squared_relu(r(3)),
    "snake": lambda: m.snake(r(3)),
    "gelu_table": lambda: m.gelu_table(r(3)),
    "running": lambda: twice(m.RunningNorm(4), r(5, 4)),
    "whitening": lambda: twice(m.WhiteningNorm(4), r(8, 4)),
    "scale_norm": lambda: twice(m.ScaleNorm(2.0), r(5, 4)),
    "masked_norm": lambda: twice(m.MaskedNorm(4), r(2, 5, 4), [5, 3]),
    "masked_zeroed": lambda: m.MaskedNorm(4).to(D).zeroed(r(2, 5, 4), [5, 3]),
    "word_dropout": lambda: twice(m.WordDropout(), ids(2, 5)),
    "word_dropout_eval": lambda: m.WordDropout().eval()(ids(2, 5)),
    "locked": lambda: twice(m.LockedDropout(), r(2, 5, 4)),
    "drop_path": lambda: twice(m.DropPath(0.5), r(2, 5, 4)),
    "drop_path_none": lambda: twice(m.DropPath(0.0), r(2, 5, 4)),
    "concrete": lambda: twice(m.ConcreteDropout(), r(2, 4)),
    "sinusoid": lambda: twice(m.SinusoidTable(4), r(2, 5, 4)),
    "sinusoid_longer": lambda: twice(m.SinusoidTable(4), r(2, 12, 4)),
    "fourier": lambda: twice(m.FourierTime(6), r(2)),
    "fourier_learnt": lambda: twice(m.FourierTime(6, learnt=True), r(2)),
    "timestep": lambda: m.timestep_features(r(2), 7),
    "learned": lambda: twice(m.LearnedPositions(8, 4), (2, 3)),
    "types": lambda: twice(m.TokenTypes(), r(2, 5, 4)),
    "types_separator": lambda: m.TokenTypes().to(D).after_separator(ids(2, 5), 3),
    "hash": lambda: twice(m.MultiHash(), ids(2, 5)),
    "hash_once": lambda: m.MultiHash().to(D).all_at_once(ids(2, 5)),
    "stats": lambda: twice(m.AttentiveStats(4), r(2, 5, 4), torch.tensor([5, 2], device=D)),
    "router": lambda: twice(m.TopKRouter(), r(6, 4)),
    "router_track": lambda: m.TopKRouter().to(D).track(r(6, 4)),
    "router_balance": lambda: m.TopKRouter().to(D).balance(r(6, 4)),
    "gem": lambda: twice(m.GeM(per_channel=3), r(2, 3, 4, 4).abs()),
    "blur": lambda: twice(m.BlurPool(3), r(2, 3, 4, 4)),
    "sobel": lambda: twice(m.SobelEdges(), r(2, 3, 4, 4)),
    "sharpen": lambda: twice(m.LaplacianSharpen(), r(2, 3, 4, 4)),
    "coord": lambda: twice(m.CoordConv(3, 4, 3), r(2, 3, 4, 4)),
    "smoothed": lambda: twice(m.SmoothedCrossEntropy(3, weight=[1.0, 2.0, 3.0]), r(4, 3), ids(4, top=3)),
    "focal": lambda: twice(m.FocalLoss(alpha=[0.2, 0.3, 0.5]), r(4, 3), ids(4, top=3)),
    "balanced": lambda: twice(m.BalancedSoftmax([3, 4, 5]), r(4, 3), ids(4, top=3)),
    "ordinal": lambda: twice(m.OrdinalLoss(4), r(4, 3), ids(4, top=4)),
    "ordinal_importance": lambda: twice(m.OrdinalLoss(4), r(4, 3), ids(4, top=4), [1.0, 2.0, 1.0]),
    "contrastive": lambda: twice(m.Contrastive(), r(4, 3), r(4, 3)),
    "contrastive_paired": lambda: m.Contrastive().to(D).paired(r(4, 3), r(4, 3)),
    "supervised": lambda: twice(m.SupervisedContrastive(), r(4, 3), ids(4, top=2)),
    "center": lambda: twice(m.CenterLoss(3, 4), r(5, 4), ids(5, top=3)),
    "center_spread": lambda: m.CenterLoss(3, 4).to(D).spread(),
    "dice": lambda: twice(m.DiceLoss(3, True), r(2, 3, 4, 4), ids(2, 4, 4, top=3)),
    "dice_classes": lambda: m.DiceLoss(3, True).to(D).per_class(r(2, 3, 4, 4), None),
    "boundary": lambda: twice(m.BoundaryLoss(), r(2, 2, 4, 4), np.ones((2, 4, 4), np.float32)),
    "boundary_signed": lambda: m.BoundaryLoss().signed(r(2, 2, 4, 4), r(2, 4, 4) > 0),
    "wing": lambda: m.wing_loss(r(4), r(4) * 9),
    "quantile": lambda: m.quantile_loss(r(4, 3), r(4)),
    "quantile_list": lambda: m.quantile_loss_listwise(r(4, 3), r(4)),
    "penalty": lambda: m.gradient_penalty(nn.Linear(3, 1).to(D), r(4, 3), r(4, 3)),
    "hinge": lambda: m.hinge_for_critic(r(4), r(4)),
    "gan": lambda: m.gan_loss(r(4), True, 0.2),
    "distilled": lambda: twice(m.Distilled(3, 3), r(4, 3), ids(4, top=3)),
    "distilled_lazily": lambda: m.Distilled(3, 3).to(D).lazily(r(4, 3)),
    "uncertainty": lambda: twice(m.UncertaintyWeights(["a", "b"]), {"a": r(1).sum(), "b": r(1).sum()}),
    "gradnorm": lambda: balance(),
    "gradnorm_rates": lambda: (lambda b, losses: b.rates(losses))(*balance()),
    "accuracy": lambda: tracked(m.Accuracy(), r(4, 3), ids(4, top=3)).compute(),
    "recall": lambda: tracked(m.ClassRecall(3), r(4, 3), ids(4, top=3)),
    "confusion": lambda: tracked(m.Confusion(3), r(4, 3), ids(4, top=3)).compute(),
    "auc": lambda: curve().auc(),
    "threshold": lambda: curve().best_threshold(),
    "averages": lambda: m.Averages().update(2, a=r(1).sum(), b=r(1).sum()).as_array(),
    "ndcg": lambda: m.ndcg(r(2, 6), r(2, 6).abs()),
    "reciprocal": lambda: m.reciprocal_rank(r(2, 6), ids(2, top=6)),
    "psnr": lambda: m.psnr(r(2, 3, 8, 8), r(2, 3, 8, 8)),
    "ssim": lambda: [m.ssim(r(2, 3, 8, 8), r(2, 3, 8, 8)) for _ in range(2)],
    "calibration": lambda: m.calibration_error(r(6, 3), ids(6, top=3)),
    "calibration_counts": lambda: m.calibration_counts(r(6, 3)),
    "topk": lambda: m.topk_accuracy(r(6, 3), ids(6, top=3)),
    "words": lambda: m.word_errors(ids(6), ids(6)),
}
