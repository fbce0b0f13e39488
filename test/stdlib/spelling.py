"""Turns the text of an entry into C++: spellings, names of variables, tensors."""

import re

LONG = "_of_the_samples_that_every_worker_collected_in_the_current_epoch"
SLOT = re.compile(r"<<(.*?)>>|\b(BEGIN|END|POS)\(([^(),]*)(?:, *([^(),]*))?\)", re.S)
LETTER = re.compile(r"(?<![\w'\"$])(@?)([A-F])(?![\w'\"])")
NAME = re.compile(r"\$(\w+)")
RESERVED = ["host", "gpu", "second", "look", "change"]
# Lines before which no other statement may be put.
FIXED = re.compile(r"\s*(while|else|case|default|\}|\.|,|\)|\?|:|<<)")


class Names:
    """Names of variables that do not collide within one function."""

    def __init__(self, suffix=""):
        self.suffix, self.taken = suffix, dict.fromkeys(RESERVED, 1)

    def fresh(self, hint):
        number = self.taken[hint] = self.taken.get(hint, 0) + 1
        return hint + self.suffix + (str(number) if number > 1 else "")


def alternatives(match, jumps):
    """(statement to put before the line or None, expression) for each spelling of a slot."""
    choice, macro, place, count = match.groups()
    if choice is not None:
        return [(None, text.strip()) for text in choice.split(";;")]
    if macro == "BEGIN":
        return [(None, f"{place}.begin()"), (None, f"std::begin({place})"),
                (f"auto $from = {place}.begin();", "$from")]  # fmt: skip
    if macro == "END":
        return [(None, f"{place}.end()"), (None, f"std::end({place})"),
                (f"const auto $until = {place}.end();", "$until")]  # fmt: skip
    made = [(None, f"std::next({place}.begin(), {count})"),
            (f"auto $position = std::next({place}.begin(), {count});", "$position"),
            (f"auto $position = {place}.begin();\nstd::advance($position, {count});", "$position")]  # fmt: skip
    if count == "1":
        made += [(None, f"std::next({place}.begin())"),
                 (f"auto $position = {place}.begin();\n++$position;", "$position")]  # fmt: skip
    if jumps:
        made += [(None, f"{place}.begin() + {count}"), (f"auto $position = {place}.begin() + {count};", "$position"),
                 (f"auto $position = {place}.begin();\n$position += {count};", "$position")]  # fmt: skip
    return made


def spellings(lines, jumps=True):
    """How many spellings the richest slot of these lines has."""
    return max([len(alternatives(match, jumps)) for line in lines for match in SLOT.finditer(line)], default=1)


def spell(lines, pick, jumps=True):
    """The lines with every slot replaced by the spelling pick(count) says."""
    out, renamed = [], []
    for line in lines:
        before = []

        def replace(match, before=before):
            choices = alternatives(match, jumps)
            statement, text = choices[pick(len(choices))]
            if not statement:
                tight = match.string[: match.start()].endswith("*") and "+ " in text
                return f"({text})" if tight else text
            if FIXED.match(match.string):
                return choices[0][1]
            hint = NAME.search(text).group(1)
            unique = hint + "_" * (len(renamed) + 1)  # the entry may have a variable of that name, too
            renamed.append(unique)
            for part in statement.split("\n"):
                before.append(part.replace("$" + hint, f"${unique}"))
            return f"${unique}"

        text = SLOT.sub(replace, line)
        while SLOT.search(text):
            text = SLOT.sub(replace, text)
        indent = line[: len(line) - len(line.lstrip())]
        out += [indent + part for part in before]
        out.append(text)
    return out


def rename(lines, names, known=None):
    """Replaces $names; `known` (changed) maps those that have a name already."""
    known = {} if known is None else known

    def replace(match):
        word = match.group(1)
        if word not in known:
            known[word] = names.fresh(word.rstrip("_"))
        return known[word]

    return [NAME.sub(replace, line) for line in lines]


def tensors(lines, plain, any_):
    """Replaces the letters: `@A` by plain("A"), a label; `A` by any_("A"), any tensor expression."""

    def replace(match):
        text = (plain if match.group(1) else any_)(match.group(2))
        return wrapped(text) if match.string[match.end() :].startswith(".") else text

    return [LETTER.sub(replace, line) for line in lines]


def wrapped(expression):
    """The expression as something that a member can be taken of."""
    plain = re.fullmatch(r"[\w.:]+(?:<\w+>)?(?:->\w+|\.\w+|\([^()]*\)|\[[^\[\]]*\])*", expression)
    return expression if plain else f"({expression})"


def used(line, other):
    """Replaces USE(expression) by an operation with the tensor `other`."""
    while "USE(" in line:
        start = line.index("USE(")
        depth, end = 1, start + 4
        while depth:
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        line = line[:start] + f"{wrapped(line[start + 4:end - 1])}.mm({other})" + line[end:]
    return line
