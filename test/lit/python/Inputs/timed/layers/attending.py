import torch
from torch import nn


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    def forward(self, x):
        return self.proj(x) + torch.zeros(3, device=x.device)
