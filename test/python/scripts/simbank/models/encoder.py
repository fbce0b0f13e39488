import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    WIDTH = {'small': 8, 'wide': 16}

    def __init__(self, arch, dim):
        super().__init__()
        w = self.WIDTH[arch]
        self.body = nn.Sequential(
            nn.Conv2d(1, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU(inplace=True),
            nn.MaxPool2d(2), nn.Conv2d(w, w, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(w, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.body(x)), dim=1)
