import torch


def progressions(vocab, length, generator):
    """Arithmetic progressions modulo the vocabulary."""
    start = torch.randint(vocab, (1,), generator=generator)
    stride = torch.randint(1, 4, (1,), generator=generator)
    return (start + stride * torch.arange(length)) % vocab


class Stream:
    def __init__(self, config, batch_size, seed=0):
        self.config, self.batch_size = config, batch_size
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            rows = [progressions(self.config.vocab, self.config.length, self.generator) for _ in range(self.batch_size)]
            yield torch.stack(rows)
