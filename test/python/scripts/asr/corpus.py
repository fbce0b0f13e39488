import random

import torch
from torch.nn.utils.rnn import pad_sequence

ALPHABET = '_abcdef'


def utterance(rng, speakers):
    text = [rng.randrange(1, len(ALPHABET)) for _ in range(rng.randint(2, 5))]
    speaker = rng.randrange(speakers)
    t = torch.arange(160) / 4000.0
    wave = torch.cat([torch.sin(6.28 * (200 * i + 20 * speaker) * t) for i in text])
    return {'wave': wave + 0.01 * torch.randn_like(wave), 'text': torch.tensor(text), 'speaker': speaker}


def build(n, speakers=2, seed=5):
    rng = random.Random(seed)
    return [utterance(rng, speakers) for _ in range(n)]


class Collator:
    """Pads; what the loss wants on the CPU stays there."""

    def __init__(self, device=None):
        self.device = device

    def __call__(self, items):
        batch = {
            'wave': pad_sequence([i['wave'] for i in items], batch_first=True),
            'samples': torch.tensor([len(i['wave']) for i in items]),
            'text': pad_sequence([i['text'] for i in items], batch_first=True),
            'text_len': torch.tensor([len(i['text']) for i in items]),
            'speaker': torch.tensor([i['speaker'] for i in items]),
        }
        if self.device is not None:
            batch = {k: v.to(self.device) if k != 'samples' else v for k, v in batch.items()}
        return batch
