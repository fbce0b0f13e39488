"""Triples of a user, an item seen and some not; made on the CPU by the loader."""
import torch
from torch.utils.data import DataLoader, Dataset


class Triples(Dataset):
    def __init__(self, graph, negatives="uniform", seed=0):
        half = graph.edges.size(1) // 2
        self.pairs = graph.edges[:, :half].t().cpu() - torch.tensor([0, graph.users])
        self.items = graph.items
        popularity = torch.bincount(self.pairs[:, 1], minlength=graph.items).float()
        self.weights = popularity.pow(0.75) + 1e-3 if negatives == "popular" else torch.ones(graph.items)
        self.seen = torch.zeros(graph.users, graph.items, dtype=torch.bool)
        self.seen[self.pairs[:, 0], self.pairs[:, 1]] = True
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        user, item = self.pairs[index]
        weights = self.weights.masked_fill(self.seen[user], 0.0)
        negative = torch.multinomial(weights, 1, generator=self.generator)[0]
        return user, item, negative


class ToDevice:
    """A loader whose batches are on the device."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield [each.to(self.device, non_blocking=True) for each in batch]


def make_loader(graph, device, negatives, batch_size):
    dataset = Triples(graph, negatives)
    shuffled = torch.Generator().manual_seed(1)
    return ToDevice(DataLoader(dataset, batch_size, shuffle=True, generator=shuffled), device)
