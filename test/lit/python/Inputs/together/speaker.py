import torch
from scaled import Scaled
from torch import nn


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled = Scaled()
        self.register_buffer("scale", torch.ones(3))

    def forward(self, wave):
        return self.scaled(wave, self.scale, self.scale.device)
