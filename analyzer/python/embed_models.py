"""embed_models.py OUTPUT PARSER MODEL...: writes what parse.py makes of the models of libraries as C++."""

import importlib.util
import json
import sys
from pathlib import Path

output, parser, *models = sys.argv[1:]
spec = importlib.util.spec_from_file_location("parse", parser)
parse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parse)


def tree_of(path):
    tree = {**parse.read(str(path)), "path": path.stem}
    if "error" in tree:
        sys.exit(f"{path}:{tree['line']}: {tree['error']}")
    del tree["stamp"]  # is another one on each machine
    return tree


trees = [{"classes": parse.classes}, *map(tree_of, sorted(map(Path, models)))]
numbers = [str(each) for each in "".join(json.dumps(tree) + "\n" for tree in trees).encode()]
rows = [",".join(numbers[at : at + 32]) for at in range(0, len(numbers), 32)]  # a literal may not be as long
Path(output).write_text("constexpr unsigned char modelTrees[] = {\n" + ",\n".join(rows) + "\n};\n", encoding="ascii")
