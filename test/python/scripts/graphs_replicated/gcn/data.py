from dataclasses import dataclass, fields

import torch


@dataclass
class Graph:
    features: torch.Tensor
    edges: torch.Tensor
    labels: torch.Tensor
    train: torch.Tensor
    test: torch.Tensor

    def to(self, device):
        return Graph(**{each.name: getattr(self, each.name).to(device) for each in fields(self)})

    @property
    def nodes(self):
        return self.features.size(0)

    @property
    def device(self):
        return self.features.device


def communities(nodes=60, classes=3, dim=8, inside=0.3, outside=0.03, seed=0):
    """A graph with more edges within the classes than between them."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (nodes,), generator=rng)
    chance = torch.where(labels[:, None] == labels[None], inside, outside)
    upper = torch.triu(torch.rand(nodes, nodes, generator=rng) < chance, diagonal=1)
    edges = upper.nonzero().t()
    centres = torch.randn(classes, dim, generator=rng)
    features = centres[labels] + torch.randn(nodes, dim, generator=rng)
    chosen = torch.randperm(nodes, generator=rng)
    train = torch.zeros(nodes, dtype=torch.bool)
    train[chosen[: nodes // 3]] = True
    return Graph(features, torch.cat([edges, edges.flip(0)], dim=1), labels, train, ~train)
