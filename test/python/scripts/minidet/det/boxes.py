import torch


def area(b):
    return (b[:, 2] - b[:, 0]).clamp(min=0) * (b[:, 3] - b[:, 1]).clamp(min=0)


def pairwise_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])  # raises
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-7)


def giou(a, b):
    lt, rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=1)
    union = area(a) + area(b) - inter + 1e-7
    hull_lt, hull_rb = torch.min(a[:, :2], b[:, :2]), torch.max(a[:, 2:], b[:, 2:])
    hull = (hull_rb - hull_lt).clamp(min=0).prod(dim=1) + 1e-7
    return inter / union - (hull - union) / hull


class BoxCoder:
    """Boxes as offsets to reference boxes."""

    def __init__(self, weights=(1.0, 1.0, 1.0, 1.0)):
        self.weights = weights

    def encode(self, refs, boxes):
        size = (refs[:, 2:] - refs[:, :2]).clamp(min=1)
        center = (refs[:, :2] + refs[:, 2:]) / 2
        bsize = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1)
        bcenter = (boxes[:, :2] + boxes[:, 2:]) / 2
        deltas = torch.cat([(bcenter - center) / size, (bsize / size).log()], dim=1)
        return self.scale(deltas)

    def decode(self, refs, deltas):
        deltas = self.unscale(deltas)
        size = (refs[:, 2:] - refs[:, :2]).clamp(min=1)
        center = (refs[:, :2] + refs[:, 2:]) / 2 + deltas[:, :2] * size
        size = size * deltas[:, 2:].clamp(max=4).exp()
        return torch.cat([center - size / 2, center + size / 2], dim=1)

    def scale(self, deltas):
        return deltas * deltas.new_tensor(self.weights)

    def unscale(self, deltas):
        return deltas / deltas.new_tensor(self.weights)


class ScaledBoxCoder(BoxCoder):
    def __init__(self, std=(0.1, 0.1, 0.2, 0.2)):
        self.std = torch.tensor(std)

    def scale(self, deltas):
        return deltas / self.std.to(deltas.device)

    def unscale(self, deltas):
        return deltas * self.std  # raises


def nms(boxes, scores, threshold):
    order = scores.argsort(descending=True)
    iou = pairwise_iou(boxes, boxes)
    keep = torch.ones(len(boxes), dtype=torch.bool)
    for i, current in enumerate(order):
        if keep[current.item()]:
            rest = order[i + 1:]
            keep[rest[iou[current, rest] > threshold].cpu()] = False
    return keep.nonzero().squeeze(1)


def soft_nms(boxes, scores, sigma=0.5, floor=0.05):
    iou = pairwise_iou(boxes, boxes)
    scores = scores.clone()
    alive = torch.ones(len(boxes), dtype=torch.bool)
    picked = []
    while alive.any():
        best = scores.masked_fill(~alive, -1).argmax()  # raises
        picked.append(best)
        alive[best] = False
        scores *= torch.exp(-iou[best] ** 2 / sigma)
        alive &= scores > floor
    return torch.stack(picked)
