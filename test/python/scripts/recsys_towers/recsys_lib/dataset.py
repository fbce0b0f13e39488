import numpy as np
import torch


class Interactions:
    """User-item pairs with negatives drawn by popularity or uniformly."""

    def __init__(self, users, items, pairs, seed=0):
        rng = np.random.default_rng(seed)
        self.num_users, self.num_items = users, items
        self.users = rng.integers(0, users, pairs)
        self.items = (rng.pareto(1.5, pairs) * 3).astype(np.int64) % items
        self.rng = rng
        self.test_items = rng.integers(0, items, users)

    def popularity(self):
        return np.bincount(self.items, minlength=self.num_items) + 1

    def batches(self, size, negatives):
        order = self.rng.permutation(len(self.users))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            drawn = self.rng.integers(0, self.num_items, (len(rows), negatives))
            yield (
                torch.from_numpy(self.users[rows]),
                torch.from_numpy(self.items[rows]),
                torch.from_numpy(drawn),
            )

    def seen(self):
        matrix = torch.zeros(self.num_users, self.num_items, dtype=torch.bool)
        matrix[self.users, self.items] = True
        return matrix
