"""A generated function and the file it is written into."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Function:
    name: str
    tags: list
    top: list = field(default_factory=list)  # declarations before the function
    body: list = field(default_factory=list)
    start: int = 0  # its lines in the file
    end: int = 0

    @property
    def text(self):
        body = "\n".join(self.top) + "\nvoid run() {\n" + "\n".join("  " + line for line in self.body) + "\n}"
        return f"namespace {self.name} {{\n{body.strip()}\n}} // namespace {self.name}"

    @property
    def row(self):
        """Its entry in the table of the runner."""
        differs = any(word in self.text for word in ("external", "look", "change"))
        worlds = "runner::worlds" if differs else "1"
        return f'  {{"{self.name}", {self.name}::run, {worlds}, {str("static " in self.text).lower()}}},'


def sources(functions):
    """The text for the analyzer and the one that is run; the lines are the same.

    `@@` before a statement marks one whose operation is performed inside the library: what is run notes its line.
    """
    lines = ['#include "outside.h"', ""]
    for function in functions:
        function.start = len(lines) + 1
        lines += function.text.split("\n")
        function.end = len(lines)
        lines.append("")
    read = "\n".join(line.replace("@@", "") for line in lines)
    run = "\n".join(line.replace("@@", f"label::statement = {number}; ") for number, line in enumerate(lines, 1))
    table = "\n".join(function.row for function in functions)
    run += ("\nconst char *const generatedFile = __FILE__;\n"
            f"const runner::Function functions[] = {{\n{table}\n  {{nullptr, nullptr, 0, false}}}};\n")  # fmt: skip
    return read + "\n", run
