from torch import nn


class ResidualMLP(nn.Module):
    def __init__(self, dim=6, classes=3, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        for b in self.blocks:
            x = x + b(x)
        return self.head(x)
