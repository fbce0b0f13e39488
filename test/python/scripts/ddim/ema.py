import copy
from contextlib import contextmanager

import torch


class EMA:
    """Average of the weights, kept beside the model."""

    def __init__(self, model, decay=0.99, offload=False):
        self.decay = decay
        self.offload = offload
        self.shadow = {}
        for name, value in model.state_dict().items():
            value = value.detach().clone()
            self.shadow[name] = value.cpu() if offload else value

    @torch.no_grad()
    def update(self, model):
        for name, value in model.state_dict().items():
            kept = self.shadow[name]
            if kept.dtype.is_floating_point:
                kept.mul_(self.decay).add_(value.to(kept.device), alpha=1 - self.decay)
            else:
                kept.copy_(value)

    @contextmanager
    def applied(self, model):
        backup = copy.deepcopy(model.state_dict())
        model.load_state_dict(self.shadow)
        try:
            yield model
        finally:
            model.load_state_dict(backup)

    def distance(self, model):
        total = 0.0
        for name, value in model.state_dict().items():
            total += (value - self.shadow[name].to(value.device)).pow(2).sum().item()
        return total ** 0.5
