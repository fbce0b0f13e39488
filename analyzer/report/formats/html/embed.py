#!/usr/bin/env python3
"""embed.py OUTPUT FILE...

Writes OUTPUT, a C++ file with the text of each FILE as a constant: page.css becomes `pageCss`.
"""

import pathlib
import sys


def constant(path):
    text = path.read_text(encoding="utf-8")
    if ')page"' in text:
        raise SystemExit(f'{path}: must not contain )page"')
    name = path.stem + path.suffix[1:].capitalize()
    return f'constexpr std::string_view {name} = R"page({text})page";\n'


def main(output, *files):
    text = "// Made by embed.py.\n" + "".join(constant(pathlib.Path(each)) for each in files)
    pathlib.Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
