import torch
import torch.nn as nn


class Table:
    """Not a module: nobody moves it."""

    def __init__(self, width):
        self.values = torch.linspace(0.5, 1.5, width)

    def of(self, count):
        return self.values[:count]


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.linear = nn.Linear(config.width, config.width)
        self.table = Table(config.width) if config.scale == "table" else None
        self.register_buffer("ones", torch.ones(config.width), persistent=False)

    def forward(self, x):
        x = self.linear(x) * self.ones
        if self.table is not None:
            x = x * self.table.of(x.size(-1))  # raises
        return x


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        return self.out(x)


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out, self.gate = nn.Linear(width, 3), nn.Linear(width, 3)

    def forward(self, x):
        return self.out(x) * self.gate(x).sigmoid()


HEADS = {"plain": Plain, "gated": Gated}


class Net(nn.Module):
    def __init__(self, config, head):
        super().__init__()
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.count))
        self.head = HEADS[head](config.width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def groups(self):
        wide = [p for p in self.parameters() if p.dim() >= 2]
        narrow = [p for p in self.parameters() if p.dim() < 2]
        return [{"params": wide, "weight_decay": 0.1}, {"params": narrow, "weight_decay": 0.0}]
