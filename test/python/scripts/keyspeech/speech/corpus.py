import math

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Beeps(Dataset):
    """Each token is a tone."""

    def __init__(self, size, tokens, seed, rate=160):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(size):
            n = int(torch.randint(2, 4, (1,), generator=generator))
            target = torch.randint(1, tokens, (n,), generator=generator)
            t = torch.arange(rate).float()
            wave = torch.cat([torch.sin(2 * math.pi * t * (0.03 + 0.06 * int(k))) for k in target])
            self.items.append((wave + 0.01 * torch.randn(len(wave), generator=generator), target))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Batch:
    def __init__(self, items):
        waves, targets = zip(*sorted(items, key=lambda item: -len(item[0])))
        self.waves = pad_sequence(waves, batch_first=True)
        self.lengths = torch.tensor([len(w) for w in waves])
        self.targets = torch.cat(targets)
        self.target_lengths = torch.tensor([len(t) for t in targets])

    def pin_memory(self):
        self.waves = self.waves.pin_memory()
        return self

    def to(self, device, lengths='host'):
        self.waves = self.waves.to(device, non_blocking=True)
        self.targets = self.targets.to(device)
        if lengths == 'device':
            self.lengths = self.lengths.to(device)
        return self

    def __len__(self):
        return self.lengths.numel()


def make_loaders(settings):
    make = lambda size, seed, shuffle: DataLoader(Beeps(size, settings.tokens, seed), settings.batch_size,
                                                  shuffle=shuffle, collate_fn=Batch)
    return {'train': make(12, 1, True), 'valid': make(4, 2, False)}
