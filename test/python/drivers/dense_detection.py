from dense_detection import *
import torch
from torch import nn

D = "cuda:0"


def boxes(n, device=D):
    xy = torch.rand(n, 2) * 50
    return torch.cat([xy, xy + 5 + torch.rand(n, 2) * 60], 1).to(device)


def feats(device=D):
    return [torch.rand(1, 8, 8, 8, device=device), torch.rand(1, 8, 4, 4, device=device)]


def cached(devices):
    for d in devices:
        CachedAnchorGenerator().to(d)(feats(d))


def deltas():
    t = Box2BoxTransform()
    a, b = boxes(5), boxes(5)
    t.apply_deltas(t.get_deltas(a, b), a)



def criterion(losses):
    targets = [{"boxes": boxes(3), "labels": torch.tensor([0, 1, 2], device=D)} for _ in range(2)]
    out = {"logits": torch.rand(2, 10, 5, device=D), "boxes": torch.rand(2, 10, 4, device=D)}
    SetCriterion(4).to(D)(out, targets, losses)


def post(**kw):
    Postprocessor()(boxes(9), torch.rand(9, device=D), torch.randint(0, 3, (9,), device=D), (60, 60), **kw)




def ints(n, high):
    return torch.randint(0, high, (n,), device=D)


CALLS = {
    "anchors": lambda: AnchorGenerator().to(D)(feats()),
    "cached_one": lambda: cached([D, D]),
    "cached_two": lambda: cached([D, "cuda:1"]),
    "deltas": deltas,
    "atss": lambda: ATSSAssigner().assign(boxes(40), boxes(3)),
    "focal": lambda: SigmoidFocalLoss().to(D)(torch.rand(6, 3, device=D), ints(6, 3)),
    "focal_alpha": lambda: SigmoidFocalLoss(class_alpha=[.1, .2, .3]).to(D)(torch.rand(6, 3, device=D), ints(6, 3)),
    "set_boxes": lambda: criterion(("boxes",)),
    "set_labels": lambda: criterion(("labels", "boxes")),
    "confusion": lambda: DetectionConfusion(4).update(ints(9, 4), ints(9, 4)),
    "confusion_boxes": lambda: DetectionConfusion(4).update_boxes(pairwise_iou(boxes(9), boxes(9)), ints(9, 4), ints(9, 4)),
    "post_scaled": lambda: post(output_size=(120, 120)),
    "post": post,
    "retina": lambda: RetinaHead(8, 4).to(D)(feats()),
    "retina_unshared": lambda: RetinaHead(8, 4, share=False).to(D)(feats()),
    "miner": lambda: HardNegativeMiner()(torch.rand(2, 20, device=D), ints(40, 2).view(2, 20)),
    "miner_levels": lambda: HardNegativeMiner(levels=[15, 5]).per_level(torch.rand(2, 20, device=D), ints(40, 2).view(2, 20)),
}
