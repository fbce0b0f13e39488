import random

import torch
from torch.utils.data import Dataset

from tokens import COLOURS, PLACES, SIZES


class Pictures(Dataset):
    """One square or two, and what there is to say about them."""

    def __init__(self, n, tokeniser, side=16, seed=0):
        self.n, self.side, self.seed = n, side, seed
        self.tokeniser = tokeniser

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = random.Random(1000 * self.seed + i)
        image = torch.zeros(3, self.side, self.side)
        said = []
        for place in sorted(rng.sample(range(2), rng.randint(1, 2))):
            colour, size = rng.randrange(3), rng.randrange(2)
            width = (3, 6)[size]
            x, y = place * self.side // 2 + 1, rng.randint(1, self.side - width - 1)
            image[colour, y:y + width, x:x + width] = 1
            said.append(f'a {SIZES[size]} {COLOURS[colour]} square on the {PLACES[place]}')
        return image, ' and '.join(said)

    def collate(self, items):
        images, texts = zip(*items)
        return torch.stack(images), self.tokeniser.batch(texts), list(texts)
