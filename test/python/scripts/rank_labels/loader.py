import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Tagged(Dataset):
    def __init__(self, vocab, tags, n=16):
        g = torch.Generator().manual_seed(7)
        self.lens = torch.randint(3, 7, (n,), generator=g)
        self.words = [torch.randint(1, vocab, (int(l),), generator=g) for l in self.lens]
        self.tags = [w % tags for w in self.words]

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.words[i], self.tags[i]


def pad(batch):
    n = max(len(w) for w, _ in batch)
    words = torch.zeros(len(batch), n, dtype=torch.long)
    tags, mask = torch.zeros_like(words), torch.zeros(len(batch), n)
    for r, (w, t) in enumerate(batch):
        words[r, :len(w)], tags[r, :len(t)], mask[r, :len(w)] = w, t, 1
    return words, tags, mask


def build_loader(vocab, tags, rank=0, world=1, batch_size=4):
    ds = Tagged(vocab, tags)
    return DataLoader(Subset(ds, range(rank, len(ds), world)), batch_size=batch_size, collate_fn=pad)
