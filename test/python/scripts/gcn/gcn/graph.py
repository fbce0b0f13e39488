from dataclasses import dataclass, fields
from typing import Optional

import numpy as np
import torch


@dataclass
class CitationGraph:
    features: torch.Tensor
    adj: torch.Tensor
    labels: torch.Tensor
    idx_train: torch.Tensor
    idx_val: torch.Tensor
    class_prior: Optional[torch.Tensor] = None
    name: str = "cora"

    def to(self, device):
        """in place"""
        self.features = self.features.to(device)
        self.adj = self.adj.to(device)
        self.labels = self.labels.to(device)
        self.idx_train, self.idx_val = self.idx_train.to(device), self.idx_val.to(device)
        return self

    def summary(self):
        return {f.name: tuple(getattr(self, f.name).shape) for f in fields(self) if torch.is_tensor(getattr(self, f.name))}


def normalize(mx):
    rowsum = mx.sum(1)
    r_inv = np.power(rowsum, -1., where=rowsum > 0)
    return (np.diag(r_inv) @ mx).astype(np.float32)


def load_data(n=12, f=5, c=3, seed=0):
    rng = np.random.default_rng(seed)
    adj = (rng.random((n, n)) < .3).astype(np.float32)
    adj = np.maximum(adj, adj.T) + np.eye(n, dtype=np.float32)
    labels = torch.from_numpy(rng.integers(0, c, n))
    prior = torch.bincount(labels, minlength=c).float() / n
    perm = torch.from_numpy(rng.permutation(n))
    return CitationGraph(torch.from_numpy(normalize(rng.random((n, f)))), torch.from_numpy(normalize(adj)).to_sparse(), labels,
                         perm[:8], perm[8:], prior)
