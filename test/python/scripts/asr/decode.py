import torch


class GreedyDecoder:
    def __init__(self, alphabet, blank=0):
        self.alphabet, self.blank = alphabet, blank

    def __call__(self, logp, lengths):
        texts = []
        for row, n in zip(logp.argmax(-1), lengths.tolist()):
            ids = torch.unique_consecutive(row[:n]).tolist()
            texts.append(''.join(self.alphabet[i] for i in ids if i != self.blank))
        return texts


class BigramDecoder(GreedyDecoder):
    """Greedy, with a bigram prior added to each frame."""

    def __init__(self, alphabet, transcripts, blank=0, weight=0.3):
        super().__init__(alphabet, blank)
        counts = torch.ones(len(alphabet), len(alphabet))
        for t in transcripts:
            for a, b in zip(t[:-1], t[1:]):
                counts[a, b] += 1
        self.prior = weight * (counts / counts.sum(1, keepdim=True)).log()

    def __call__(self, logp, lengths):
        out = logp.clone()
        previous = logp[:, 0].argmax(-1)
        for t in range(1, logp.size(1)):
            out[:, t] = logp[:, t] + self.prior[previous]  # raises
            previous = out[:, t].argmax(-1)
        return super().__call__(out, lengths)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]
