import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler

NAMES = ['ada', 'grace', 'alan', 'edsger', 'barbara']
TOWNS = ['oslo', 'lima', 'quito', 'bonn']
WORDS = ['met', 'left', 'in', 'near', 'saw', 'yesterday', 'the', 'old', 'bridge', 'and']
TAGS = ['O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC']


class Vocabulary:
    def __init__(self, words):
        self.words = ['<pad>', '<unk>'] + sorted(set(words))
        self.index = {w: i for i, w in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def encode(self, tokens):
        return torch.tensor([self.index.get(t, 1) for t in tokens])


def sentence(rng):
    tokens, tags = [], []
    for _ in range(rng.randint(2, 4)):
        for _ in range(rng.randint(0, 2)):
            tokens.append(rng.choice(WORDS))
            tags.append('O')
        kind, source = rng.choice([('PER', NAMES), ('LOC', TOWNS)])
        for k in range(rng.randint(1, 2)):
            tokens.append(rng.choice(source))
            tags.append(('I-' if k else 'B-') + kind)
    return tokens, tags


class Sentences(Dataset):
    def __init__(self, n, seed, vocabulary=None):
        rng = random.Random(seed)
        self.items = [sentence(rng) for _ in range(n)]
        self.vocabulary = vocabulary or Vocabulary(t for tokens, _ in self.items for t in tokens)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        tokens, tags = self.items[i]
        return self.vocabulary.encode(tokens), torch.tensor([TAGS.index(t) for t in tags])


class Buckets(Sampler):
    """Batches of sentences of about the same length."""

    def __init__(self, dataset, size, seed=0):
        self.order = sorted(range(len(dataset)), key=lambda i: len(dataset.items[i][0]))
        self.size = size
        self.rng = random.Random(seed)

    def __iter__(self):
        batches = [self.order[i:i + self.size] for i in range(0, len(self.order), self.size)]
        self.rng.shuffle(batches)
        return iter(batches)

    def __len__(self):
        return -(-len(self.order) // self.size)


class Batch:
    def __init__(self, words, tags, lengths):
        self.words, self.tags, self.lengths = words, tags, lengths

    @classmethod
    def collate(cls, items):
        words, tags = zip(*items)
        return cls(pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True),
                   torch.tensor([len(w) for w in words]))

    @property
    def mask(self):
        return torch.arange(self.words.shape[1])[None] < self.lengths[:, None]

    def to(self, device):
        return Batch(self.words.to(device), self.tags.to(device), self.lengths)
