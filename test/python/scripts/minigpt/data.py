"""A synthetic corpus of characters."""
import torch

TEXT = (
    "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. "
    "how vexingly quick daft zebras jump! sphinx of black quartz, judge my vow. "
) * 4


class CharCorpus:
    def __init__(self, text=TEXT, holdout=0.2):
        chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(chars)}
        self.itos = dict(enumerate(chars))
        data = torch.tensor([self.stoi[c] for c in text], dtype=torch.long)
        cut = int(len(data) * (1 - holdout))
        self.splits = {"train": data[:cut], "val": data[cut:]}
        counts = torch.bincount(data, minlength=32).float()
        # 0 the rarest third of the tokens, 2 the commonest
        edges = torch.quantile(counts[counts > 0], torch.tensor([0.33, 0.66]))
        self.frequency_class = torch.bucketize(counts, edges)

    @property
    def vocab_size(self):
        return len(self.stoi)

    def batch(self, split, size, block, device, generator=None):
        data = self.splits[split]
        starts = torch.randint(len(data) - block - 1, (size,), generator=generator)
        window = starts[:, None] + torch.arange(block + 1)
        tokens = data[window].to(device, non_blocking=True)
        return tokens[:, :-1], tokens[:, 1:]

    def encode(self, text):
        return torch.tensor([[self.stoi[c] for c in text]], dtype=torch.long)

    def decode(self, row):
        return "".join(self.itos[int(i)] for i in row)
