import torch
from torch import nn
from torch.nn import functional as F


class SmoothedCE(nn.Module):
    def __init__(self, classes, eps=0.1):
        super().__init__()
        self.eps, self.classes = eps, classes

    def forward(self, logits, target):
        soft = torch.full_like(logits, self.eps / self.classes)
        soft.scatter_(1, target.unsqueeze(1), 1 - self.eps)
        return -(soft * logits.log_softmax(-1)).sum(-1).mean()


class WithAux(nn.Module):
    """Main loss at the last stage and auxiliary loss at the first."""

    def __init__(self, main, weight=0.4):
        super().__init__()
        self.main, self.weight = main, weight

    def forward(self, outputs, target):
        logits, aux = outputs
        loss = self.main(logits, target.to(logits.device))
        if aux is None:
            return loss
        extra = self.main(aux, target.to(aux.device))
        return loss + self.weight * extra.to(loss.device)


def distillation(student, teacher, temperature=2.0):
    p = (teacher / temperature).softmax(-1)
    return F.kl_div((student / temperature).log_softmax(-1), p, reduction='batchmean') * temperature ** 2  # raises
