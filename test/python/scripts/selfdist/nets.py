"""Backbone and projection heads."""
import torch.nn as nn
import torch.nn.functional as F


class Projector(nn.Module):
    def __init__(self, dim_in, dim_out, hidden=16, normalize=True):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim_in, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, dim_out))
        self.normalize = normalize

    def forward(self, x):
        x = self.layers(x)
        return F.normalize(x, dim=-1) if self.normalize else x


class Student(nn.Module):
    def __init__(self, dim_in=12, width=16, out=8, normalize=True):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(dim_in, width), nn.ReLU())
        self.projector = Projector(width, out, normalize=normalize)

    def forward(self, x):
        return self.projector(self.features(x))

    def features(self, x):
        return self.backbone(x)  # raises
