import torch

TEXT = (
    "to be or not to be that is the question whether tis nobler in the mind to suffer "
    "the slings and arrows of outrageous fortune or to take arms against a sea of troubles hello world "
)


class CharCorpus:
    def __init__(self, text: str = TEXT * 3):
        chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(chars)}
        self.itos = dict(enumerate(chars))
        self.vocab_size = len(chars)
        ids = self.encode(text)
        cut = int(0.9 * len(ids))
        self.splits = {"train": ids[:cut], "val": ids[cut:]}

    def encode(self, s: str) -> torch.Tensor:
        return torch.tensor([self.stoi[c] for c in s], dtype=torch.long)

    def decode(self, ids) -> str:
        return "".join(self.itos[int(i)] for i in ids)


def batches(corpus, cfg, split):
    """Endless (input, target) pairs on the host, pinned where that is possible."""
    data = corpus.splits[split]
    generator = torch.Generator().manual_seed(cfg.seed)
    pin = torch.cuda.is_available()
    while True:
        ix = torch.randint(len(data) - cfg.context - 1, (cfg.batch_size,), generator=generator)
        x = torch.stack([data[i:i + cfg.context] for i in ix])
        y = torch.stack([data[i + 1:i + 1 + cfg.context] for i in ix])
        yield (x.pin_memory(), y.pin_memory()) if pin else (x, y)
