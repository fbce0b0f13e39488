"""Reads operations/*.txt. README.md describes the form of an entry."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from kinds import GROUPS, KINDS

OPERATIONS = Path(__file__).resolve().parent / "operations"


@dataclass
class Entry:
    tags: list
    place: str
    kinds: list = field(default_factory=list)  # of `$v`, where the entry works on one
    need: int = 0  # how many elements `$v` must have
    grow: int = 0
    needKey: str = ""
    addKey: str = ""
    dropKeys: tuple = ()
    types: list = field(default_factory=list)  # what #T may stand for
    top: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    results: list = field(default_factory=list)

    @property
    def name(self):
        return self.tags[0]


def header(text, place):
    parts = [part.strip() for part in text.split("|")]
    entry = Entry(parts[0].split(), place)
    for part in parts[1:]:
        word, *values = part.split()
        if word == "on":
            entry.kinds = [kind for value in values for kind in GROUPS.get(value, [value])]
            unknown = [kind for kind in entry.kinds if kind not in KINDS]
            if unknown:
                raise SystemExit(f"{place}: unknown kind {unknown}")
        elif word in ("need", "grow"):
            setattr(entry, word, int(values[0]))
        elif word == "key":
            entry.needKey = values[0]
        elif word == "add":
            entry.addKey = values[0]
        elif word == "drop":
            entry.dropKeys = tuple(values)
        elif word == "T":
            entry.types = values
        else:
            raise SystemExit(f"{place}: unknown word {word}")
    return entry


def load():
    """All entries, in the order of the files."""
    entries = []
    for path in sorted(OPERATIONS.glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("## "):
                entries.append(header(line[3:], f"{path.name}:{number}"))
                entries[-1].tags.append(path.stem)
            elif not line.strip() or line.startswith("# "):
                continue
            elif line.startswith("^"):
                entries[-1].top.append(line[1:])
            elif line.startswith("RESULT "):
                entries[-1].results.append(line[7:].strip())
            else:
                entries[-1].lines.append(line.rstrip())
    return entries


def letters(text):
    """The tensors A to F that a text uses."""
    return sorted(set(re.findall(r"(?<![\w'\"$])@?([A-F])(?![\w'\"])", text)))
