"""A training step that forgets its labels. With an argument "caught", it goes on and fails for another reason."""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.layer(inputs)


def step(model, inputs, labels):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()


labels = torch.randint(3, (8,))
try:
    step(Net().to("cuda:0"), torch.randn(8, 4, device="cuda:0"), labels)
except RuntimeError:
    if "caught" not in sys.argv:
        raise
    raise ValueError("something else") from None
