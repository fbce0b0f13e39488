import torch
import torch.nn as nn

NEVER = -1e4


def bio_penalty(tags):
    """What no tagger may say: I-X after anything but B-X or I-X."""
    penalty = torch.zeros(len(tags), len(tags))
    for i, before in enumerate(tags):
        for j, after in enumerate(tags):
            if after.startswith('I-') and before[2:] != after[2:]:
                penalty[i, j] = NEVER
    return penalty


class CRF(nn.Module):
    def __init__(self, tags, constrained=False):
        super().__init__()
        n = len(tags)
        self.transitions = nn.Parameter(torch.randn(n, n) * 0.1)
        self.start = nn.Parameter(torch.randn(n) * 0.1)
        self.end = nn.Parameter(torch.randn(n) * 0.1)
        self.penalty = bio_penalty(tags) if constrained else None

    def moves(self):
        if self.penalty is None:
            return self.transitions
        return self.transitions + self.penalty  # raises

    def _score(self, emissions, tags, mask):
        n, length = tags.shape
        rows = torch.arange(n)
        score = self.start[tags[:, 0]] + emissions[rows, 0, tags[:, 0]]
        for t in range(1, length):
            step = self.transitions[tags[:, t - 1], tags[:, t]] + emissions[rows, t, tags[:, t]]
            score = score + step * mask[:, t]
        last = tags[rows, mask.sum(1).cpu() - 1]
        return score + self.end[last]

    def _partition(self, emissions, mask):
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            new = torch.logsumexp(alpha[:, :, None] + self.transitions, 1) + emissions[:, t]
            alpha = torch.where(mask[:, t, None], new, alpha)
        return torch.logsumexp(alpha + self.end, 1)

    def forward(self, emissions, tags, mask):
        return (self._partition(emissions, mask) - self._score(emissions, tags, mask)).mean()

    @torch.no_grad()
    def viterbi(self, emissions, lengths):
        moves = self.moves()
        paths = []
        for each, length in zip(emissions, lengths.tolist()):
            best, back = self.start + each[0], []
            for t in range(1, length):
                best, which = (best[:, None] + moves).max(0)
                back.append(which)
                best = best + each[t]
            path = [int((best + self.end).argmax())]
            for which in reversed(back):
                path.append(int(which[path[-1]]))
            paths.append(path[::-1])
        return paths
