"""Synthetic utterances: every letter is a tone."""
import math

import torch
from torch.utils.data import DataLoader, Dataset

from text import ALPHABET, encode

RATE, PER_LETTER = 800, 64


class Tones(Dataset):
    def __init__(self, count=6, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.texts = []
        for _ in range(count):
            n = int(torch.randint(3, 6, (1,), generator=self.g))
            letters = torch.randint(1, len(ALPHABET), (n,), generator=self.g)
            self.texts.append("".join(ALPHABET[i] for i in letters))

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        text = self.texts[index]
        time = torch.arange(PER_LETTER) / RATE
        parts = [torch.sin(2 * math.pi * 40.0 * i * time) for i in encode(text)]
        wave = torch.cat(parts)
        return wave + 0.01 * torch.randn(len(wave), generator=self.g), torch.tensor(encode(text)), text


def collate(samples):
    samples = sorted(samples, key=lambda s: -len(s[0]))
    waves, labels, texts = zip(*samples)
    return {
        "waves": torch.nn.utils.rnn.pad_sequence(waves, batch_first=True),
        "wave_lengths": torch.tensor([len(w) for w in waves]),
        "labels": torch.nn.utils.rnn.pad_sequence(labels, batch_first=True),
        "label_lengths": torch.tensor([len(x) for x in labels]),
        "texts": list(texts),
    }


def make_loader(batch_size=3, **kwargs):
    return DataLoader(Tones(**kwargs), batch_size=batch_size, collate_fn=collate)


def statistics(frontend, dataset):
    """Mean and deviation of each band over the corpus."""
    frames = [frontend.spectrum(wave[None])[0] for wave, _, _ in dataset]
    frames = torch.cat(frames)
    return frames.mean(0), frames.std(0)
