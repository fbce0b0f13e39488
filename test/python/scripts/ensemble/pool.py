import torch
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset


class Pool:
    """Examples, of which only some have been labelled."""

    def __init__(self, n, features, labelled):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, features, generator=g)
        self.y = self.x.pow(2).sum(1, keepdim=True).sin()
        self.labelled = torch.zeros(n, dtype=torch.bool)
        self.labelled[torch.randperm(n, generator=g)[:labelled]] = True

    def loader(self, batch_size):
        rows = self.labelled.nonzero().squeeze(1).tolist()
        return DataLoader(TensorDataset(self.x, self.y), batch_size, sampler=SubsetRandomSampler(rows))

    def open_rows(self):
        return (~self.labelled).nonzero().squeeze(1)

    def acquire(self, scores, k):
        """Label the ``k`` rows with the highest scores, wherever these were computed."""
        chosen = self.open_rows()[scores.topk(k).indices.cpu()]
        self.labelled[chosen] = True
        return chosen.tolist()
