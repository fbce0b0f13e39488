"""Random functions: several entries of the catalogue after each other, each with tensors that earlier ones made."""

import random
from dataclasses import dataclass

import spelling
from function import Function
from kinds import KINDS
from labels import LABELS

FINALS = ["{w}.mm({o});", "auto {n} = {w}.mm({o});", "auto {n} = {o}.mm({e});", "auto {n} = {e} + {o};",
          "Tensor {n} = torch::mm({e}, {o});"]  # fmt: skip


@dataclass
class Variable:
    name: str
    kind: object
    size: int
    keys: set

    def observers(self):
        if self.kind.keys:
            return [text for text, key in self.kind.observers if key in self.keys]
        return [text for text, need in self.kind.observers if need <= self.size]


class Composition:
    def __init__(self, entries, seed, number):
        self.rng = random.Random(f"{seed} {number}")
        self.entries, self.number = entries, number
        self.names = spelling.Names(spelling.LONG if self.rng.random() < 0.08 else "")
        self.labels = LABELS[:2] if self.rng.random() < 0.7 else LABELS
        self.home = self.rng.choice(self.labels)  # most tensors are here
        self.tags, self.top, self.body = [], [], []
        self.variables, self.tensors = [], []
        self.shrinking = None  # what the entry being written takes elements from: they may be gone

    def label(self, _=None):
        return self.home if self.rng.random() < 0.5 else self.rng.choice(self.labels)

    def expression(self, _=None):
        """Any tensor: a label, a variable, or an element of a container."""
        chance = self.rng.random()
        if chance < 0.35 and self.tensors:
            return self.rng.choice(self.tensors[-3:])
        usable = [variable for variable in self.variables[-3:] if variable is not self.shrinking]
        if chance < 0.7 and usable:
            return self.observed(self.rng.choice(usable)) or self.label()
        return self.label()

    def observed(self, variable):
        observers = variable.observers()
        if not observers:
            return None
        text = self.rng.choice(observers).replace("$v", variable.name)
        return spelling.LETTER.sub(lambda _: self.label(), text)

    def write(self, entry, lines, variable):
        """Adds the lines; returns the names they got."""
        jumps = not variable or variable.kind.jumps
        known = {"v": variable.name} if variable else {}
        type_ = self.rng.choice(entry.types) if entry and entry.types else ""
        kind = variable.kind.name if variable else ""

        def finished(texts, any_):
            texts = spelling.spell(texts, self.rng.randrange, jumps)
            texts = [spelling.used(text, self.label()) for text in texts]
            texts = spelling.rename(spelling.tensors(texts, self.label, any_), self.names, known)
            return [text.replace("#K", kind).replace("#T", type_.replace("~", " ")) for text in texts]

        if entry:
            self.top += finished(entry.top, self.label)
        self.body += finished(lines, self.expression)
        return known

    def container(self, kind):
        # The name is taken when the elements are there: they do not mention it.
        variable = Variable(self.names.fresh("items" if kind.size > 1 else "item"), kind, kind.size, set(kind.keys))
        self.write(None, self.rng.choice(kind.declarations).split("\n"), variable)
        self.variables.append(variable)
        self.tags.append(kind.name)

    def step(self):
        entry = self.rng.choice(self.entries)
        variable = None
        if entry.kinds:
            # Texts of `on` entries expect three elements at least, or what `need` says.
            fit = [v for v in self.variables[-3:] if v.kind.name in entry.kinds
                   and v.size >= (entry.need or v.kind.size) and v.keys >= set(v.kind.keys)]  # fmt: skip
            if fit and self.rng.random() < 0.75:
                variable = self.rng.choice(fit)
            else:
                self.container(KINDS[self.rng.choice(entry.kinds)])
                variable = self.variables[-1]
        lines, result = list(entry.lines), self.rng.choice(entry.results) if entry.results else None
        if result:
            lines.append(self.rng.choice(["auto", "Tensor", "const auto"]) + f" $got = {result};")
        self.shrinking = variable if entry.grow < 0 or entry.dropKeys else None
        known = self.write(entry, lines, variable)
        self.shrinking = None
        self.tags += entry.tags
        if result:
            self.tensors.append(known["got"])
        if variable:
            variable.size += entry.grow
            variable.keys |= {entry.addKey} - {""}
            variable.keys -= set(entry.dropKeys)

    def function(self):
        for _ in range(self.rng.randint(2, 6)):
            self.step()
        for _ in range(self.rng.choice([1, 2, 2])):
            operand, other, name = self.last(), self.rng.choice(self.labels), self.names.fresh("product")
            form = self.rng.choice(FINALS)
            self.body.append(form.format(e=operand, w=spelling.wrapped(operand), o=other, n=name))
        return Function(f"f{self.number}", list(dict.fromkeys(self.tags)), self.top, self.body)

    def last(self):
        choices = self.tensors[-2:] + [self.observed(v) for v in self.variables[-2:]]
        choices = [text for text in choices if text]
        return self.rng.choice(choices) if choices else self.expression()


def compositions(entries, seed, count):
    for number in range(count):
        yield Composition(entries, seed, number).function()
