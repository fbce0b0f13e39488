import random

import torch
from torch.utils.data import DataLoader, Dataset

VOCAB = 32
PAD = 0


class Sentences(Dataset):
    def __init__(self, n=12):
        rng = random.Random(0)
        self.items = [[rng.randrange(1, VOCAB) for _ in range(rng.randrange(4, 9))] for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    longest = max(map(len, batch))
    ids = torch.full((len(batch), longest), PAD)
    for i, row in enumerate(batch):
        ids[i, : len(row)] = torch.tensor(row)
    return {
        "input_ids": ids,
        "labels": ids.masked_fill(ids == PAD, -100),
        "attention_mask": ids != PAD,
        "lengths": [len(r) for r in batch],
    }


def make_loader(batch_size):
    return DataLoader(Sentences(), batch_size=batch_size, shuffle=True, collate_fn=collate)
