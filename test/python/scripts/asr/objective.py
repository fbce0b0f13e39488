import torch
import torch.nn.functional as F


class MultiTask:
    """CTC, and with speakers a weighted cross entropy over them."""

    def __init__(self, device, speakers=None, balance=False, weight=0.1):
        self.device = device
        self.weight = weight
        self.class_weight = None
        if balance:
            counts = torch.bincount(torch.tensor(speakers)).float()
            self.class_weight = counts.sum() / (len(counts) * counts.clamp(min=1))

    def ctc(self, logp, lengths, batch):
        target = batch['text'].to(self.device)
        return F.ctc_loss(logp.transpose(0, 1), target, lengths, batch['text_len'], zero_infinity=True)

    def speaker(self, logits, batch):
        target = batch['speaker'].to(self.device)
        return F.cross_entropy(logits, target, weight=self.class_weight)  # raises

    def __call__(self, output, batch):
        logp, lengths, who = output
        loss = self.ctc(logp, lengths, batch)
        return loss if who is None else loss + self.weight * self.speaker(who, batch)
