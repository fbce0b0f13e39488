import random

import torch
from torch.nn.utils.rnn import pad_sequence


class Vocab:
    PAD, BOS, EOS = range(3)

    def __init__(self, words):
        self.itos = ["<pad>", "<s>", "</s>"] + sorted(words)
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, words):
        return torch.LongTensor([self.stoi[w] for w in words] + [self.EOS])

    def decode(self, ids):
        words = []
        for i in ids:
            if i == self.EOS:
                break
            words.append(self.itos[i])
        return " ".join(words)


def make_corpus(n=12, seed=0):
    rng = random.Random(seed)
    words = list("abcdefg")
    out = []
    for _ in range(n):
        src = [rng.choice(words) for _ in range(rng.randint(2, 5))]
        out.append((src, [w.upper() for w in reversed(src)]))
    return out


def batches(corpus, sv, tv, size):
    for i in range(0, len(corpus), size):
        part = corpus[i:i + size]
        src = pad_sequence([sv.encode(s) for s, _ in part], batch_first=True)
        tgt = pad_sequence([tv.encode(t) for _, t in part], batch_first=True)
        lens = torch.tensor([len(s) + 1 for s, _ in part])
        yield src, lens, tgt
