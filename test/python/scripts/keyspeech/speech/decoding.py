import itertools

import torch


def collapse(path):
    return [k for k, _ in itertools.groupby(path) if k != 0]


def greedy(logp, lengths):
    return [collapse(row[:n].tolist()) for row, n in zip(logp.argmax(-1), lengths.tolist())]


def smoothed(logp, lengths, width=3):
    """Best path through locally averaged scores."""
    kernel = torch.ones(1, 1, width, device=logp.device) / width
    b, t, c = logp.shape
    averaged = torch.nn.functional.conv1d(logp.transpose(1, 2).reshape(b * c, 1, t), kernel, padding=width // 2)
    return greedy(averaged.view(b, c, t).transpose(1, 2), lengths)


def viterbi(logp, lengths):
    """Best path where going from token to token costs something."""
    c = logp.size(-1)
    penalty = -0.5 * (1 - torch.eye(c))
    out = []
    for scores, n in zip(logp, lengths.tolist()):
        total, back = scores[0], []
        for frame in scores[1:n]:
            best, arg = (total[:, None] + penalty).max(dim=0)  # raises
            total = best + frame
            back.append(arg)
        path = [int(total.argmax())]
        for arg in reversed(back):
            path.append(int(arg[path[-1]]))
        out.append(collapse(path[::-1]))
    return out


def token_errors(hypothesis, reference):
    row = list(range(len(reference) + 1))
    for i, h in enumerate(hypothesis, 1):
        previous, row[0] = row[0], i
        for j, r in enumerate(reference, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (h != r))
    return row[-1]
