import random
from collections import defaultdict

import torch


class Interactions:
    def __init__(self, users=10, items=14, per_user=4, seed=0):
        rng = random.Random(seed)
        self.users, self.items = users, items
        self.history = {u: rng.sample(range(items), per_user) for u in range(users)}
        self.held_out = {u: h.pop() for u, h in self.history.items()}
        pairs = [(u, i) for u, h in self.history.items() for i in h]
        self.pairs = torch.tensor(pairs)
        pop = torch.bincount(self.pairs[:, 1], minlength=items).float() + 1
        self.popularity = pop / pop.sum()
        self.item_features = torch.randn(items, 5, generator=torch.Generator().manual_seed(seed))

    def batches(self, size, negatives):
        for rows in torch.randperm(len(self.pairs)).split(size):
            user, pos = self.pairs[rows].unbind(1)
            neg = torch.multinomial(self.popularity, len(rows) * negatives, replacement=True).view(len(rows), negatives)
            yield {"user": user, "pos": pos, "neg": neg}

    def seen_mask(self, users):
        mask = torch.zeros(len(users), self.items, dtype=torch.bool)
        for row, u in enumerate(users.tolist()):
            mask[row, self.history[u]] = True
        return mask
