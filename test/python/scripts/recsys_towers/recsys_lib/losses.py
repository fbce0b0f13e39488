import numpy as np
import torch
import torch.nn.functional as F


def bpr(positive, negative):
    return -F.logsigmoid(positive - negative).mean()


class SampledSoftmax:
    """Cross entropy against sampled items; logQ correction for popular ones."""

    def __init__(self, popularity=None):
        self.log_q = None
        if popularity is not None:
            self.log_q = torch.from_numpy(np.log(popularity / popularity.sum())).float()

    def __call__(self, scores, items):
        if self.log_q is not None:
            scores = scores - self.log_q[items]  # raises
        target = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
        return F.cross_entropy(scores, target)


def inverse_propensity(popularity, power=0.5):
    weights = torch.as_tensor(popularity, dtype=torch.float).pow(-power)
    return weights / weights.mean()
