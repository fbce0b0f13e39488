import numpy as np
import torch

TEXT = "to be or not to be that is the question " * 8


class CharData:
    def __init__(self, text=TEXT):
        chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(chars)}
        self.itos = dict(enumerate(chars))
        ids = np.array([self.stoi[c] for c in text], dtype=np.uint16)
        n = int(0.9 * len(ids))
        self.splits = {"train": ids[:n], "val": ids[n:]}
        self.vocab_size = len(chars)

    def get_batch(self, split, batch_size, block_size, device):
        data = self.splits[split]
        ix = torch.randint(len(data) - block_size, (batch_size,))
        x = torch.stack([torch.from_numpy((data[i:i + block_size]).astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy((data[i + 1:i + 1 + block_size]).astype(np.int64)) for i in ix])
        if torch.device(device).type == "cuda":
            x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
        else:
            x, y = x.to(device), y.to(device)
        return x, y

    def decode(self, ids):
        return "".join(self.itos[int(i)] for i in ids)
