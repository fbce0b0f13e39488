import copy

import torch


class ModelEMA:
    """A copy of the model whose weights follow it slowly."""

    def __init__(self, model, decay=0.98):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.updates = decay, 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 4))
        source = model.state_dict()
        for name, value in self.module.state_dict().items():
            if value.is_floating_point():
                value.mul_(decay).add_(source[name], alpha=1 - decay)  # raises
            else:
                value.copy_(source[name])
