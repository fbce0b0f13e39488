#!/usr/bin/env python3
"""Runs the commands of the documentation as a reader copies them, and checks its links and translations.

run.py --build DIRECTORY [--slow] [--page NAME]...

The table in blocks.py speaks of every block: what is new on a page must be entered there. --slow runs the blocks that
are marked so, and only them.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pages as pages_module
from blocks import TABLE
from sandbox import TORCH, Sandbox
from static import check_links, check_table, check_translations

STATUS = "docs-test-exit-status"


def matches(expected, output):
    """Is `output` what the page shows? "..." stands for anything, as a line for any lines, and a number
    of five digits (a port) for any number."""
    pattern = re.escape(expected.strip().replace("\n...\n", "\n<lines>"))
    pattern = pattern.replace("<lines>", "(?:.*?\n)?").replace(re.escape("..."), ".*?")
    pattern = re.sub(r"\d{5}", r"\\d+", pattern)
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


def sorted_lines(text):
    return "\n".join(sorted(text.strip().splitlines()))


def of_this_llvm(text, options):
    """The plugin is for the clang-tidy of the LLVM it was built with; the pages name that of the default build."""
    return re.sub(r"\bclang-tidy-\d+\b", f"clang-tidy-{options.llvm}", text)


def run_command(command, sandbox, folder, cache, timeout):
    """Runs one command where the last one left off; returns exit code, output and the folder it ended in."""
    command = command.replace("/tmp/", f"{sandbox.temporary}/")
    script = f'{command}\necho "{STATUS} $? $PWD"'
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=sandbox.environment(cache), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"still running after {timeout} s", folder
    output, _, status = done.stdout.rpartition(STATUS + " ")
    code, _, folder_after = status.strip().partition(" ")
    if not code:
        return done.returncode, done.stdout, folder
    return int(code), output.replace(f"{sandbox.temporary}/", "/tmp/"), pathlib.Path(folder_after)


def prepare(block, entry, page, sandbox, cache):
    for path, number in entry.get("saved", {}).items():
        language = "python" if path.endswith(".py") else "cpp"
        sandbox.place(path).write_text(page.block(language, number).text, encoding="utf-8")
    if entry.get("program"):
        sources = [sandbox.root / "src" / name for name in ("train.cpp", "loss.cpp")]
        libraries = ["-ltorch", "-ltorch_cpu", "-lc10"]
        subprocess.run(["g++", "-g", "-std=c++17", "-isystem", TORCH, *sources, "-o", sandbox.root / "train", *libraries],
                       check=True)  # fmt: skip
    if entry.get("before"):
        code, output, _ = run_command(entry["before"], sandbox, sandbox.root, cache, 600)
        if code:
            raise RuntimeError(f"what {page.name}:{block.line} needs first failed:\n{output}")


def run_block(block, entry, page, sandbox, cache, options):
    """Yields what is wrong."""
    prepare(block, entry, page, sandbox, cache)
    commands = block.commands()
    codes = entry["exit"] if isinstance(entry["exit"], list) else [entry["exit"]] * len(commands)
    folder = sandbox.root
    timeout = 3600 if options.slow else 900
    for (command, expected), wanted in zip(commands, codes):
        if isinstance(wanted, str):
            print(f"  not run ({wanted}): {command}")
            continue
        code, output, folder = run_command(of_this_llvm(command, options), sandbox, folder, cache, timeout)
        where = f"{page.name}:{block.line}: {command}"
        if code != wanted:
            yield f"{where}\n  exit code {code}, should be {wanted}\n{output}"
            continue
        for text in entry.get("varies", []):
            expected = expected.replace(text, "...")
        in_order = sorted_lines if entry.get("any_order") else str
        if expected and not matches(in_order(expected), in_order(output)):
            yield f"{where}\n  prints\n{output}\n  the page shows\n{expected}"


def run_page(page, work, cache, options):
    sandboxes = {}
    for block in page.command_blocks():
        entry = TABLE[page.name].get(block.text.splitlines()[0], {})
        if "in" not in entry or bool(entry.get("slow")) != options.slow:
            continue
        needs = [of_this_llvm(name, options) for name in entry.get("needs", [])]
        missing = [name for name in needs if not shutil.which(name)]
        if missing:
            print(f"{page.name}:{block.line}: left out, {', '.join(missing)} not installed", flush=True)
            continue
        print(f"{page.name}:{block.line}", flush=True)
        kind = entry["in"]
        if kind not in sandboxes:
            sandboxes[kind] = Sandbox(kind, work / page.name.replace("/", "-"), options.build)
        yield from run_block(block, entry, page, sandboxes[kind], cache, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--llvm", type=int, default=22, metavar="MAJOR", help="the LLVM of the build")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--page", action="append", help="only this page, as README.md or docs/fixes.md")
    options = parser.parse_args()
    all_pages = pages_module.all_pages()
    failures = []
    if not options.slow:
        failures += [*check_links(all_pages), *check_translations(all_pages), *check_table(all_pages, TABLE)]
        for failure in failures:
            print(f"FAILED: {failure}", flush=True)
    with tempfile.TemporaryDirectory(prefix="device-tidy-docs-") as work:
        for page in all_pages:
            if page.name in TABLE and (not options.page or page.name in options.page):
                for failure in run_page(page, pathlib.Path(work), pathlib.Path(work) / "cache", options):
                    print(f"FAILED: {failure}", flush=True)
                    failures.append(failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
