import torch


class Schedule:
    def __init__(self, steps):
        self.sigmas = torch.linspace(0, 1, steps)

    def at(self, t):
        return torch.zeros(len(t), device=t.device) + self.sigmas[t.long()].to(t.device)
