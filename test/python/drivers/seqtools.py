import torch
from torch import nn

import seqtools as S

D = "cuda:0"
R = lambda *s: torch.randn(*s, device=D)
I = lambda n, *s: torch.randint(n, s, device=D)
LENS = lambda: torch.tensor([3, 5, 2], device=D)


def _cache():
    c = S.Cache()
    for _ in range(2):
        c.update(R(2, 2, 3, 4), R(2, 2, 3, 4), 0)
    c.reorder(torch.tensor([1, 0]))
    return c.keys[0]


def _static():
    c = S.StaticCache(2, 2, 8, 4, device=D)
    return c.update(R(2, 2, 3, 4), R(2, 2, 3, 4))


def _kl():
    c = S.KLController()
    c.update(R(4).mean(), 8)
    return c.penalty(R(4), R(4))


def _moments():
    m = S.RunningMoments()
    for _ in range(3):
        m.update(R(6))
    return m.std


def boxes(n=4):
    xy = torch.rand(n, 2, device=D) * 10
    return S.Boxes(torch.cat([xy, xy + 5], 1))


def _boxes_use():
    b = S.Boxes.cat([boxes(), boxes(2)])
    b.clip((8, 8))
    return b[b.nonempty()].area(), len(S.Boxes.cat([]).to(D))


def images():
    return S.ImageList.from_tensors([R(3, 5, 6), R(3, 4, 7)], 4)


def _criterion(**kw):
    crit = S.SetCriterion(3, **kw).to(D)
    idx = [(torch.tensor([0, 2]), torch.tensor([1, 0])), (torch.tensor([1]), torch.tensor([0]))]
    return crit(R(2, 4, 4), idx, [I(3, 2), I(3, 1)])


ADV = lambda: S.compute_advantages(R(2, 4), R(2, 4), torch.ones(2, 4, device=D))

CALLS = {
    "positions": lambda: S.make_positions(I(5, 2, 4), 1),
    "padding_mask": lambda: S.lengths_to_padding_mask(LENS()),
    "mask": lambda: S.lengths_to_mask(LENS()),
    "sinusoidal": lambda: S.SinusoidalPositional(4, 1, 6).to(D)(I(5, 2, 9)),
    "sinusoidal_step": lambda: S.SinusoidalPositional(4, 1).to(D)(I(5, 2, 9), incremental_step=3),
    "alibi": lambda: S.AlibiAttention(8, 2).to(D)(R(2, 5, 8)),
    "relative": lambda: S.RelativeBias(8, 2).to(D)(4, 5),
    "cache": _cache,
    "static_cache": _static,
    "nll": lambda: S.label_smoothed_nll(R(6, 5).log_softmax(-1), I(5, 6), 0.1, 1),
    "logps": lambda: S.get_batch_logps(R(2, 4, 5), I(5, 2, 4), average=True),
    "dpo": lambda: S.dpo_loss(R(3), R(3), R(3), R(3), loss_type="ipo"),
    "dpo_margin": lambda: S.dpo_loss(R(3), R(3), R(3), R(3), loss_type="margin"),
    "dpo_margin_given": lambda: S.dpo_loss(R(3), R(3), R(3), R(3), loss_type="margin", margins=R(3)),
    "concatenated_same": lambda: S.concatenated_inputs({"chosen": I(5, 2, 4), "rejected": I(5, 2, 4)}),
    "concatenated": lambda: S.concatenated_inputs({"chosen": I(5, 2, 4), "rejected": I(5, 2, 6)}),
    "advantages": ADV,
    "first_true": lambda: S.first_true_indices(I(2, 3, 4).bool()),
    "truncate": lambda: S.truncate_response(2, 0, I(4, 3, 5)),
    "kl": _kl,
    "moments": _moments,
    "quantiles": lambda: S.RunningQuantiles().update(R(6)),
    "boxes": _boxes_use,
    "boxes_scale": lambda: boxes(2).scale_to([0, 1], [(1.0, 2.0), (2.0, 2.0)]),
    "iou": lambda: S.Matcher()(S.pairwise_iou(boxes(), boxes(3))),
    "image_list": lambda: images().tensor.sum(),
    "image_masks": lambda: images().masks().flatten(1).sum(1),
    "detr_positions": lambda: S.DetrPositions().to(D)(images()),
    "subsample": lambda: S.subsample_labels(torch.tensor([0, 1, 0, -1, 2, 0], device=D), 4, 0.5),
    "focal": lambda: S.sigmoid_focal(R(2, 4, 3), (R(2, 4, 3) > 0).float(), 3),
    "criterion": _criterion,
    "criterion_plain": lambda: _criterion(buffered=False),
}
