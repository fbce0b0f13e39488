import numpy as np
import torch


class NegativeSampler:
    def __init__(self, graph, seed=0):
        self.n = graph.n
        self.taken = set(map(tuple, graph.edge_index.t().tolist()))
        self.rng = np.random.default_rng(seed)

    def __call__(self, k):
        out = []
        while len(out) < k:
            a, b = (int(v) for v in self.rng.integers(0, self.n, 2))
            if a != b and (a, b) not in self.taken and (b, a) not in self.taken:
                out.append((a, b))
        return torch.tensor(out).t()
