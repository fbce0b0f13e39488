"""A synthetic corpus: nested brackets with letters in between."""
import random

import torch

OPENING, CLOSING = "([{", ")]}"


def write(length, seed=0):
    rng = random.Random(seed)
    stack, text = [], []
    while len(text) < length:
        draw = rng.random()
        if draw < 0.3 and len(stack) < 5:
            kind = rng.randrange(3)
            stack.append(kind)
            text.append(OPENING[kind])
        elif draw < 0.6 and stack:
            text.append(CLOSING[stack.pop()])
        else:
            text.append(rng.choice("abcde "))
    return "".join(text)


class Corpus:
    def __init__(self, length=4000, valid=0.1, seed=0):
        text = write(length, seed)
        self.chars = sorted(set(text))
        self.to_index = {c: i for i, c in enumerate(self.chars)}
        ids = self.encode(text)
        cut = int(len(ids) * (1 - valid))
        self.splits = {"train": ids[:cut], "valid": ids[cut:]}

    @property
    def size(self):
        return len(self.chars)

    def encode(self, text):
        return torch.tensor([self.to_index[c] for c in text], dtype=torch.long)

    def decode(self, ids):
        return "".join(self.chars[i] for i in ids)

    def batches(self, split, batch_size, window, device):
        """Consecutive windows of parallel streams, so that the state may be carried over."""
        ids = self.splits[split]
        usable = (len(ids) - 1) // batch_size * batch_size
        x = ids[:usable].view(batch_size, -1).to(device)
        y = ids[1 : usable + 1].view(batch_size, -1).to(device)
        for start in range(0, x.size(1) - window + 1, window):
            yield x[:, start : start + window], y[:, start : start + window]
