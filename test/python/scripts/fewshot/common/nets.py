import torch
import torch.nn.functional as F
from torch import nn


class FunctionalMLP(nn.Module):
    """Can run with weights that are given instead of its own."""

    def __init__(self, *sizes):
        super().__init__()
        self.weights = nn.ParameterList()
        for a, b in zip(sizes, sizes[1:]):
            self.weights.append(nn.Parameter(torch.randn(b, a) / a ** 0.5))
            self.weights.append(nn.Parameter(torch.zeros(b)))

    def forward(self, x, weights=None):
        weights = list(self.weights) if weights is None else weights
        pairs = list(zip(weights[::2], weights[1::2]))
        for i, (w, b) in enumerate(pairs):
            x = F.linear(x, w, b)
            if i + 1 < len(pairs):
                x = torch.tanh(x)
        return x


def embedding(dim=6, out=8):
    return nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, out))


def class_means(z, y, way):
    onehot = F.one_hot(y, way).to(z)
    return onehot.t() @ z / onehot.sum(0)[:, None]
