"""The bipartite graph of users and items."""
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np
import torch


@dataclass
class Graph:
    users: int
    items: int
    edges: torch.Tensor          # (2, E), users then items offset by the number of users
    norm: Optional[torch.Tensor] = None

    @classmethod
    def from_pairs(cls, pairs, users, items):
        u, i = np.asarray(pairs, dtype=np.int64).T
        edges = torch.from_numpy(np.stack([u, i + users]))
        return cls(users, items, torch.cat([edges, edges.flip(0)], dim=1))

    @property
    def nodes(self):
        return self.users + self.items

    def degrees(self):
        ones = torch.ones(self.edges.size(1))
        out = torch.zeros(self.nodes)
        return out.index_add_(0, self.edges[0].cpu(), ones)

    def with_norm(self):
        degree = self.degrees().clamp(min=1)
        scale = degree.rsqrt()
        source, target = self.edges
        # the edges may already be on a GPU, the table of degrees is not
        norm = scale[source.cpu()] * scale[target.cpu()]
        return replace(self, norm=norm.to(self.edges.device))

    def to(self, device):
        norm = self.norm.to(device) if self.norm is not None else None
        return replace(self, edges=self.edges.to(device), norm=norm)

    def drop_edges(self, rate):
        keep = torch.rand(self.edges.size(1)) >= rate
        return replace(self, edges=self.edges[:, keep], norm=self.norm[keep] / (1 - rate))

    def seen_by(self, user):
        source, target = self.edges
        return target[source == user] - self.users
