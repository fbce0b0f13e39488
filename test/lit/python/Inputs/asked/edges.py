"""What an unknown call gives is made of what it was given: it may be where that is."""
import torch

from elsewhere import Sparse, index_of


def edges_of(adjacency):
    if isinstance(adjacency, Sparse):
        row, col = adjacency.parts()
        return torch.stack([row, col]), torch.ones(row.size(0), device=row.device)
    row = index_of(adjacency.crow_indices())
    col = adjacency.col_indices()
    return torch.stack([row, col]), adjacency.values()


class Graphs:
    def process(self):
        return edges_of(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
