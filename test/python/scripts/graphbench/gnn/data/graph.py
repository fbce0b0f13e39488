import dataclasses
from typing import Optional

import torch
from torch import Tensor


@dataclasses.dataclass
class Graph:
    x: Tensor
    edge_index: Tensor
    y: Tensor
    train_mask: Tensor
    test_mask: Tensor
    edge_weight: Optional[Tensor] = None

    @property
    def num_nodes(self):
        return self.x.size(0)

    def weigh(self, how):
        row, col = self.edge_index
        if how == 'random':
            self.edge_weight = torch.rand(row.numel())
        else:
            deg = torch.bincount(col, minlength=self.num_nodes).float().clamp(min=1)
            self.edge_weight = (deg[row] * deg[col]).rsqrt()

    def to(self, device):
        moved = {name: getattr(self, name).to(device) for name in ('x', 'edge_index', 'y')}
        return dataclasses.replace(self, **moved)

    def subgraph(self, nodes):
        keep = torch.zeros(self.num_nodes, dtype=torch.bool)
        keep[nodes] = True
        relabel = torch.full((self.num_nodes,), -1)
        relabel[nodes] = torch.arange(nodes.numel())
        edges = keep[self.edge_index[0]] & keep[self.edge_index[1]]
        return Graph(x=self.x[nodes], edge_index=relabel[self.edge_index[:, edges]], y=self.y[nodes],
                     train_mask=self.train_mask[nodes], test_mask=self.test_mask[nodes],
                     edge_weight=None if self.edge_weight is None else self.edge_weight[edges])
