#!/usr/bin/env python3
"""apply_replacements.py YAML_DIR CODE EXPECTED: runs clang-apply-replacements and compares two folders.

Without clang-apply-replacements the replacements are read back here: the keys are one line each.
"""

import filecmp
import json
import pathlib
import shutil
import subprocess
import sys


def apply_here(folder):
    changes = {}
    for path in folder.glob("*.yaml"):
        lines = [line.strip().lstrip("- ") for line in path.read_text(encoding="utf-8").splitlines()]
        for i, line in enumerate(lines):
            if line.startswith("ReplacementText: "):
                values = [part.split(": ", 1)[1] for part in lines[i - 3 : i + 1]]
                file, offset, length, text = (json.loads(value) for value in values)
                changes.setdefault(file, set()).add((offset, length, text))
    for file, places in changes.items():
        data = pathlib.Path(file).read_bytes()
        for offset, length, text in sorted(places, reverse=True):
            data = data[:offset] + text.encode() + data[offset + length :]
        pathlib.Path(file).write_bytes(data)


def main():
    folder, code, expected = map(pathlib.Path, sys.argv[1:])
    tool = shutil.which("clang-apply-replacements-22") or shutil.which("clang-apply-replacements")
    if tool:
        subprocess.run([tool, str(folder)], check=True)
    else:
        apply_here(folder)
    names = sorted(path.name for path in expected.iterdir())
    _, different, missing = filecmp.cmpfiles(code, expected, names, shallow=False)
    if different or missing:
        sys.exit(f"not as --fix leaves them: {different + missing}")


if __name__ == "__main__":
    main()
