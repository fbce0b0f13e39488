import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, width, classes=5):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(width * 4, classes)

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


class Projector(nn.Conv2d):
    def __init__(self, i, o):
        super().__init__(i, o, kernel_size=1, bias=False)


class FeatureTap:
    """with FeatureTap(module) as tap: ...; tap.value is the last output"""

    def __init__(self, module):
        self.module, self.value, self._h = module, None, None

    def __enter__(self):
        self._h = self.module.register_forward_hook(self._save)
        return self

    def _save(self, module, inp, out):
        self.value = out

    def __exit__(self, *exc):
        self._h.remove()
        return False
