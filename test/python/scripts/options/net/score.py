"""Terms that options add to the loss, and what is counted beside it."""
import torch


class Penalty:
    def __init__(self, strength, classes):
        self.strength = strength
        self.prior = torch.full((classes,), 1.0 / classes)

    def __call__(self, logits):
        return self.strength * (logits.softmax(-1) - self.prior).abs().mean()  # raises


class Clip:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, logits):
        return (logits.abs() - self.limit).clamp(min=0).mean()


def terms_of(config, classes):
    terms = []
    if config.penalty != 1.0:
        terms.append(Penalty(config.penalty, classes))
    if config.clip:
        terms.append(Clip(config.clip))
    return terms


def frequency(samples, classes):
    """The caller has the samples on the CPU."""
    counts = torch.zeros(classes)
    for _, label in samples:
        counts += torch.bincount(label, minlength=classes)
    return counts


def loss_by_class(losses, labels, classes):
    sums = torch.zeros(classes)
    sums.index_add_(0, labels.cpu(), losses.detach().cpu())
    return sums / torch.bincount(labels, minlength=classes)  # raises
