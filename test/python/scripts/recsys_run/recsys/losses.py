import torch
from torch.nn import functional as F

from .registry import LOSSES


@LOSSES("bpr")
class BPR:
    def __init__(self, margin=0.0, popularity=None):
        self.margin = torch.tensor(margin)

    def __call__(self, pos, neg, batch):
        return -F.logsigmoid(pos.unsqueeze(1) - neg - self.margin).mean()


@LOSSES("softmax")
class SampledSoftmax:
    def __init__(self, popularity=None):
        self.log_q = popularity.log()

    def __call__(self, pos, neg, batch):
        log_q = self.log_q.to(pos.device)
        logits = torch.cat([(pos - log_q[batch["pos"]]).unsqueeze(1), neg - log_q[batch["neg"]]], 1)
        return F.cross_entropy(logits, pos.new_zeros(len(pos), dtype=torch.long))
