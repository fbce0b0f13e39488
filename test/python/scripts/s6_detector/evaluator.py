import torch


def box_iou(a, b):
    lt, rb = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-6)


class Evaluator:
    """Everything is accumulated on the CPU."""

    def __init__(self, thresholds=(0.1, 0.3, 0.5)):
        self.thresholds = torch.tensor(thresholds)
        self.hits = torch.zeros(len(thresholds))
        self.total = 0

    def update(self, outputs, targets):
        cpu = torch.device("cpu")
        outputs = [{k: v.to(cpu) for k, v in o.items()} for o in outputs]
        for o, t in zip(outputs, targets):
            best = box_iou(o["boxes"], t["boxes"]).max(0).values
            self.hits += (best[:, None] > self.thresholds[None]).float().sum(0)
            self.total += len(t["boxes"])

    def summarize(self):
        return {f"recall@{t:.1f}": h.item() / max(self.total, 1) for t, h in zip(self.thresholds.tolist(), self.hits)}
