import torch.nn.functional as F
from models import Block
from torch import nn
from transformers import PreTrainedModel


class Judge(PreTrainedModel):
    _no_split_modules = ["Block"]

    def __init__(self, config):
        super().__init__(config)
        self.body = Body(config)
        self.head = nn.Linear(4, 9)

    def forward(self, ids, labels=None):
        logits = self.head(self.body(ids))
        return F.cross_entropy(logits.view(-1, 9), labels.view(-1))


class Body(PreTrainedModel):
    _no_split_modules = ["Block"]

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(9, 4)
        self.layers = nn.ModuleList([Block(4) for _ in range(config.layers)])

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, x)
        return x


class Careful(Judge):
    def forward(self, ids, labels=None):
        logits = self.head(self.body(ids))
        labels = labels.to(logits.device)
        return F.cross_entropy(logits.view(-1, 9), labels.view(-1))


class Whole(nn.Module):
    """Nobody says that it may be split."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([Block(4) for _ in range(3)])

    def forward(self, x):
        first = self.first(x)
        for block in self.blocks:
            x = block(x, first)
        return x + first
