import torch
import torch.nn.functional as F
from torch import nn

from ..registry import register
from ..scatter import scatter_softmax, scatter_sum


def add_self_loops(edge_index, n):
    loops = torch.arange(n).repeat(2, 1)
    return torch.cat([edge_index, loops], dim=1)  # raises


@register('conv', 'gat')
class GATConv(nn.Module):
    def __init__(self, cin, cout, loops=False, heads=2):
        super().__init__()
        self.heads, self.loops = int(heads), loops
        self.lin = nn.Linear(cin, cout * self.heads)
        self.att = nn.ParameterDict({k: nn.Parameter(torch.randn(1, self.heads, cout) * 0.1) for k in ('src', 'dst')})

    def forward(self, x, graph):
        n = x.size(0)
        edge_index = add_self_loops(graph.edge_index, n) if self.loops else graph.edge_index
        h = self.lin(x).view(n, self.heads, -1)
        source, target = edge_index
        score = (h * self.att['src']).sum(-1)[source] + (h * self.att['dst']).sum(-1)[target]
        alpha = scatter_softmax(F.leaky_relu(score, 0.2), target, n)
        return scatter_sum(alpha.unsqueeze(-1) * h[source], target, n).mean(dim=1)
