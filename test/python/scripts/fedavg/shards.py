import numpy as np
import torch
from torch.utils.data import Dataset, Subset


class Blobs(Dataset):
    def __init__(self, n, classes=4, dim=8, seed=0):
        rng = np.random.default_rng(seed)
        centres = np.random.default_rng(123).normal(0, 2, (classes, dim))
        labels = rng.integers(classes, size=n)
        self.x = torch.as_tensor(centres[labels] + rng.normal(0, 1, (n, dim)), dtype=torch.float32)
        self.y = torch.as_tensor(labels)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def dirichlet_split(dataset, clients, alpha, seed=0):
    """Uneven shards: the smaller alpha, the fewer classes a client sees."""
    rng = np.random.default_rng(seed)
    labels = dataset.y.numpy()
    shards = [[] for _ in range(clients)]
    for k in np.unique(labels):
        where = rng.permutation(np.flatnonzero(labels == k))
        cuts = (np.cumsum(rng.dirichlet([alpha] * clients))[:-1] * len(where)).astype(int)
        for shard, part in zip(shards, np.split(where, cuts)):
            shard.extend(part.tolist())
    return [Subset(dataset, sorted(s)) for s in shards]
