import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import Dataset


class Utterances(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            t = int(torch.randint(12, 20, (), generator=g))
            self.items.append((torch.randn(t, 6, generator=g), torch.randint(1, 5, (int(torch.randint(2, 5, (), generator=g)),), generator=g)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(rows):
    rows = sorted(rows, key=lambda r: -len(r[0]))
    feats, targets = zip(*rows)
    return dict(feats=pad_sequence(feats, batch_first=True), frames=torch.tensor([len(f) for f in feats]),
                targets=torch.cat(targets), target_lens=torch.tensor([len(t) for t in targets]))


class SpecAugment(nn.Module):
    def forward(self, x):
        if not self.training:
            return x
        f0 = torch.randint(0, x.size(2) - 1, (x.size(0),))
        mask = torch.ones(x.size(0), 1, x.size(2))
        mask[torch.arange(x.size(0)), 0, f0] = 0
        return x * mask.to(x)


class CTCModel(nn.Module):
    def __init__(self, vocab=5):
        super().__init__()
        self.aug, self.rnn, self.out = SpecAugment(), nn.GRU(6, 8, batch_first=True), nn.Linear(8, vocab)
        self.register_buffer("mean", torch.zeros(6))
        self.momentum = torch.tensor(.1)

    def forward(self, feats, frames):
        if self.training:
            with torch.no_grad():
                self.mean.mul_(1 - self.momentum).add_(feats.mean((0, 1)) * self.momentum)
        x = self.aug(feats - self.mean)
        packed = pack_padded_sequence(x, frames.cpu(), batch_first=True)     # DDP moved it
        y, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(y).log_softmax(-1)
