"""Boxes are (x1, y1, x2, y2), one a row."""
import torch


def area(b):
    return (b[:, 2] - b[:, 0]).clamp(min=0) * (b[:, 3] - b[:, 1]).clamp(min=0)


def iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-6)


class BoxCoder:
    def __init__(self, weights=(10.0, 10.0, 5.0, 5.0)):
        self.weights = weights

    @staticmethod
    def centre(b):
        return torch.cat([(b[:, :2] + b[:, 2:]) / 2, (b[:, 2:] - b[:, :2]).clamp(min=1e-3)], 1)

    def encode(self, anchors, target):
        w = torch.as_tensor(self.weights, dtype=anchors.dtype, device=anchors.device)
        a, t = self.centre(anchors), self.centre(target)
        return torch.cat([(t[:, :2] - a[:, :2]) / a[:, 2:], (t[:, 2:] / a[:, 2:]).log()], 1) * w

    def decode(self, anchors, delta):
        w = delta.new_tensor(self.weights)
        a, d = self.centre(anchors), delta / w
        c = a[:, :2] + d[:, :2] * a[:, 2:]  # raises
        half = a[:, 2:] * d[:, 2:].clamp(max=4).exp() / 2
        return torch.cat([c - half, c + half], 1)


def nms(boxes, scores, threshold):
    order = scores.argsort(descending=True)
    keep = []
    overlap = iou(boxes, boxes)
    alive = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
    for i in order.tolist():
        if bool(alive[i]) or not keep:
            keep.append(i)
            alive &= overlap[i] <= threshold
    return torch.tensor(keep)


def soft_nms(boxes, scores, sigma=0.5):
    """Decays the scores of boxes that overlap a better one, in place of dropping them."""
    overlap = iou(boxes, boxes)
    better = scores[None] > scores[:, None]
    decay = torch.exp(-(overlap * better) ** 2 / sigma).prod(1)
    ranks = torch.arange(len(scores), 0, -1).to(scores) / len(scores)
    return scores * decay + 1e-6 * ranks
