import math


def cosine_lr(it, base, warmup, total, floor=0.1):
    if it < warmup:
        return base * (it + 1) / warmup
    ratio = (it - warmup) / max(1, total - warmup)
    return base * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * ratio)))
