import copy

import torch


class ShadowEMA:
    """Keeps averaged weights in a dictionary."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for key, value in model.state_dict().items():
            self.shadow[key].mul_(self.decay).add_(value, alpha=1 - self.decay)  # raises

    def copy_to(self, model):
        model.load_state_dict(self.shadow)
        return model


class ModuleEMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.average = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for mine, new in zip(self.average.parameters(), model.parameters()):
            mine.copy_(self.decay * mine + (1 - self.decay) * new)

    def copy_to(self, model):
        return self.average
