#!/usr/bin/env python3
"""Documented bugs of public projects: which does the tool find before their fix, and is it silent after it?

bugs.json and python-bugs.json list for each fix the repository, the sources of the program (of Python: the files and
folders that are named to the tool), and the places of the mistakes in the parent of the fix. The repositories are not
part of this project: clone them into a folder as OWNER/NAME (bare clones will do) and name the folder.

    test/real/run.py --repositories DIR [--tool TOOL] [--only NAME] [--shape SHAPE] [--keep DIR] [--limit SECONDS]

A bug is found by a finding with its place, or that of one of its notes, in the lines of the bug. It is found at the
default level, or with --level=latent only. A finding in the same function after the fix is counted as left.
"""

import argparse
import functools
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where Debian's packages of README.md put headers that are not in /usr/include itself.
SYSTEM = [
    "/usr/include/torch/csrc/api/include",
    "/usr/include/python3.11",
    "/usr/include/opencv4",
    "/usr/include/jsoncpp",
    "/usr/lib/jvm/default-java/include",
    "/usr/lib/jvm/default-java/include/linux",
]


CXX = tuple(".c .cc .cpp .cu .cuh .cxx .h .hh .hpp .hxx .inl".split())
# Beside the modules: what starts a program, and what tells where a project begins.
PYTHON = tuple(".py .sh .slurm .json .toml .yaml .yml Makefile setup.py requirements.txt".split())


def is_python(entry: dict) -> bool:
    return "arguments" not in entry


@functools.cache
def repository(folder: Path, name: str) -> Path | None:
    candidates = [folder / name, folder / f"{name}.git", folder / name.replace("/", "+") / "repo"]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    print(f"run.py: {name} is not in {folder}, left out: clone it to {candidates[0]}", file=sys.stderr)
    return None


def extract(git: Path, revision: str, into: Path, endings: tuple[str, ...], headers: dict[str, str]) -> None:
    """Writes what `revision` holds, without the files that a partial clone lacks, and `headers`."""
    partial = into.with_name(into.name + ".part")  # an interrupted run leaves no tree that looks whole
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    names = subprocess.run(
        ["git", "-C", git, "ls-tree", "-r", "--name-only", "-z", revision], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    wanted = [n for n in names if n.endswith(endings)]
    asked = "".join(f"{revision}:{n}\n" for n in wanted).encode()
    batch = subprocess.run(["git", "-C", git, "cat-file", "--batch"], input=asked, capture_output=True, check=True)
    answer = io.BytesIO(batch.stdout)
    for name in wanted:
        head = answer.readline().split()
        if len(head) == 3 and head[1] == b"blob":
            file = partial / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(answer.read(int(head[2])))
            answer.readline()
    for name, text in headers.items():
        file = partial / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    partial.rename(into)


def named_files(options: argparse.Namespace, tree: Path, entry: dict) -> list:
    if is_python(entry):
        return [tree / source for source in entry["sources"]]
    sources = sorted({str(p) for pattern in entry["sources"] for p in tree.glob(pattern)})
    database = []
    for source in sources:
        command = ["nvcc", "-x", "cu"] if ".cu" in Path(source).suffixes else ["c++"]
        command.append("-std=c++17")
        command += [f"-I{tree}/{a[2:]}" if a.startswith("-I") else a for a in entry["arguments"]]
        command += [f"-isystem{include}" for include in options.include]
        database.append({"directory": str(tree), "file": source, "arguments": [*command, "-c", source]})
    (tree / "compile_commands.json").write_text(json.dumps(database, indent=1))
    return ["-p", tree]


def analyse(options: argparse.Namespace, tree: Path, entry: dict) -> dict:
    named = named_files(options, tree, entry)
    try:
        done = subprocess.run(
            [options.tool, *named, "--level=latent", "--format=json", "--stats", f"--source-root={tree}"],
            capture_output=True, text=True, timeout=options.limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"findings": [], "failures": [{"file": tree.name, "line": 0, "message": "takes too long"}]}
    (tree / "stats.txt").write_text(done.stderr)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        said = done.stderr[-2000:] or f"exit status {done.returncode}"
        return {"findings": [], "failures": [{"file": tree.name, "line": 0, "message": f"the tool failed: {said}"}]}
    (tree / "report.json").write_text(done.stdout)
    return report


def matches(finding: dict, bug: dict) -> bool:
    first, last = bug["lines"]
    places = [finding, *finding["notes"]]
    return any(p.get("file") == bug["file"] and first <= p["line"] <= last for p in places)


def level_of(report: dict, bug: dict) -> str:
    found = [f for f in report["findings"] if matches(f, bug)]
    if not found:
        return "-"
    order = ["definite", "likely", "latent"]
    best = min(found, key=lambda f: order.index(f["level"]))
    return f"{best['level']} ({best['check']})"


def counts(report: dict) -> str:
    shown = sum(f["level"] != "latent" for f in report["findings"])
    return f"{shown}+{len(report['findings']) - shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--tool", default=str(HERE.parent.parent / "build/bin/device-tidy"))
    parser.add_argument("--only", help="entries whose name matches this regular expression")
    parser.add_argument("--include", action="append", help="folder of third-party headers, instead of the system's")
    parser.add_argument("--shape", help="those of this shape only, as python-bugs.json calls it")
    parser.add_argument("--limit", type=float, help="seconds for one run")
    parser.add_argument("--keep", type=Path, help="keep the trees and the reports here")
    options = parser.parse_args()
    options.include = options.include or [include for include in SYSTEM if Path(include).exists()]
    total = at_default = at_all = left = 0
    with tempfile.TemporaryDirectory() as scratch:
        base = options.keep or Path(scratch)
        entries = [each for file in ("bugs.json", "python-bugs.json")
                   for each in json.loads((HERE / file).read_text())]  # fmt: skip
        for entry in entries:
            if options.only and not re.search(options.only, entry["name"]):
                continue
            if options.shape and options.shape != entry.get("shape"):
                continue
            git = repository(options.repositories, entry["repository"])
            if not git:
                continue
            reports = {}
            for side, revision in (("before", f"{entry['fix']}~1"), ("after", entry["fix"])):
                tree = base / entry["name"] / side
                if not tree.exists():
                    endings = PYTHON if is_python(entry) else CXX
                    extract(git, revision, tree, endings, entry.get("headers", {}))
                reports[side] = analyse(options, tree, entry)
            print(f"{entry['name']}: {counts(reports['before'])} findings before, {counts(reports['after'])} after")
            for failure in [*reports["before"]["failures"], *reports["after"]["failures"]]:
                print(f"    not parsed: {failure['file']}:{failure['line']}: {failure['message']}")
            for bug in entry["bugs"]:
                level = level_of(reports["before"], bug)
                stays = [f for f in reports["after"]["findings"] if f["function"].endswith(bug["function"])
                         and f["file"] == bug["file"] and f["level"] != "latent"]  # fmt: skip
                total += 1
                at_default += level[0] not in "-" and not level.startswith("latent")
                at_all += level != "-"
                left += bool(stays) and level != "-"
                print(f"  {bug['file']} {bug['function']}: {level}{', left after the fix' if stays else ''}", flush=True)
    if not total:
        sys.exit(f"run.py: no repository of bugs.json that --only matches is in {options.repositories}")
    print(f"{at_default} of {total} found at the default level, {at_all} with latent, {left} left after the fix")


if __name__ == "__main__":
    main()
