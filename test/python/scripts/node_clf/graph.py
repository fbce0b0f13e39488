from dataclasses import dataclass, fields

import torch


@dataclass
class Graph:
    x: torch.Tensor
    edge_index: torch.Tensor
    y: torch.Tensor
    train_mask: torch.Tensor
    val_mask: torch.Tensor
    names: tuple = ("red", "green", "blue")

    def to(self, device):
        moved = {f.name: getattr(self, f.name) for f in fields(self)}
        moved = {k: v.to(device) if torch.is_tensor(v) else v for k, v in moved.items()}
        return Graph(**moved)

    @property
    def num_nodes(self):
        return self.x.size(0)


def make_graph(n=12, classes=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    x = torch.nn.functional.one_hot(y, classes).float() + 0.3 * torch.randn(n, classes, generator=g)
    src = torch.randint(n, (3 * n,), generator=g)
    dst = (src + classes * torch.randint(1, 4, (3 * n,), generator=g)) % n
    train = torch.rand(n, generator=g) < 0.7
    return Graph(x, torch.stack([src, dst]), y, train, ~train)
