import numpy as np
import torch

TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. " * 3


class Corpus:
    def __init__(self, text=TEXT, held_out=0.1):
        chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(chars)}
        self.itos = dict(enumerate(chars))
        data = np.array([self.stoi[c] for c in text], dtype=np.uint16)
        n = int(len(data) * (1 - held_out))
        self.splits = {"train": data[:n], "val": data[n:]}

    def __len__(self):
        return len(self.stoi)

    def batch(self, split, batch_size, block_size, device):
        data = self.splits[split]
        ix = torch.randint(len(data) - block_size, (batch_size,))
        x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
        return x.to(device), y.to(device)

    def encode(self, s):
        return [self.stoi[c] for c in s]

    def decode(self, ids):
        return "".join(self.itos[int(i)] for i in ids)
