"""Reads paths of Python files, one per line, and writes a line of JSON for each: its syntax tree, by CPython's own parser.

{"classes": [[class name, field names...]...]} comes first. Then {"path", "text", "tree"} or {"path", "error", "line",
"column"} per file; for "launches FOLDER", {"launches": what launches.py finds below it}. A JSON file is an expression. A node is [number of its class, line, column, end line, end column, its fields...], with columns in
bytes from 0 and zeros where it has no place; a list is [null, ...]; a constant is ["kind", text].
"""
import ast
import json
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


PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun")


def without_magic(cell):
    """The lines of a cell of a notebook; what is for IPython or for a shell does nothing."""
    lines = cell.split("\n")
    is_code = not cell.startswith("%%") or cell.startswith(PYTHON_CELLS)
    goes_on = False
    for i, line in enumerate(lines):
        code = line.lstrip()
        if goes_on or not is_code or code.startswith(("%", "!", "?")):
            goes_on = is_code and line.rstrip().endswith("\\")
            lines[i] = line[: len(line) - len(code)] + "pass" if is_code and code.startswith(("%", "!", "?")) else ""
    return "\n".join(lines)


class Settings(ast.NodeTransformer):
    """JSON as an expression of Python."""

    constants = {"true": True, "false": False, "null": None}

    def visit_Name(self, node):
        return ast.copy_location(ast.Constant(self.constants[node.id]), node)


def tree_of(text, path):
    if not path.endswith(".json"):
        return ast.parse(text, path)
    json.loads(text)
    expression = ast.parse(text, path, "eval").body
    return ast.Module([ast.copy_location(ast.Expr(Settings().visit(expression)), expression)], [])


def source_of(path):
    if path.endswith(".ipynb"):
        with open(path, encoding="utf-8") as stream:
            cells = json.load(stream)["cells"]
        return "".join(without_magic("".join(cell["source"])) + "\n" for cell in cells if cell["cell_type"] == "code")
    with tokenize.open(path) as stream:
        return stream.read()


def read(path):
    try:
        text = source_of(path)
        return {"path": path, "text": text, "tree": plain(tree_of(text, path))}
    except SyntaxError as error:
        return {"path": path, "error": error.msg, "line": error.lineno or 1, "column": error.offset or 1}
    except (OSError, UnicodeDecodeError, ValueError, KeyError, RecursionError, MemoryError) as error:
        return {"path": path, "error": f"{type(error).__name__}: {error}", "line": 1, "column": 1}


def main():
    sys.setrecursionlimit(20000)  # with the stack that the thread gets
    print(json.dumps({"classes": classes}))
    for line in sys.stdin:
        path = line.rstrip("\n")
        folder = path[len("launches ") :]
        print(json.dumps({"launches": launches_below(folder)} if path.startswith("launches ") else read(path)))


if __name__ == "__main__":
    threading.stack_size(512 << 20)
    worker = threading.Thread(target=main)
    worker.start()
    worker.join()
