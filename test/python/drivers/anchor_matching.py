import torch
from anchor_matching import *

D = "cuda"


def B(n, d=D):
    torch.manual_seed(n)
    a = torch.rand(n, 2) * 10
    return torch.cat([a, a + 1 + torch.rand(n, 2) * 5], 1).to(d)


F1 = lambda: [torch.rand(1, 3, 4, 4, device=D), torch.rand(1, 3, 2, 2, device=D)]


def meter():
    m = RecallMeter()
    m.update(B(5), B(3))
    return m.compute()


def loss(kind, re=False):
    m = DetectionLoss(3, kind).to(D)
    if re:
        m.reweight([1, 2, 3])
    return m(torch.randn(4, 3, device=D), B(4), torch.tensor([0, 1, 2, 0], device=D), B(4) + 1)


CALLS = {
    "anchors": lambda: AnchorMaker([8, 16]).to(D)(F1()),
    "buffered": lambda: BufferedAnchorMaker([8, 16]).to(D)(F1()),
    "encode": lambda: BoxCoder().encode(B(4), B(4)),
    "decode": lambda: BoxCoder().decode(torch.rand(4, 4, device=D), B(4)),
    "match": lambda: Matcher(0.3, 0.7)(pairwise_iou(B(3), B(6))),
    "match best": lambda: Matcher(0.3, 0.7, True)(pairwise_iou(B(3), B(6))),
    "topk": lambda: TopKMatcher()(pairwise_iou(B(3), B(6))),
    "balanced": lambda: sample_balanced(torch.tensor([0, 1, 0, 2, 0], device=D), 4),
    "hard": lambda: sample_hard(torch.rand(2, 5, device=D), torch.tensor([[0, 1, 0, 0, 0]] * 2, device=D)),
    "hard ranked": lambda: sample_hard_ranked(torch.rand(2, 5, device=D), torch.tensor([[0, 1, 0, 0, 0]] * 2, device=D)),
    "best": lambda: best_boxes(B(5), torch.rand(5, device=D)),
    "by class": lambda: best_boxes_by_class(B(5), torch.rand(5, device=D), torch.arange(5, device=D)),
    "soft": lambda: soft_suppress(B(5), torch.rand(5, device=D)),
    "soft rows": lambda: soft_suppress_by_rows(B(5), torch.rand(5, device=D)),
    "quality": lambda: quality_focal(torch.randn(4, 3, device=D), torch.tensor([0, 1, 2, 3], device=D)),
    "varifocal": lambda: varifocal(torch.randn(4, 3, device=D), torch.tensor([0, 1, 2, 3], device=D), torch.rand(4, device=D)),
    "giou": lambda: giou_loss(B(4), B(4) + 1),
    "weighted": lambda: weighted_l1(B(4), B(4)),
    "loss": lambda: loss("giou"),
    "loss smooth": lambda: loss("smooth"),
    "loss reweighted": lambda: loss("smooth", True),
    "centre": lambda: CentreHead(3).to(D)(torch.rand(1, 3, 4, 4, device=D)),
    "distances": lambda: CentreHead(3).to(D).distances(torch.rand(1, 3, 4, 4, device=D)),
    "crop": lambda: crop_and_resize(torch.rand(3, 16, 16, device=D), B(2), 4),
    "paste": lambda: paste_mask(torch.rand(4, 4, device=D), torch.tensor([1.0, 1.0, 6.0, 6.0], device=D), 10, 10),
    "meter": meter,
    "meter at": lambda: RecallMeter().at(torch.rand(4, device=D)),
}
