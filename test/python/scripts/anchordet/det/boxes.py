"""Operations on boxes (x1, y1, x2, y2)."""
import torch


def area(boxes):
    return (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)


def pairwise_iou(a, b):
    area_a, area_b = area(a), area(b)
    lt = torch.max(a[:, None, :2], b[None, :, :2])  # raises
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    return inter / (area_a[:, None] + area_b[None] - inter).clamp(min=1e-6)


class BoxCoder:
    """Boxes relative to anchors; the weights are those of Fast R-CNN."""

    def __init__(self, weights=(10.0, 10.0, 5.0, 5.0)):
        self.weights = torch.tensor(weights)

    @staticmethod
    def _centres(boxes):
        size = boxes[:, 2:] - boxes[:, :2]
        return boxes[:, :2] + 0.5 * size, size

    def encode(self, boxes, anchors):
        centre, size = self._centres(boxes)
        a_centre, a_size = self._centres(anchors)
        deltas = torch.cat([(centre - a_centre) / a_size, (size / a_size).log()], dim=1)
        return deltas * self.weights.to(deltas)

    def decode(self, deltas, anchors):
        deltas = deltas / self.weights.to(deltas)
        a_centre, a_size = self._centres(anchors)
        centre = a_centre + deltas[:, :2] * a_size
        half = 0.5 * a_size * deltas[:, 2:].clamp(max=4.0).exp()
        return torch.cat([centre - half, centre + half], dim=1)


def hard_nms(boxes, scores, threshold):
    """What is kept, the best first, and the scores."""
    order = scores.argsort(descending=True)
    iou = pairwise_iou(boxes, boxes)
    alive = torch.ones(len(boxes), dtype=torch.bool)
    kept = []
    for i in order.tolist():
        if alive[i]:
            kept.append(i)
            alive &= (iou[i] <= threshold).cpu()
    kept = torch.as_tensor(kept, dtype=torch.long, device=boxes.device)
    return kept, scores[kept]


def soft_nms(boxes, scores, sigma=0.5, floor=0.001):
    """The Gaussian variant: it lowers scores instead of dropping boxes."""
    remaining = list(range(len(boxes)))
    current = scores.clone()
    kept, values = [], []
    while remaining:
        best = max(remaining, key=lambda i: float(current[i]))
        if current[best] < floor:
            break
        kept.append(best)
        values.append(float(current[best]))
        remaining.remove(best)
        if remaining:
            overlap = pairwise_iou(boxes[best:best + 1], boxes[remaining])[0]
            current[remaining] *= torch.exp(-overlap ** 2 / sigma)
    return torch.tensor(kept, dtype=torch.long), torch.tensor(values)


NMS = {"hard": lambda b, s: hard_nms(b, s, 0.5), "soft": soft_nms}
