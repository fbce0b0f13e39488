"""Ancestral and implicit sampling, with guidance by class."""
import torch


class Guided:
    """eps = (1 + w) eps(label) - w eps(no label), in one pass of twice the batch."""

    def __init__(self, model, labels, scale):
        self.model, self.scale = model, scale
        if scale:
            unlabelled = torch.tensor([model.classes] * len(labels))
            self.labels = torch.cat([labels, unlabelled])  # raises
        else:
            self.labels = labels

    def __call__(self, x, t):
        if not self.scale:
            return self.model(x, t, self.labels)
        with_label, without = self.model(torch.cat([x, x]), torch.cat([t, t]), self.labels).chunk(2)
        return (1 + self.scale) * with_label - self.scale * without


def ancestral(predict, schedule, x, **_):
    for i in reversed(range(schedule.steps)):
        t = torch.full((x.size(0),), i, dtype=torch.long, device=x.device)
        eps = predict(x, t)
        x = schedule.recip[i] * (x - schedule.slope[i] * eps)
        if i > 0:
            x = x + schedule.variance[i].sqrt() * torch.randn_like(x)
    return x


def implicit(predict, schedule, x, count=4, **_):
    """DDIM with eta 0 on a shortened trajectory."""
    trajectory = torch.linspace(schedule.steps - 1, 0, count).round().long()
    bars = schedule.alpha_bar[trajectory]
    for k, step in enumerate(trajectory):
        eps = predict(x, step.repeat(x.size(0)))
        clean = (x - (1 - bars[k]).sqrt() * eps) / bars[k].sqrt()
        if k + 1 == count:
            return clean
        x = bars[k + 1].sqrt() * clean + (1 - bars[k + 1]).sqrt() * eps
    return x


SAMPLERS = {"ddpm": ancestral, "ddim": implicit}


@torch.no_grad()
def sample(model, schedule, labels, size, name="ddpm", guidance=0.0, generator=None):
    model.eval()
    device = labels.device
    x = torch.randn(len(labels), 1, size, size, generator=generator).to(device)
    predict = Guided(model, labels, guidance)
    return SAMPLERS[name](predict, schedule, x).clamp(-1, 1)
