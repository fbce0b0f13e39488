"""Greedy and prefix-beam decoding; the beam works on the CPU."""
import math
from collections import defaultdict

from text import BLANK, collapse, decode


def greedy(log_probs, lengths):
    best = log_probs.argmax(-1)
    return [decode(collapse(row[:n].tolist())) for row, n in zip(best, lengths)]


def _add(a, b):
    if a == -math.inf:
        return b
    if b == -math.inf:
        return a
    high = max(a, b)
    return high + math.log(math.exp(a - high) + math.exp(b - high))


def beam(log_probs, lengths, width=3):
    texts = []
    for frames, n in zip(log_probs.cpu().numpy(), lengths.cpu().numpy()):
        beams = {(): (0.0, -math.inf)}
        for frame in frames[:n]:
            following = defaultdict(lambda: (-math.inf, -math.inf))
            for prefix, (blank, other) in beams.items():
                total = _add(blank, other)
                b, o = following[prefix]
                following[prefix] = (_add(b, total + frame[BLANK]), o)
                for symbol in frame.argsort()[::-1][:width]:
                    symbol = int(symbol)
                    if symbol == BLANK:
                        continue
                    if prefix and prefix[-1] == symbol:
                        b, o = following[prefix]
                        following[prefix] = (b, _add(o, other + frame[symbol]))
                        total_here = blank
                    else:
                        total_here = total
                    longer = prefix + (symbol,)
                    b, o = following[longer]
                    following[longer] = (b, _add(o, total_here + frame[symbol]))
            ranked = sorted(following.items(), key=lambda item: -_add(*item[1]))
            beams = dict(ranked[:width])
        texts.append(decode(next(iter(beams))))
    return texts


DECODERS = {"greedy": greedy, "beam": beam}
