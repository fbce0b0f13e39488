import torch

import detection_parts as D

DEV = "cuda:0"


def boxes(n, scale=40.0):
    torch.manual_seed(n)
    low = torch.rand(n, 2) * scale
    return torch.cat([low, low + 4 + torch.rand(n, 2) * scale], 1).to(DEV)


def features():
    return [torch.rand(1, 4, 4, 4, device=DEV), torch.rand(1, 4, 2, 2, device=DEV)]


def rboxes():
    return torch.rand(3, 5, device=DEV) * 10


def quality():
    return torch.rand(3, 24, device=DEV)


def sample(kind):
    q = quality()
    return kind(amount=6)(D.Matcher(low=0.75, high=0.75)(q), q.max(0).values)


def target(n=2):
    return {"boxes": boxes(n), "labels": torch.arange(n, device=DEV)}


def loss(kind, pred, tgt, **options):
    return D.build_loss(kind, **options).to(DEV)(pred, tgt)


def expectation(registered):
    return D.DistributionLoss(registered=registered).to(DEV).expectation(torch.randn(5, 8, device=DEV))


LABELS = lambda n=6, c=3: torch.arange(n, device=DEV) % c

CALLS = {
    "points_in_rotated": lambda: D.points_in_rotated(torch.rand(7, 2, device=DEV), rboxes()),
    "linear_encode": lambda: D.LinearCoder().encode([boxes(3), boxes(2)], [boxes(3), boxes(2)]),
    "linear_decode": lambda: D.LinearCoder().decode(torch.rand(5, 4, device=DEV), [boxes(3), boxes(2)]),
    "normalised_encode": lambda: D.NormalisedCoder().encode([boxes(3)], [boxes(3)]),
    "normalised_decode": lambda: D.NormalisedCoder().decode(torch.rand(3, 4, device=DEV), [boxes(3)]),
    "anchors": lambda: D.AnchorGenerator().to(DEV)(features()),
    "anchors_cached": lambda: D.CachedAnchorGenerator().to(DEV)(features()),
    "priors": lambda: D.PriorBoxes().to(DEV)(torch.rand(2, 9, 4, device=DEV)),
    "matcher": lambda: D.Matcher(keep_best=True)(quality()).positive,
    "centre_matcher": lambda: D.CentreMatcher([16, 8])(quality()),
    "random_sampler": lambda: sample(D.RandomSampler),
    "balanced_sampler": lambda: sample(D.IoUBalancedSampler),
    "group_sampler": lambda: sample(D.GroupSampler),
    "batched_nms": lambda: D.batched_nms(boxes(6), torch.rand(6, device=DEV), LABELS()),
    "multiclass_nms": lambda: D.multiclass_nms(boxes(6), torch.rand(6, 3, device=DEV)),
    "paste": lambda: D.MaskPaster(12, 12)(torch.rand(2, 4, 4, device=DEV), boxes(2, 5)),
    "paste_canvas": lambda: D.CanvasPaster(12, 12)(torch.rand(2, 4, 4, device=DEV), boxes(2, 5)),
    "focal": lambda: loss("focal", torch.randn(6, 3, device=DEV), LABELS(), classes=3),
    "seesaw": lambda: loss("seesaw", torch.randn(6, 3, device=DEV), LABELS(), classes=3),
    "distribution": lambda: loss("distribution", torch.randn(5, 8, device=DEV), torch.rand(5, device=DEV) * 7),
    "expectation": lambda: expectation(True),
    "expectation_plain": lambda: expectation(False),
    "criterion": lambda: D.SetCriterion(3).to(DEV)(
        {"logits": torch.randn(2, 5, 4, device=DEV), "boxes": torch.rand(2, 5, 4, device=DEV)}, [target(), target(3)]),
    "cardinality": lambda: D.SetCriterion(3).to(DEV).cardinality(torch.randn(2, 5, 4, device=DEV), [target(), target(3)]),
}
