"""Reads paths of Python files, one per line, and writes a line of JSON for each: its syntax tree, by CPython's own parser.

{"classes": [[class name, field names...]...]} comes first. Then {"path", "text", "tree"} or {"path", "error", "line",
"column"} per file. A node is [number of its class, line, column, end line, end column, its fields...], with columns in
bytes from 0 and zeros where it has no place; a list is [null, ...]; a constant is ["kind", text].
"""
import ast
import json
import re
import sys
import threading
import tokenize

numbers = {}
classes = []


def number_of(kind):
    if kind not in numbers:
        numbers[kind] = len(classes)
        classes.append([kind.__name__, *kind._fields])
    return numbers[kind]


for each in vars(ast).values():
    if isinstance(each, type) and issubclass(each, ast.AST):
        number_of(each)
# IPython's magics whose cell is Python code.
PYTHON_MAGICS = {"capture", "prun", "python", "python3", "time", "timeit"}
CONTEXTS = (ast.Load, ast.Store, ast.Del)


def constant(value):
    kind = type(value).__name__
    return [kind, value if isinstance(value, str) else repr(value)]


def plain(node):
    if isinstance(node, ast.AST):
        if isinstance(node, CONTEXTS):
            return None
        kind = type(node)
        if kind is ast.Constant:
            fields = [constant(node.value)]
        else:
            fields = [plain(getattr(node, name, None)) for name in kind._fields]
        line = getattr(node, "lineno", 0)
        if not line:
            return [numbers[kind], 0, 0, 0, 0, *fields]
        return [numbers[kind], line, node.col_offset, node.end_lineno, node.end_col_offset, *fields]
    if isinstance(node, list):
        return [None, *[plain(each) for each in node]]
    return node


def without_magic(line):
    """A line of a notebook; what is for IPython does nothing."""
    indentation, code = re.match(r"([ \t]*)(.*)", line).groups()
    if code.startswith(("%", "!", "?")) or re.fullmatch(r"[\w.]+\?{1,2}", code):
        return indentation + "pass"
    return re.sub(r"^([\w., ]+=\s*)[%!].*", r"\1None", line)  # names = !ls


def is_python(code):
    try:
        ast.parse(code)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def code_of(cell):
    """The code of a cell, with as many lines as it has. Of a cell in another language these do nothing."""
    code = "".join(cell["source"])
    if is_python(code):
        return code
    magic = re.match(r"\s*%%(\w+)", code)
    if magic and magic.group(1) not in PYTHON_MAGICS:
        return "\n" * code.count("\n")
    return "\n".join(without_magic(line) for line in code.split("\n"))


def cells_of(path):
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    try:
        cells = json.loads(text)["cells"]
        return [cell for cell in cells if cell["cell_type"] == "code" and cell["source"] is not None]
    except (ValueError, TypeError, KeyError):
        raise SyntaxError("it is no notebook of the format 4") from None


def source_of(path):
    if path.endswith(".ipynb"):
        return "".join(code_of(cell) + "\n" for cell in cells_of(path))
    with tokenize.open(path) as stream:
        return stream.read()


def read(path):
    try:
        text = source_of(path)
        return {"path": path, "text": text, "tree": plain(ast.parse(text, path))}
    except SyntaxError as error:
        return {"path": path, "error": error.msg, "line": error.lineno or 1, "column": error.offset or 1}
    except (OSError, UnicodeDecodeError, ValueError, KeyError, RecursionError, MemoryError) as error:
        return {"path": path, "error": f"{type(error).__name__}: {error}", "line": 1, "column": 1}


def main():
    sys.setrecursionlimit(20000)  # with the stack that the thread gets
    print(json.dumps({"classes": classes}))
    for line in sys.stdin:
        print(json.dumps(read(line.rstrip("\n"))))


if __name__ == "__main__":
    threading.stack_size(512 << 20)
    worker = threading.Thread(target=main)
    worker.start()
    worker.join()
