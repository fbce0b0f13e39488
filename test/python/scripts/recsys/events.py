import collections
from typing import Dict, List

import numpy as np
import torch
from torch.utils.data import IterableDataset

Interaction = collections.namedtuple('Interaction', ['user', 'item', 'history', 'length', 'price'])


class EventStream(IterableDataset):
    def __init__(self, n_users: int, n_items: int, n: int, max_hist: int = 5, seed: int = 0):
        self.n_users, self.n_items, self.n, self.max_hist = n_users, n_items, n, max_hist
        self.seed = seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        for _ in range(self.n):
            user = int(rng.integers(self.n_users))
            k = int(rng.integers(1, self.max_hist + 1))
            hist = (user + rng.integers(0, 7, size=k)) % (self.n_items - 1) + 1
            yield user, int(hist[-1]), hist[:-1].tolist(), float(rng.random())

    def popularity(self) -> np.ndarray:
        counts = np.ones(self.n_items)
        for _, item, hist, _ in self:
            counts[item] += 1
            for h in hist:
                counts[h] += 1
        return counts


def collate(rows: List[tuple]) -> Interaction:
    users, items, hists, prices = zip(*rows)
    width = max(1, max(len(h) for h in hists))
    padded = np.zeros((len(rows), width), dtype=np.int64)
    for i, h in enumerate(hists):
        padded[i, :len(h)] = h
    return Interaction(
        user=torch.tensor(users),
        item=torch.tensor(items),
        history=torch.from_numpy(padded),
        length=torch.tensor([len(h) for h in hists]),
        price=torch.tensor(prices),
    )


def to_device(batch: Interaction, device, only: Dict[str, bool] = None) -> Interaction:
    if only is None:
        return Interaction(*[field.to(device) for field in batch])
    return batch._replace(**{name: getattr(batch, name).to(device) for name, wanted in only.items() if wanted})
