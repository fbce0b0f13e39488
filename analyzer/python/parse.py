"""Reads Python files and writes a line of JSON for each: its syntax tree, by CPython's own parser.

Standard input: for each file its path and its text, each ended by a zero byte; the text is JSON, or empty where that on
disk counts. Output: {"classes": [[class name, field names...]...]} comes first. Then {"path", "text", "tree", "stamp"}
or {"path", "error", "line", "column"} per file, in their order. A node is [number of its class, line, column, end line,
end column, its fields...], with columns in bytes from 0 and zeros where it has no place; a list is [null, ...]; a
constant is ["kind", text]; a JSON file is an expression. A stamp is [size, inode, time of change] of the file when it was read.
"""
import sys

if sys.version_info < (3, 8):
    sys.exit("it is Python %d.%d, and 3.8 or newer is needed" % sys.version_info[:2])

import ast
import gc
import io
import json
import math
import os
import re
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
CONTEXTS = {ast.Load, ast.Store, ast.Del}
CONSTANTS = (ast.Constant, getattr(ast, "MatchSingleton", None))  # match: Python 3.10
# IPython's magics whose cell is Python code.
PYTHON_MAGICS = {"capture", "prun", "python", "python3", "time", "timeit"}
KEYWORDS = {*__import__("keyword").kwlist, "match", "case"}
MOST_REPAIRS = 4
MOST_LEVELS = 3000


def constant(value):
    kind = type(value).__name__
    return [kind, value if isinstance(value, str) else repr(value)]


def imports_torch(statement):
    """import torch, import torch.nn as nn: whoever has tensors has it, and no handler is entered."""
    return isinstance(statement, ast.Import) and all((each.name + ".").startswith("torch.") for each in statement.names)


def is_for_checkers(test):
    """TYPE_CHECKING, typing.TYPE_CHECKING: no run comes there, but its imports tell what annotations mean."""
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def plain(node, depth=0):
    kind = node.__class__
    if kind in CONTEXTS or node is None:
        return None
    if kind is list:
        return [None, *[plain(each, depth) for each in node]]
    number = numbers.get(kind)
    if number is None:
        return node
    if depth > MOST_LEVELS:
        raise ValueError(f"more than {MOST_LEVELS} levels of nesting")
    if kind is ast.If and is_for_checkers(node.test):
        node.body = [each for each in node.body if isinstance(each, (ast.Import, ast.ImportFrom))] or [ast.Pass()]
    if kind is ast.Try and all(imports_torch(each) for each in node.body):
        node.handlers = []
    if kind in CONSTANTS:
        fields = [constant(node.value)]
    else:
        fields = [plain(getattr(node, name, None), depth + 1) for name in kind._fields]
    line = getattr(node, "lineno", 0)
    if not line:
        return [number, 0, 0, 0, 0, *fields]
    return [number, line, node.col_offset, node.end_lineno, node.end_col_offset, *fields]


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
    lines = code.split("\n")
    for i, line in enumerate(lines):
        lines[i] = without_magic(line)
        while lines[i] != line and line.rstrip().endswith("\\") and i + 1 < len(lines):  # it goes on in the next line
            i, line = i + 1, lines[i + 1]
            lines[i] = ""
    return "\n".join(lines)


def code_of_notebook(text):
    try:
        cells = json.loads(text)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code" and cell["source"] is not None]
    except (ValueError, TypeError, KeyError):
        raise SyntaxError("it is no notebook of the format 4") from None
    return "".join(code_of(cell) + "\n" for cell in code)


def source_of(path):
    """The text of a file, and the state of the file."""
    with open(path, "rb") as stream:
        state = os.fstat(stream.fileno())
        content = stream.read()
    stamp = [state.st_size, state.st_ino, state.st_mtime_ns]
    if path.endswith(".ipynb"):
        return code_of_notebook(content.decode("utf-8-sig")), stamp
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n"), stamp


