import torch
import torch.nn.functional as F


class SampledSoftmax:
    """In-batch softmax with log Q correction, and negatives by popularity."""

    def __init__(self, popularity, extra=0, generator=None):
        freq = torch.as_tensor(popularity, dtype=torch.float32)
        self.prob = freq.pow(0.75) / freq.pow(0.75).sum()
        self.extra = extra
        self.generator = generator

    def to(self, device):
        self.prob = self.prob.to(device)
        return self

    def draw(self):
        return torch.multinomial(self.prob, self.extra, replacement=True, generator=self.generator)

    def __call__(self, model, u, v, items):
        logq = self.prob.log()
        logits = model.logits(u, v) - logq[items]
        collisions = items[:, None].eq(items[None]).fill_diagonal_(False)
        logits = logits.masked_fill(collisions, -1e4)
        if self.extra:
            neg = self.draw()
            logits = torch.cat([logits, model.logits(u, model.item.catalogue()[neg]) - logq[neg]], 1)
        return F.cross_entropy(logits, torch.arange(len(u), device=logits.device))
