import abc
import random

import torch

from losses import pairwise_sq
from registry import MINERS


class Miner(abc.ABC):
    @abc.abstractmethod
    def __call__(self, emb, labels):
        """Returns three index tensors: anchors, positives and negatives."""


@MINERS.register('random')
class RandomMiner(Miner):
    def __init__(self, seed=0):
        self.rng = random.Random(seed)

    def __call__(self, emb, labels):
        by_class = {}
        for i, label in enumerate(labels.tolist()):
            by_class.setdefault(label, []).append(i)
        everything = range(len(labels))
        rows = []
        for i in everything:
            rows.append((i, self.rng.choice(list(everything)), self.rng.choice(list(everything))))
        # indices on the CPU, which is fine for a GPU tensor
        return torch.tensor(rows).unbind(1)


@MINERS.register('hard')
class HardestMiner(Miner):
    def __init__(self, seed=0):
        del seed

    @torch.no_grad()
    def __call__(self, emb, labels):
        d = pairwise_sq(emb, emb)
        same = labels[:, None] == labels[None]
        same = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        hardest_pos = d.masked_fill(~same, float('-inf')).argmax(1)
        hardest_neg = d.masked_fill(same, float('inf')).argmin(1)
        return torch.arange(len(labels), device=emb.device), hardest_pos, hardest_neg
