import torch


class AnchorTable:
    """anchors on the host; cells() gives them where the features are"""

    def __init__(self, sizes, stride):
        self.stride = stride
        self.base = torch.tensor([[-s / 2, -s / 2, s / 2, s / 2] for s in sizes])
        self._cache = {}

    def cells(self, feat):
        h, w = feat.shape[-2:]
        key = (h, w, feat.device)
        if key not in self._cache:
            ys, xs = torch.meshgrid(torch.arange(h) * self.stride, torch.arange(w) * self.stride, indexing="ij")
            shifts = torch.stack((xs, ys, xs, ys), -1).reshape(-1, 1, 4)
            self._cache[key] = (shifts + self.base).reshape(-1, 4).to(feat.device)
        return self._cache[key]


def iou(a, b):
    lt, rb = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


def assign(anchors, boxes, labels, low=0.1, high=0.3):
    """runs on the host, the number of anchors of the big images did not fit"""
    home = anchors.device
    q = iou(boxes.cpu(), anchors.cpu())
    best, which = q.max(0)
    out = labels.cpu()[which]
    out[best < high] = -1
    out[best < low] = 0
    return out.to(home), boxes[which.to(boxes.device)]