def repaired(text, line):
    """The text of a buffer that is being edited, without what is wrong in a line: the names in it are unknown there."""
    lines = text.split("\n")
    line = min(line, len(lines)) - 1
    imported = set(re.findall(r"\w+", " ".join(each for each in lines if re.match(r"\s*(import|from)\s", each))))
    indentation, code = re.match(r"([ \t]*)(.*)", lines[line]).groups()
    names = [name for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", code.split("#")[0]) if name not in KEYWORDS | imported]
    lines[line] = indentation + "".join(name + " = " for name in dict.fromkeys(names)) + ("___()" if names else "pass")
    return "\n".join(lines)


class Settings(ast.NodeTransformer):
    """JSON as an expression of Python."""

    constants = {"true": True, "false": False, "null": None, "NaN": math.nan, "Infinity": math.inf}

    def visit_Name(self, node):
        return ast.copy_location(ast.Constant(self.constants[node.id]), node)


def settings_of(text, path):
    json.loads(text)
    expression = ast.parse(text, path, "eval").body
    return ast.Module([ast.copy_location(ast.Expr(Settings().visit(expression)), expression)], [])


def last_name(node):
    """Of a base or a decorator, called or not: "dataclass" of dataclasses.dataclass(frozen=True), Base of Base[T]."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "attr", getattr(node, "id", ""))


class Constructors(ast.NodeVisitor):
    """Gives classes of fields (dataclasses, named tuples) the __init__ that Python makes of their annotations."""

    DECORATORS = {"dataclass", "define", "frozen", "attrs"}
    WITH_FIELDS = {"NamedTuple", "BaseModel"}
    WITHOUT_FIELDS = {"object", "ABC", "Generic", "Protocol", "ModelOutput", "BaseOutput"}

    def __init__(self):
        self.fields = {}  # by the name of the class; None where one behind it is elsewhere

    def visit_ClassDef(self, node):
        bases = [last_name(each) for each in node.bases]
        is_made = any(last_name(each) in self.DECORATORS for each in node.decorator_list)
        is_made |= any(each in self.WITH_FIELDS for each in bases)
        known = self.WITHOUT_FIELDS | self.WITH_FIELDS | self.fields.keys()
        inherited = [self.fields.get(each, {}) for each in reversed(bases)]
        if all(each in known for each in bases) and None not in inherited:
            own = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
            own = {each.target.id: each for each in own if last_name(each.annotation) != "ClassVar"} if is_made else {}
            self.fields[node.name] = {name: each for fields in [*inherited, own] for name, each in fields.items()}
            if is_made and own and "__init__" not in {getattr(each, "name", "") for each in node.body}:
                node.body.append(self.constructor(self.fields[node.name].values()))
        else:
            self.fields[node.name] = None
        self.generic_visit(node)

    @staticmethod
    def constructor(fields):
        arguments = ast.arguments(posonlyargs=[], args=[ast.arg("self", None)], kwonlyargs=[], kw_defaults=[], defaults=[])
        body = []
        for field in fields:
            said = {each.arg: each.value for each in getattr(field.value, "keywords", ())} if last_name(field.value) == "field" else None
            has_default = field.value is not None and (said is None or not said.keys().isdisjoint({"default", "default_factory", "factory"}))
            place = ast.copy_location(ast.Name("self", ast.Load()), field.target)
            value = ast.copy_location(ast.Name(field.target.id, ast.Load()), field.target)
            if getattr((said or {}).get("init"), "value", True) is False:
                if not has_default:
                    continue
                value = field.value
            elif arguments.defaults and not has_default:
                arguments.kwonlyargs.append(ast.copy_location(ast.arg(field.target.id, field.annotation), field))
                arguments.kw_defaults.append(None)
            else:
                arguments.args.append(ast.copy_location(ast.arg(field.target.id, field.annotation), field))
                arguments.defaults += [field.value] if has_default else []
            target = ast.copy_location(ast.Attribute(place, field.target.id, ast.Store()), field.target)
            body.append(ast.copy_location(ast.Assign([target], value), field))
        made = ast.FunctionDef("__init__", arguments, body or [ast.Pass()], [])
        return ast.copy_location(made, next(iter(fields)))


def tree_of(text, path, mends):
    tree = plain_tree_of(text, path, mends)
    if any(word in text for word in Constructors.DECORATORS | Constructors.WITH_FIELDS):  # to walk a tree takes long
        Constructors().visit(tree)
    return tree


def plain_tree_of(text, path, mends):
    if path.endswith(".json"):
        return settings_of(text, path)
    for _ in range(MOST_REPAIRS if mends else 0):
        try:
            return ast.parse(text, path)
        except SyntaxError as error:
            text = repaired(text, error.lineno or 1)
    return ast.parse(text, path)


def read(path, given=b""):
    answer = {"path": path}
    try:
        if given:
            text = json.loads(given)
            text = text[1:] if text.startswith("\ufeff") else text
        else:
            text, answer["stamp"] = source_of(path)
        answer.update(text=text, tree=plain(tree_of(text, path, bool(given))))
    except SyntaxError as error:
        answer.update(error=error.msg, line=error.lineno or 1, column=error.offset or 1)
    except OSError as error:
        answer.update(error=error.strerror or str(error))
    except UnicodeDecodeError as error:
        wrong = f"it is not {error.encoding}: byte {error.object[error.start]:#04x}; save it as UTF-8, or name its encoding"
        answer.update(error=wrong + " in the first line: # -*- coding: latin-1 -*-", line=error.object.count(b"\n", 0, error.start) + 1)
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        answer.update(error=f"it cannot be parsed: {str(error) or type(error).__name__}")
    return answer


def main():
    sys.setrecursionlimit(20000)  # with the stack that the thread gets
    gc.disable()  # trees have no cycles, and looking for some takes most of the time
    print(json.dumps({"classes": classes}))
    fields = sys.stdin.buffer.read().split(b"\0")
    for path, given in zip(fields[0::2], fields[1::2]):
        answer = read(os.fsdecode(path), given)
        try:
            print(json.dumps(answer, check_circular=False, separators=(",", ":")))
        except (RecursionError, MemoryError):
            print(json.dumps({"path": answer["path"], "error": "it cannot be parsed: too many levels of nesting"}))


if __name__ == "__main__":
    threading.stack_size(512 << 20)
    worker = threading.Thread(target=main, daemon=True)
    worker.start()
    worker.join()
