import copy

import torch


class EMA:
    def __init__(self, model, decay=0.9):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.state_dict().values(), model.state_dict().values()):
            mine.copy_(mine * self.decay + theirs * (1 - self.decay))
