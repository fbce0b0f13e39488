import itertools

import numpy as np


def collapse(path, alphabet):
    return "".join(alphabet[k] for k, _ in itertools.groupby(path) if k != 0)


def greedy(log_probs, lengths, alphabet):
    best = log_probs.argmax(-1)
    return [collapse(row[:n].tolist(), alphabet) for row, n in zip(best, lengths)]


def prefix_beam(log_probs, length, alphabet, width=3):
    probs = np.exp(log_probs[: int(length)])
    beams = {(): (1.0, 0.0)}
    for frame in probs:
        scores = {}
        for prefix, (blank, other) in beams.items():
            for k, p in enumerate(frame):
                if k == 0:
                    b, o = scores.get(prefix, (0.0, 0.0))
                    scores[prefix] = (b + (blank + other) * p, o)
                    continue
                longer = prefix + (k,)
                b, o = scores.get(longer, (0.0, 0.0))
                scores[longer] = (b, o + (blank if prefix and prefix[-1] == k else blank + other) * p)
        beams = dict(sorted(scores.items(), key=lambda item: -sum(item[1]))[:width])
    return "".join(alphabet[k] for k in max(beams, key=lambda key: sum(beams[key])))
