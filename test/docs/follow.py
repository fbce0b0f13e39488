#!/usr/bin/env python3
"""Follows docs/adding-a-check.md and docs/adding-an-op.md to the letter, in a copy of the repository.

follow.py [--keep DIRECTORY]

What the pages say to write is taken from their code blocks, what they say to run from their command blocks.
--keep works in DIRECTORY and leaves it there.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

import run as runner
from pages import SOURCES, Page
from sandbox import Sandbox

TIMEOUT = 3600
CHECK = "device-discarded-cast"
# Tested by itself; it would start the suite this script is a part of.
NOT_RUN = ("scripts/test.sh",)


class Reader:
    """Someone at a shell in a copy of the repository, with a page open."""

    def __init__(self, sandbox, cache, name):
        self.sandbox, self.cache = sandbox, cache
        self.page = Page(SOURCES / name)
        self.root = sandbox.root

    def write(self, path, language, number):
        target = self.root / path
        target.write_text(self.page.block(language, number).text, encoding="utf-8")

    def run(self, language, number, code=0):
        """The commands of a block; the last one ends with `code`, the others with 0."""
        block = self.page.block(language, number)
        commands = [each for each in block.commands() if each[0].split("#")[0].strip() not in NOT_RUN]
        for index, (command, expected) in enumerate(commands):
            print(f"{self.page.name}:{block.line}: {command}", flush=True)
            ended, output, _ = runner.run_command(command, self.sandbox, self.root, self.cache, TIMEOUT)
            wanted = code if index == len(commands) - 1 else 0
            if ended != wanted:
                raise SystemExit(f"FAILED: exit code {ended}, should be {wanted}\n{output}")
            if expected and not runner.matches(expected, output):
                raise SystemExit(f"FAILED: prints\n{output}\nthe page shows\n{expected}")
        return output

    def replace(self, path, old, new):
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        if old not in text:
            raise SystemExit(f"FAILED: {path} has no {old!r}")
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    def expect(self, holds, what):
        if not holds:
            raise SystemExit(f"FAILED: {self.page.name}: {what}")


def add_check(reader):
    reader.run("sh", 1)
    reader.write("checks/DeviceDiscardedCast.cpp", "cpp", 1)
    registry = reader.root / "checks/checks.json"
    entries = json.loads(registry.read_text(encoding="utf-8"))
    reader.expect(entries[-1]["name"] == CHECK, "the new entry is not the last one")
    entries[-1] = json.loads(reader.page.block("json", 1).text)
    registry.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    page = f"docs/checks/{CHECK}.md"
    for example, title in ((2, "Bad:"), (3, "Good:")):
        code = reader.page.block("cpp", example).text
        reader.replace(page, f"{title}\n\n```cpp\n", f"{title}\n\n```cpp\n{code}")
    pages = reader.root / "test/lit/checks/pages.test"
    pages.write_text(pages.read_text(encoding="utf-8") + reader.page.block("text", 1).text, encoding="utf-8")
    reader.write(f"test/lit/checks/{CHECK}.cpp", "cpp", 4)
    reader.run("sh", 2)
    output = reader.run("sh", 3)
    reader.expect(re.search(r"Passed *: *1 ", output), f"lit ran another number of tests\n{output}")
    shown, text, _ = runner.run_command(
        "python3 /usr/lib/llvm-22/bin/lit -v build/test --filter checks/pages", reader.sandbox, reader.root, reader.cache, TIMEOUT
    )
    reader.expect(shown == 0, f"the examples of the page fail\n{text}")


def add_operator(reader):
    reader.write("train.cpp", "cpp", 1)
    reader.run("console", 1)
    table = reader.root / "analyzer/models/data/aten_overrides.csv"
    table.write_text(table.read_text(encoding="utf-8") + reader.page.block("text", 1).text, encoding="utf-8")
    reader.run("sh", 1)
    unmodelled = (reader.root / "test/models/unmodelled.txt").read_text(encoding="utf-8")
    reader.expect("function gradient\n" not in unmodelled, "gradient is still in unmodelled.txt")
    reader.write("test/cases/ops/differences.cpp", "cpp", 2)
    reader.run("sh", 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="device-tidy-follow-") as temporary:
        work = (options.keep or pathlib.Path(temporary)).resolve()
        sandbox, cache = Sandbox("built", work, None), work / "cache"
        add_check(Reader(sandbox, cache, "docs/adding-a-check.md"))
        add_operator(Reader(sandbox, cache, "docs/adding-an-op.md"))
    print("Both pages lead where they say.")


if __name__ == "__main__":
    sys.exit(main())
