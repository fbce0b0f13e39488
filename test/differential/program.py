"""A generated function as a tree of statements: what can be dropped from it, and how it is written out."""

import re
import zlib

HEAD = """// {title}
#include "differential.h"

using torch::Tensor;
namespace F = torch::nn::functional;
"""

WORD = re.compile(r"[A-Za-z_]\w*")


class Statement:
    """One line of code, or a compound statement with a body and perhaps an else part.

    `declares` are the names other statements can only use while this one is there, `tags` the building blocks
    it was made of.  A `helper` stands above the function.
    """

    def __init__(self, text, declares=(), tags=(), body=None, orElse=None, close="}", helper=False):
        self.text = text
        self.declares = tuple(declares)
        self.tags = tuple(tags)
        self.body = body
        self.orElse = orElse
        self.close = close
        self.helper = helper
        self.key = None

    def children(self):
        return (self.body or []) + (self.orElse or [])

    def words(self):
        found = set(WORD.findall(self.text)) | set(WORD.findall(self.close))
        for child in self.children():
            found |= child.words()
        return found

    def names(self):
        found = set(self.declares)
        for child in self.children():
            found |= child.names()
        return found

    def canLeaveBody(self):
        """Not a function's or a lambda's, nor a loop's that is left by a jump."""
        jumps = self.text.startswith("for") and self.words() & {"break", "continue"}
        return not self.helper and self.close != "};" and not jumps

    def copy(self):
        twin = Statement(self.text, self.declares, self.tags, close=self.close, helper=self.helper)
        twin.body = None if self.body is None else [child.copy() for child in self.body]
        twin.orElse = None if self.orElse is None else [child.copy() for child in self.orElse]
        twin.key = self.key
        return twin


def walk(statements):
    for statement in statements:
        yield statement
        yield from walk(statement.children())


class Function:
    """`lines` maps the lines of the last file it was written to back to the keys of its statements."""

    def __init__(self, name, statements):
        self.name = name
        self.statements = statements
        self.lines = {}
        for key, statement in enumerate(walk(statements)):
            if statement.key is None:
                statement.key = key

    def find(self, key):
        return next((s for s in walk(self.statements) if s.key == key), None)

    def tags(self):
        return sorted({tag for statement in walk(self.statements) for tag in statement.tags})

    def size(self):
        return sum(1 for _ in walk(self.statements))

    def variant(self, name, key, mode):
        """A copy without the statement `key`, or with its body (or else part) in its place, or None."""
        twin = Function(name, [statement.copy() for statement in self.statements])
        if not rewrite(twin.statements, key, mode):
            return None
        gone = self.find(key).names() - {n for s in walk(twin.statements) for n in s.declares}
        used = set().union(*(s.words() for s in twin.statements)) if twin.statements else set()
        return None if gone & used else twin

    def variants(self):
        """Every copy that is smaller by one step, with the keys that must not be what it is about."""
        for statement in walk(self.statements):
            if statement.body is not None and statement.canLeaveBody():
                yield statement.key, "body"
                if statement.orElse is not None:
                    yield statement.key, "else"
            yield statement.key, "drop"

    def text(self):
        return "\n".join(line for line, _ in self.render())

    def render(self):
        """Pairs of a line and the key of the statement it starts, helpers first."""
        out = []
        helpers = any(statement.helper for statement in self.statements)
        if helpers:  # copies of the function have helpers of the same names
            out.append((f"namespace of_{self.name} {{", None))
        for statement in self.statements:
            if statement.helper:
                renderStatement(statement, 0, out, mark="")
        out.append((f"static void {self.name}() {{", None))
        for statement in self.statements:
            if not statement.helper:
                renderStatement(statement, 1, out)
        out.append(("}", None))
        if helpers:
            out += [("}", None), (f"using of_{self.name}::{self.name};", None)]
        return out


def rewrite(statements, key, mode):
    for index, statement in enumerate(statements):
        if statement.key == key:
            parts = {"drop": [], "body": statement.body, "else": statement.orElse}
            statements[index : index + 1] = parts[mode] or []
            return True
        if rewrite(statement.body or [], key, mode) or rewrite(statement.orElse or [], key, mode):
            return True
    return False


def renderStatement(statement, depth, out, mark="AT "):
    pad = "  " * depth
    out.append((pad + mark + statement.text, statement.key))
    for child in statement.body or []:
        renderStatement(child, depth + 1, out)
    if statement.orElse is not None:
        out.append((pad + "} else {", None))
        for child in statement.orElse:
            renderStatement(child, depth + 1, out)
    if statement.body is not None:
        out.append((pad + statement.close, None))


def writeFile(path, title, functions):
    """Writes one program; fills in every function's `lines`."""
    lines = HEAD.format(title=title).splitlines()
    for function in functions:
        function.lines = {}
        lines.append("")
        for text, key in function.render():
            lines.append(text)
            if key is not None:
                function.lines[len(lines)] = key
    lines += ["", "DIFFERENTIAL_MAIN(" + ", ".join(f.name for f in functions) + ")", ""]
    path.write_text("\n".join(lines))


def checksum(text):
    return zlib.crc32(text.encode())
