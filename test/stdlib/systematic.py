"""Systematic functions: every entry of the catalogue alone."""

import itertools
import random

import spelling
from catalogue import letters
from function import Function
from kinds import KINDS
from labels import LABELS, SPELLED

FINALS = ["auto $product = {w}.mm({o});", "Tensor $product = torch::mm({e}, {o});", "auto $product = {o}.mm({e});",
          "Tensor $operand = {e};\nauto $product = $operand.mm({o});", "auto $product = {e} + {o};",
          "const auto& $operand = {e};\nauto $product = {o}.matmul($operand);", "{w}.mm({o});",
          "auto $operand = {e};\n$operand += {o};"]  # fmt: skip


def systematic(entries, seed):
    """Yields each entry with every kind, type, result and spelling, each with labels and with swapped ones."""
    numbers = itertools.count()
    for entry in entries:
        rng = random.Random(f"{seed} {entry.place}")
        for kind, type_ in itertools.product(entry.kinds or [None], entry.types or [None]):
            yield from Systematic(entry, kind, type_, rng, numbers).functions()


class Systematic:
    def __init__(self, entry, kind, type_, rng, numbers):
        self.entry, self.kind, self.type, self.rng, self.numbers = entry, KINDS.get(kind), type_, rng, numbers

    def results(self):
        if self.entry.results or not self.kind:
            return self.entry.results or [None]
        size = self.kind.size + self.entry.grow
        keys = set(self.kind.keys) - set(self.entry.dropKeys) | {self.entry.addKey}
        fit = [text for text, need in self.kind.observers
               if (need in keys if isinstance(need, str) else need <= size)]  # fmt: skip
        # Not every observer after every operation, but the places at both ends and one between.
        return fit if len(fit) <= 3 else self.rng.sample(fit, 3)

    def functions(self):
        jumps = not self.kind or self.kind.jumps
        count = spelling.spellings(self.entry.lines + self.entry.results, jumps)
        results = self.results()
        for number in range(max(count, len(results))):
            result = results[number % len(results)]
            yield from self.twins(number, result, jumps)

    def twins(self, number, result, jumps):
        kind, rng = self.kind, self.rng
        setup = rng.choice(kind.declarations).split("\n") if kind else []
        offsets = [rng.randrange(1000) for _ in range(40)]
        final = rng.choice(FINALS).split("\n") if result else []
        text = "\n".join(setup + self.entry.lines + self.entry.top + [result or ""])
        used = letters(text)
        hot = used[number % len(used)] if used else ""
        base, odd = rng.sample(LABELS, 2) if rng.random() < 0.3 else rng.sample(LABELS[:2], 2)
        plainSpelling, long = rng.random() < 0.85, rng.random() < 0.15
        spelled = {label: rng.choice(SPELLED[label]) for label in LABELS}
        for swapped in (False, True):
            labels = {letter: odd if (letter == hot) != swapped else base for letter in used}
            counter = itertools.count()

            def pick(choices, counter=counter):
                return (number + offsets[next(counter) % 40]) % choices

            def label(letter, labels=labels):
                return labels[letter] if plainSpelling else spelled[labels[letter]]

            lines = spelling.spell([*self.entry.lines, *([f"RESULT {result}"] if result else [])], pick, jumps)
            if result:
                expression = lines.pop()[7:]
                lines += [form.format(e=expression, w=spelling.wrapped(expression), o=base) for form in final]
            lines = [spelling.used(line, base) for line in setup + lines]
            function = compose(next(self.numbers), [*self.entry.tags], self.entry.top, lines, label, label,
                               self.kind, self.type, spelling.LONG if long else "", base)  # fmt: skip
            function.tags += [kind.name] if kind else []
            yield function


def compose(number, tags, top, lines, plain, any_, kind, type_, suffix, other):
    names, known = spelling.Names(suffix), {"v": "items"}
    known["v"] = names.fresh("items" if kind and kind.size > 1 else "item")
    top = [spelling.used(line, other) for line in top]
    whole = spelling.rename(spelling.tensors(top, plain, plain) + spelling.tensors(lines, plain, any_), names, known)
    whole = [line.replace("#K", kind.name if kind else "").replace("#T", (type_ or "").replace("~", " "))
             for line in whole]  # fmt: skip
    return Function(f"f{number}", tags, whole[: len(top)], whole[len(top):])
