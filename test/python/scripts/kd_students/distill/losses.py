import torch.nn as nn
import torch.nn.functional as F


class DistillationLoss(nn.Module):
    def __init__(self, temperature=4.0, alpha=0.7, hint=0.0, regressor=None):
        super().__init__()
        self.temperature, self.alpha, self.hint = temperature, alpha, hint
        self.regressor = regressor

    def soft(self, student, teacher):
        t = self.temperature
        return F.kl_div(F.log_softmax(student / t, 1), F.softmax(teacher / t, 1), reduction="batchmean") * t * t

    def hard(self, logits, labels):
        if len(labels) == 1:
            return F.cross_entropy(logits, labels[0])
        first, second, share = labels
        each = share * F.cross_entropy(logits, first, reduction="none")
        each = each + (1 - share) * F.cross_entropy(logits, second, reduction="none")
        return each.mean()

    def forward(self, student, teacher, labels):
        logits, features = student
        wanted, guides = teacher
        loss = self.alpha * self.soft(logits, wanted) + (1 - self.alpha) * self.hard(logits, labels)
        if self.hint:
            loss = loss + self.hint * F.mse_loss(self.regressor(features[-1]), guides[-1])
        return loss
