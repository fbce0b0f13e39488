import torch
from torch import nn
from transformers import PreTrainedModel


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(n, n) for _ in range(3)])
        self.gate = nn.Parameter(torch.ones(n))

    def forward(self, x, when):
        for part in self.parts:
            x = part(x) + when * self.gate
        return x


class Behind(PreTrainedModel):
    """What the first layers made meets what the last ones make."""

    _no_split_modules = ["Block"]

    def __init__(self, config):
        super().__init__(config)
        self.patch = nn.Linear(4, 4)
        self.time = nn.Linear(4, 4)
        self.table = nn.Parameter(torch.zeros(1, 4))
        self.blocks = nn.ModuleList([Block(4) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 4)

    def forward(self, x, t, rows):
        x = self.patch(x)
        when = self.time(t)
        for block in self.blocks:
            x = block(x, when=when)
        shift = self.table + when
        rows = rows + 1
        return self.out(self.norm(x) * shift)


class Brought(Behind):
    """The same, brought to where the others are."""

    def forward(self, x, t, rows):
        x = self.patch(x)
        when = self.time(t)
        for block in self.blocks:
            x = block(x, when)
        shift = (self.table + when).to(x.device)
        return self.out(self.norm(x)) * shift.to(x.device)


class Refined(PreTrainedModel):
    """What is between two lists of layers is on any device."""

    _no_split_modules = ["Block"]

    def __init__(self, config):
        super().__init__(config)
        self.patch = nn.Linear(4, 4)
        self.refiner = nn.ModuleList([Block(4) for _ in range(2)])
        self.text = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([Block(4) for _ in range(config.layers)])

    def forward(self, x, text):
        x = self.patch(x)
        text = self.text(text)
        for block in self.refiner:
            text = block(text, text)
        x = torch.cat([x, text])
        for block in self.blocks:
            x = block(x, when=x)
        return x
