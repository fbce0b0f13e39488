"""Alphabet and edit distance."""

BLANK = 0
ALPHABET = "_abcdefgh"


def encode(text):
    return [ALPHABET.index(c) for c in text]


def decode(ids):
    return "".join(ALPHABET[i] for i in ids if i != BLANK)


def collapse(ids):
    out, last = [], None
    for i in ids:
        if i != last and i != BLANK:
            out.append(i)
        last = i
    return out


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
