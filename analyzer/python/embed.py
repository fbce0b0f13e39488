"""embed.py OUTPUT LAUNCHES SCRIPT MODEL...: writes launches.py and parse.py as one script, and the syntax trees of the models of libraries, as C++."""

import ast
import importlib.util
import json
import sys
from pathlib import Path

output, launches, script, *models = sys.argv[1:]
spec = importlib.util.spec_from_file_location("parse", script)
parse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parse)


def array(name, text):
    """Bytes: a literal may not be as long as a tree."""
    numbers = [str(each) for each in text.encode()]
    lines = [",".join(numbers[at : at + 32]) for at in range(0, len(numbers), 32)]
    return f"constexpr unsigned char {name}[] = {{\n" + ",\n".join(lines) + "\n};\n"


def roots(path):
    """The packages that a model is for: the first words of the names in its decorators."""
    found = {""}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for decorator in getattr(node, "decorator_list", []):
            found |= {each.value.split(".")[0] for each in decorator.args}
    return " ".join(sorted(found)) + " "


paths = sorted(map(Path, models))
with open(output, "w", encoding="utf-8") as stream:
    text = "\n".join(Path(each).read_text(encoding="utf-8") for each in (launches, script))
    stream.write('constexpr const char *parseScript = R"python(' + text + ')python";\n')
    stream.write(array("modelClasses", json.dumps({"classes": parse.classes})))
    for i, path in enumerate(paths):
        tree = {**parse.read(str(path)), "path": path.stem}
        if "error" in tree:
            sys.exit(f"{path}:{tree['line']}: {tree['error']}")
        stream.write(array(f"modelTree{i}", json.dumps(tree)))
    stream.write("constexpr ModelSource modelSources[] = {\n")
    for i, path in enumerate(paths):
        stream.write(f'    {{"{roots(path)}", modelTree{i}, sizeof modelTree{i}}},\n')
    stream.write("};\n")
