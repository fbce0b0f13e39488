import torch.nn.functional as F
from torch import nn

from . import layers  # noqa: F401
from .registry import create


class GraphNet(nn.Module):
    def __init__(self, cin, hidden, cout, conv, depth, **options):
        super().__init__()
        sizes = [cin] + [hidden] * (depth - 1) + [cout]
        self.convs = nn.ModuleList(create('conv', conv, a, b, **options) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes[1:-1])

    def forward(self, graph):
        x = graph.x
        for i, conv in enumerate(self.convs):
            x = conv(x, graph)
            if i < len(self.norms):
                x = F.dropout(F.relu(self.norms[i](x)), 0.2, self.training)
        return x
