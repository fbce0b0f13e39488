"""Synthetic review corpus: token ids with variable lengths and noisy labels."""
import random

import torch
from torch.utils.data import DataLoader, Dataset

PAD = 0
CLS = 1


class ReviewDataset(Dataset):
    def __init__(self, size, vocab_size, num_classes, max_len, seed=0):
        rng = random.Random(seed)
        self.samples = []
        for _ in range(size):
            label = rng.randrange(num_classes)
            length = rng.randint(3, max_len - 1)
            low = 2 + label * 5
            tokens = [CLS] + [rng.randint(low, vocab_size - 1) for _ in range(length)]
            self.samples.append((tokens, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]

    def class_counts(self, num_classes):
        counts = torch.zeros(num_classes)
        for _, label in self.samples:
            counts[label] += 1
        return counts


def collate(batch):
    lengths = torch.tensor([len(tokens) for tokens, _ in batch])
    width = int(lengths.max())
    ids = torch.full((len(batch), width), PAD, dtype=torch.long)
    for row, (tokens, _) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
    return {
        "input_ids": ids,
        "lengths": lengths,
        "labels": torch.tensor([label for _, label in batch]),
    }


def build_loaders(args):
    train = ReviewDataset(24, args.vocab_size, args.num_classes, args.max_len, seed=args.seed)
    valid = ReviewDataset(12, args.vocab_size, args.num_classes, args.max_len, seed=args.seed + 1)
    return (
        DataLoader(train, batch_size=args.batch_size, shuffle=True, collate_fn=collate),
        DataLoader(valid, batch_size=args.batch_size, collate_fn=collate),
    )


def batch_to(batch, device, skip=()):
    return {key: value if key in skip else value.to(device) for key, value in batch.items()}
