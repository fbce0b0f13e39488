import numpy as np
import torch


class Graph:
    """Compressed rows on the CPU, features wherever the caller wants them."""

    def __init__(self, indptr, indices, feats, labels):
        self.indptr = indptr
        self.indices = indices
        self.feats = feats
        self.labels = labels

    @property
    def num_nodes(self):
        return self.indptr.numel() - 1

    def degrees(self):
        return self.indptr[1:] - self.indptr[:-1]

    def pin_features(self, device):
        self.feats = self.feats.to(device)
        return self


def random_graph(n=60, avg=4, dim=10, classes=3, seed=0):
    rng = np.random.RandomState(seed)
    labels = rng.randint(classes, size=n)
    rows, ptr = [], [0]
    for v in range(n):
        same = np.flatnonzero(labels == labels[v])
        picks = np.concatenate([rng.choice(same, size=avg), rng.randint(n, size=1)])
        rows.append(picks)
        ptr.append(ptr[-1] + len(picks))
    feats = rng.randn(n, dim) + labels[:, None]
    return Graph(
        torch.as_tensor(np.array(ptr)),
        torch.as_tensor(np.concatenate(rows)),
        torch.as_tensor(feats, dtype=torch.float32),
        torch.as_tensor(labels),
    )
